package convo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"cellmux/shellctx"
	"cellmux/shellctx/protocol"
)

func TestContextOnlyEndsWithTheAcknowledgement(t *testing.T) {
	p := readyPane()
	s := newService(t, func(o *Options) { o.Pane = p })
	receipt, err := s.Submit(t.Context(), api, record(t, "r1", shellctx.Record{Command: "ls", Output: "a\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if receipt.Ack == nil || !shellctx.IsCommitAck(*receipt.Ack) || receipt.Ack.Role != protocol.Assistant || receipt.Ack.Text() != "" {
		t.Fatalf("acknowledgement %+v", receipt.Ack)
	}
	if receipt.Entry.Delivery != Saved {
		t.Fatalf("state %s", receipt.Entry.Delivery)
	}
	deliver(t, s)
	if len(p.pastes) != 0 {
		t.Fatalf("typed: %q", p.pastes)
	}
	if got := states(t, s); !reflect.DeepEqual(got, []string{"r1 saved"}) {
		t.Fatalf("the history holds %v", got)
	}
	if _, err := s.Submit(t.Context(), api, *receipt.Ack); err == nil {
		t.Fatal("an acknowledgement was stored")
	}
}

func TestContextRidesOnceInFrontInOrder(t *testing.T) {
	p := readyPane()
	s := newService(t, func(o *Options) { o.Pane = p })
	first := shellctx.Record{Command: "make", Output: "boom\n", ExitCode: 2}
	second := shellctx.Record{Command: "ls", Output: "a\n"}
	submit(t, s, record(t, "r1", first))
	submit(t, s, record(t, "r2", second))
	submit(t, s, text("m1", "fix it\n"))
	submit(t, s, record(t, "r3", second))
	submit(t, s, text("m2", "and now?"))
	deliver(t, s)
	want := []string{
		shellctx.ContextText(first) + "\n\n" + shellctx.ContextText(second) + "\n\nfix it",
		shellctx.ContextText(second) + "\n\nand now?",
	}
	if got := p.submitted(); !reflect.DeepEqual(got, want) {
		t.Fatalf("the agent got\n%q\nwant\n%q", got, want)
	}
	if got := states(t, s); !reflect.DeepEqual(got, []string{"r1 submitted", "r2 submitted", "m1 submitted", "r3 submitted", "m2 submitted"}) {
		t.Fatal(got)
	}
	deliver(t, s)
	if got := p.submitted(); len(got) != 2 {
		t.Fatalf("delivered again: %q", got)
	}
}

func TestARecordThatAsksIsDeliveredAsItsOwnTurn(t *testing.T) {
	p := readyPane()
	s := newService(t, func(o *Options) { o.Pane = p })
	r := shellctx.Record{Command: "make", ExitCode: 2, TriggerAgent: true}
	submit(t, s, record(t, "r1", r))
	deliver(t, s)
	if got := p.submitted(); !reflect.DeepEqual(got, []string{shellctx.ContextText(r)}) {
		t.Fatalf("the agent got %q", got)
	}
}

func TestSubmitIsIdempotentByID(t *testing.T) {
	p := readyPane()
	s := newService(t, func(o *Options) { o.Pane = p })
	first := submit(t, s, text("m1", "hi"))
	deliver(t, s)
	if again := submit(t, s, text("m1", "hi")); again.Seq != first.Seq || again.Delivery != Submitted {
		t.Fatalf("again: %+v", again)
	}
	deliver(t, s)
	if got := p.submitted(); len(got) != 1 {
		t.Fatalf("delivered %q", got)
	}
	if _, err := s.Submit(t.Context(), api, text("m1", "other")); !errors.Is(err, ErrOtherMessage) {
		t.Fatalf("another message of that ID: %v", err)
	}
}

func TestWhatThePaneCannotTakeStaysQueuedWithItsReason(t *testing.T) {
	for reason, state := range map[string]PaneState{
		"does not answer": {Unknown: true},
		"no pane runs":    {},
		"asks a question": {Live: true, Ready: true, Asking: true},
		"half typed":      {Live: true, Ready: true, Draft: true},
		"turn's end":      {Live: true, Ready: true, Busy: true},
		"starting up":     {Live: true, Reason: "starting up"},
	} {
		t.Run(reason, func(t *testing.T) {
			p := &pane{state: state}
			s := newService(t, func(o *Options) { o.Pane = p })
			seq := submit(t, s, text("m1", "hi")).Seq
			deliver(t, s)
			e := entry(t, s, seq)
			if e.Delivery != Queued || !strings.Contains(e.Reason, reason) || len(p.pastes) != 0 {
				t.Fatalf("state %s, reason %q, pastes %q", e.Delivery, e.Reason, p.pastes)
			}
			p.set(func(p *pane) { p.state = PaneState{Live: true, Ready: true} })
			deliver(t, s)
			if e := entry(t, s, seq); e.Delivery != Submitted || e.Reason != "" {
				t.Fatalf("afterwards: %s %q", e.Delivery, e.Reason)
			}
		})
	}
}

func TestABusyAgentIsSteeredWhereItTakesIt(t *testing.T) {
	p := readyPane()
	p.state.Busy, p.steers = true, true
	s := newService(t, func(o *Options) { o.Pane = p })
	submit(t, s, record(t, "save", shellctx.Record{Command: "ls"}))
	seq := submit(t, s, record(t, "ask", shellctx.Record{Command: "make", TriggerAgent: true})).Seq
	deliver(t, s)
	if e := entry(t, s, seq); e.Delivery != Submitted || !e.Steering {
		t.Fatalf("%+v", e)
	}
	// The turn that it would have steered is over: it gets a turn of its own.
	p.set(func(p *pane) { p.state.Busy = false })
	late := submit(t, s, record(t, "late", shellctx.Record{Command: "make", TriggerAgent: true})).Seq
	deliver(t, s)
	if e := entry(t, s, late); e.Delivery != Submitted || e.Steering {
		t.Fatalf("%+v", e)
	}
	// A save alone is typed into no turn, whatever runs.
	p.set(func(p *pane) { p.state.Busy = true })
	submit(t, s, record(t, "save2", shellctx.Record{Command: "pwd"}))
	deliver(t, s)
	if got := p.submitted(); len(got) != 2 {
		t.Fatalf("the agent got %q", got)
	}
}

func TestARefusedPasteStaysQueuedAndFreesItsContext(t *testing.T) {
	p := readyPane()
	p.pasteErr = fmt.Errorf("the pane is dead: %w", ErrRefused)
	s := newService(t, func(o *Options) { o.Pane = p })
	r := shellctx.Record{Command: "ls"}
	submit(t, s, record(t, "r1", r))
	seq := submit(t, s, text("m1", "hi")).Seq
	deliver(t, s)
	if e := entry(t, s, seq); e.Delivery != Queued || !strings.Contains(e.Reason, "the pane is dead") {
		t.Fatalf("%+v", e)
	}
	p.set(func(p *pane) { p.pasteErr = nil })
	deliver(t, s)
	if got := p.submitted(); !reflect.DeepEqual(got, []string{shellctx.ContextText(r) + "\n\nhi"}) {
		t.Fatalf("the agent got %q", got)
	}
}

func TestUncertainOutcomesAreUnconfirmedAndNeverRepeated(t *testing.T) {
	for name, change := range map[string]func(*pane){
		"paste without an answer": func(p *pane) { p.pasteErr = errors.New("no answer") },
		"Enter without an answer": func(p *pane) { p.enterErr = errors.New("no answer") },
		"a question before Enter": func(p *pane) { p.onPaste = func() { p.state.Asking = true } },
		"the pane dies":           func(p *pane) { p.onPaste = func() { p.state = PaneState{} } },
		"no proof":                func(p *pane) { p.proof = func(string) (bool, error) { return false, errors.New("no transcript") } },
		"proof of the contrary":   func(p *pane) { p.proof = func(string) (bool, error) { return false, nil } },
	} {
		t.Run(name, func(t *testing.T) {
			p := readyPane()
			change(p)
			s := newService(t, func(o *Options) { o.Pane = p })
			seq := submit(t, s, text("m1", "hi")).Seq
			deliver(t, s)
			if e := entry(t, s, seq); e.Delivery != Unconfirmed || e.Reason == "" {
				t.Fatalf("state %s, reason %q", e.Delivery, e.Reason)
			}
			typed := len(p.pastes)
			p.set(func(p *pane) {
				p.pasteErr, p.enterErr, p.onPaste = nil, nil, nil
				p.state = PaneState{Live: true, Ready: true}
			})
			deliver(t, s)
			if len(p.pastes) != typed || typed > 1 {
				t.Fatalf("typed %d times, then %d", typed, len(p.pastes))
			}
		})
	}
}

func TestNoEnterWhileAQuestionIsOpen(t *testing.T) {
	p := readyPane()
	p.onPaste = func() { p.state.Asking = true }
	s := newService(t, func(o *Options) { o.Pane = p })
	submit(t, s, text("m1", "hi"))
	deliver(t, s)
	if got := p.submitted(); len(got) != 0 {
		t.Fatalf("Enter was pressed into the question: %q", got)
	}
}

func TestUnconfirmedIsProvenByTheTranscriptLater(t *testing.T) {
	p := readyPane()
	p.proof = func(string) (bool, error) { return false, errors.New("no transcript yet") }
	now := time.Unix(1_800_000_000, 0)
	s := newService(t, func(o *Options) { o.Pane, o.Now = p, func() time.Time { return now } })
	seq := submit(t, s, text("m1", "hi")).Seq
	deliver(t, s)
	p.set(func(p *pane) { p.proof = nil })
	deliver(t, s)
	now = now.Add(checkInterval)
	deliver(t, s)
	if e := entry(t, s, seq); e.Delivery != Submitted {
		t.Fatalf("state %s", e.Delivery)
	}
}

func TestTheUsersWord(t *testing.T) {
	p := readyPane()
	s := newService(t, func(o *Options) { o.Pane = p })
	unconfirmed := func(id string) int64 {
		p.set(func(p *pane) { p.proof = func(string) (bool, error) { return false, nil } })
		submit(t, s, record(t, id+"-context", shellctx.Record{Command: "ls"}))
		seq := submit(t, s, text(id, "hi "+id)).Seq
		deliver(t, s)
		p.set(func(p *pane) { p.proof = nil })
		return seq
	}
	ctx := t.Context()
	repeated := unconfirmed("repeat")
	if err := s.Retry(ctx, repeated); err != nil {
		t.Fatal(err)
	}
	deliver(t, s)
	if got := p.submitted(); len(got) != 2 || got[0] != got[1] || !strings.Contains(got[1], "[shell_context]") {
		t.Fatalf("after the repetition the agent has %q", got)
	}
	confirmed, discarded := unconfirmed("confirm"), unconfirmed("discard")
	if err := errors.Join(s.Confirm(ctx, confirmed), s.Discard(ctx, discarded)); err != nil {
		t.Fatal(err)
	}
	if got := []Delivery{entry(t, s, repeated).Delivery, entry(t, s, confirmed).Delivery, entry(t, s, discarded).Delivery}; !reflect.DeepEqual(got, []Delivery{Submitted, Submitted, Failed}) {
		t.Fatal(got)
	}
	for _, err := range []error{s.Retry(ctx, confirmed), s.Confirm(ctx, discarded), s.Discard(ctx, confirmed)} {
		if !errors.Is(err, errMoved) {
			t.Errorf("a word on a message in another state: %v", err)
		}
	}
	if err := s.Retry(ctx, 1<<40); !errors.Is(err, ErrNoMessage) {
		t.Errorf("a word on no message: %v", err)
	}
	// What the discarded one carried is not typed again by itself.
	typed := len(p.submitted())
	submit(t, s, text("next", "next"))
	deliver(t, s)
	if got := p.submitted(); len(got) != typed+1 || got[typed] != "next" {
		t.Fatalf("the next message went out as %q", got[typed:])
	}
}

func TestLeavingAfterThePasteStillNotesTheOutcome(t *testing.T) {
	p := readyPane()
	ctx, cancel := context.WithCancel(t.Context())
	p.onPaste = cancel
	p.proof = func(string) (bool, error) { return false, context.Canceled }
	s := newService(t, func(o *Options) { o.Pane = p })
	seq := submit(t, s, text("m1", "hi")).Seq
	if err := s.Deliver(ctx, api); !errors.Is(err, context.Canceled) {
		t.Fatalf("Deliver: %v", err)
	}
	if e := entry(t, s, seq); e.Delivery != Unconfirmed || len(p.submitted()) != 1 {
		t.Fatalf("state %s, turns %q", e.Delivery, p.submitted())
	}
}

func TestProseIsNotTakenForACommand(t *testing.T) {
	p := readyPane()
	s := newService(t, func(o *Options) { o.Pane = p })
	r := shellctx.Record{Command: "ls"}
	submit(t, s, text("m1", "!important: read this"))
	submit(t, s, text("m2", "/etc/hosts is wrong"))
	submit(t, s, record(t, "r", r))
	submit(t, s, text("m3", "/compact"))
	submit(t, s, text("m4", "/usr too"))
	deliver(t, s)
	want := []string{
		"Message:\n!important: read this", "Message:\n/etc/hosts is wrong",
		shellctx.ContextText(r) + "\n\n/compact", "Message:\n/usr too",
	}
	if got := p.submitted(); !reflect.DeepEqual(got, want) {
		t.Fatalf("the agent got %q", got)
	}
}

func TestAnsweredAndWhatWaitedForTheTurnsEnd(t *testing.T) {
	p := readyPane()
	s := newService(t, func(o *Options) { o.Pane = p })
	submit(t, s, text("m1", "hi"))
	deliver(t, s)
	answer := protocol.NewText("a1", protocol.Assistant, "hello", time.Unix(1_800_000_000, 0))
	if err := errors.Join(s.Answered(t.Context(), api, time.Now(), answer), s.Answered(t.Context(), api, time.Now(), answer)); err != nil {
		t.Fatal(err)
	}
	if got := states(t, s); !reflect.DeepEqual(got, []string{"m1 answered", "a1 "}) {
		t.Fatal(got)
	}
}

// A quick agent's turn ends before its beginning is proven, or while nobody
// looks; a turn that ended before a message was typed did not answer it.
func TestTurnsEndTellsWhatItAnswered(t *testing.T) {
	p := readyPane()
	now := time.Unix(1_800_000_000, 0)
	s := newService(t, func(o *Options) { o.Pane, o.Now = p, func() time.Time { return now } })
	ended := func(at time.Time) {
		if err := s.Answered(t.Context(), api, at); err != nil {
			t.Error(err)
		}
	}
	p.onEnter = func() { ended(now) }
	submit(t, s, record(t, "r1", shellctx.Record{Command: "ls"}))
	submit(t, s, text("quick", "hi"))
	deliver(t, s)
	p.set(func(p *pane) { p.onEnter = nil })
	now = now.Add(time.Minute)
	submit(t, s, record(t, "r2", shellctx.Record{Command: "ls"}))
	submit(t, s, text("slow", "hi again"))
	deliver(t, s)
	ended(now.Add(-time.Second)) // the first turn's end is told once more
	if got, want := states(t, s), []string{"r1 answered", "quick answered", "r2 submitted", "slow submitted"}; !reflect.DeepEqual(got, want) {
		t.Fatal(got)
	}
	ended(now.Add(time.Hour)) // by a clock that is ahead
	now = now.Add(time.Minute)
	submit(t, s, text("next", "and again"))
	deliver(t, s)
	if got, want := states(t, s), []string{"r1 answered", "quick answered", "r2 answered", "slow answered", "next submitted"}; !reflect.DeepEqual(got, want) {
		t.Fatal(got)
	}
}

func TestRunDeliversWhatIsSubmittedAndWhatBecomesPossible(t *testing.T) {
	p := readyPane()
	s := newService(t, func(o *Options) { o.Pane = p })
	waited := submit(t, s, text("m0", "from before")).Seq
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	eventually(t, "what was queued before goes out", func() bool { return entry(t, s, waited).Delivery == Submitted })
	p.set(func(p *pane) { p.state.Asking = true })
	seq := submit(t, s, text("m1", "hi")).Seq
	eventually(t, "the reason is noted", func() bool { return entry(t, s, seq).Reason != "" })
	p.set(func(p *pane) { p.state.Asking = false })
	s.Ready(api)
	eventually(t, "it goes out", func() bool { return entry(t, s, seq).Delivery == Submitted })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
