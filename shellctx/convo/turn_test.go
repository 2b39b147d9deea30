package convo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"cellmux/shellctx"
	"cellmux/shellctx/protocol"
)

// headless runs turns as a test says.
type headless func(ctx context.Context, text string, emit func(string)) (Turn, error)

func (h headless) Run(ctx context.Context, _ Target, text string, emit func(string)) (Turn, error) {
	return h(ctx, text, emit)
}

func TestAHeadlessTurnRunsWhereNoPaneDoes(t *testing.T) {
	var got []string
	p := &pane{}
	s := newService(t, func(o *Options) {
		o.Pane = p
		o.Headless = headless(func(_ context.Context, text string, emit func(string)) (Turn, error) {
			got = append(got, text)
			emit("half ")
			emit("done")
			return Turn{Text: "the answer", Usage: map[string]any{"output_tokens": 7}}, nil
		})
	})
	r := shellctx.Record{Command: "make", ExitCode: 2}
	submit(t, s, record(t, "r1", r))
	submit(t, s, text("m1", "why?"))
	deliver(t, s)
	if want := []string{shellctx.ContextText(r) + "\n\nwhy?"}; !reflect.DeepEqual(got, want) {
		t.Fatalf("the agent got %q", got)
	}
	page, err := s.Page(t.Context(), api.Session, 0, 10)
	if err != nil || len(page) != 3 {
		t.Fatalf("%d messages, %v", len(page), err)
	}
	if last := page[2]; last.Message.Role != protocol.Assistant || last.Message.Text() != "the answer" || len(last.Message.Meta["cellmux.usage"]) == 0 {
		t.Fatalf("the answer is %+v", last)
	}
	if page[0].Delivery != Answered || page[1].Delivery != Answered {
		t.Fatalf("states %s and %s", page[0].Delivery, page[1].Delivery)
	}
	// With a live pane the message is typed, whatever the headless one could.
	p.set(func(p *pane) { p.state = PaneState{Live: true, Ready: true} })
	submit(t, s, text("m2", "and now?"))
	deliver(t, s)
	if len(got) != 1 || !reflect.DeepEqual(p.submitted(), []string{"and now?"}) {
		t.Fatalf("headless %q, pane %q", got, p.submitted())
	}
}

func TestAGrowingAnswerIsSeenWhileItGrows(t *testing.T) {
	emitted, seen := make(chan struct{}), make(chan struct{})
	s := newService(t, func(o *Options) {
		o.Headless = headless(func(_ context.Context, _ string, emit func(string)) (Turn, error) {
			emit("half an ")
			close(emitted)
			<-seen
			emit("answer")
			return Turn{}, nil
		})
	})
	submit(t, s, text("m1", "hi"))
	ended := make(chan error, 1)
	go func() { ended <- s.Deliver(context.Background(), api) }()
	<-emitted
	page, err := s.Page(t.Context(), api.Session, 0, 10)
	close(seen)
	if err != nil || len(page) != 2 || !page[1].Partial || page[1].Message.Text() != "half an " {
		t.Fatalf("%+v, %v", page, err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	page, err = s.Page(t.Context(), api.Session, 0, 10)
	if err != nil || len(page) != 2 || page[1].Partial || page[1].Message.Text() != "half an answer" {
		t.Fatalf("%+v, %v", page, err)
	}
}

func TestATurnThatFailsSaysWhy(t *testing.T) {
	for want, run := range map[string]headless{
		"the model is overloaded": func(context.Context, string, func(string)) (Turn, error) {
			return Turn{Error: "the model is overloaded"}, nil
		},
		"without an answer": func(context.Context, string, func(string)) (Turn, error) { return Turn{}, nil },
		"exited with 1": func(_ context.Context, _ string, emit func(string)) (Turn, error) {
			emit("it began")
			return Turn{}, errors.New("claude exited with 1")
		},
	} {
		t.Run(want, func(t *testing.T) {
			runs := 0
			s := newService(t, func(o *Options) {
				o.Headless = headless(func(ctx context.Context, text string, emit func(string)) (Turn, error) {
					runs++
					return run(ctx, text, emit)
				})
			})
			seq := submit(t, s, text("m1", "hi")).Seq
			deliver(t, s)
			deliver(t, s)
			if e := entry(t, s, seq); e.Delivery != Failed || !strings.Contains(e.Reason, want) || runs != 1 {
				t.Fatalf("%s: %q after %d turns", e.Delivery, e.Reason, runs)
			}
		})
	}
}

func TestATurnThatCannotBeginStaysQueued(t *testing.T) {
	s := newService(t, func(o *Options) {
		o.Headless = headless(func(context.Context, string, func(string)) (Turn, error) {
			return Turn{}, fmt.Errorf("grok has no such mode: %w", ErrRefused)
		})
	})
	seq := submit(t, s, text("m1", "hi")).Seq
	deliver(t, s)
	if e := entry(t, s, seq); e.Delivery != Queued || !strings.Contains(e.Reason, "no such mode") {
		t.Fatalf("%s: %q", e.Delivery, e.Reason)
	}
}

func TestACancelledTurnKeepsWhatItSaid(t *testing.T) {
	began := make(chan struct{})
	s := newService(t, func(o *Options) {
		o.Headless = headless(func(ctx context.Context, _ string, emit func(string)) (Turn, error) {
			emit("I began to")
			close(began)
			<-ctx.Done()
			return Turn{}, ctx.Err()
		})
	})
	seq := submit(t, s, text("m1", "hi")).Seq
	ended := make(chan error, 1)
	go func() { ended <- s.Deliver(context.Background(), api) }()
	<-began
	if !s.CancelTurn(api.Session) {
		t.Error("no turn ran")
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if s.CancelTurn(api.Session) {
		t.Error("a turn still runs")
	}
	page, err := s.Page(t.Context(), api.Session, 0, 10)
	if err != nil || len(page) != 2 || page[1].Message.Text() != "I began to" || !page[1].Message.Flag(protocol.CancelledKey) {
		t.Fatalf("%+v, %v", page, err)
	}
	if e := entry(t, s, seq); e.Delivery != Failed || e.Reason != "cancelled" {
		t.Fatalf("%s: %q", e.Delivery, e.Reason)
	}
}
