package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cellmux/engine/agent"
	"cellmux/engine/tmux"
	"cellmux/shellctx/convo"
)

// terminal is one pane that shows what its box function draws, and notes what
// was done to it.
type terminal struct {
	mu       sync.Mutex
	list     tmux.List
	text     string // in the agent's box
	asks     bool
	did      []string
	pasteErr error
	enter    func(*terminal) // what Enter does; nil empties the box
}

func (t *terminal) Refresh(context.Context) tmux.List { return t.list }

func (t *terminal) Capture(context.Context, string, int) (tmux.Screen, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rule := strings.Repeat("─", 80)
	rows := []string{"● Earlier answer", rule, "❯ " + t.text, rule, "  ? for shortcuts"}
	if t.asks {
		rows = []string{" Do you want to proceed?", " ❯ 1. Yes", "   2. No"}
	}
	return tmux.Screen{Pane: "%1", Rows: rows, Width: 80, Height: len(rows)}, nil
}

func (t *terminal) Paste(_ context.Context, pane, text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pasteErr != nil {
		return t.pasteErr
	}
	t.did, t.text = append(t.did, "paste "+pane), text
	return nil
}

func (t *terminal) Keys(_ context.Context, pane string, keys ...string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.did = append(t.did, strings.Join(keys, " "))
	if t.enter != nil {
		t.enter(t)
	} else {
		t.text = ""
	}
	return nil
}

func newTransport() (*Transport, *terminal, *watcher, convo.Target) {
	term := &terminal{list: tmux.List{Known: true, Panes: []tmux.Pane{{ID: "%1", Cell: "api"}}}}
	w := &watcher{status: map[string]agent.Status{"api:0": {State: agent.Idle}}, changes: make(chan struct{}, 1)}
	target := convo.Target{Session: "s", Cell: "api", Slot: 0, Agent: "claude"}
	return NewTransport(term, agent.New(agent.Options{}), w), term, w, target
}

func TestStateOfAPane(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*terminal, *watcher, *convo.Target)
		want   convo.PaneState
	}{
		{"idle", func(*terminal, *watcher, *convo.Target) {}, convo.PaneState{Live: true, Ready: true}},
		{"half typed", func(p *terminal, _ *watcher, _ *convo.Target) { p.text = "half" }, convo.PaneState{Live: true, Ready: true, Draft: true}},
		{"a question on the screen that the agent's own word does not know yet",
			func(p *terminal, _ *watcher, _ *convo.Target) { p.asks = true }, convo.PaneState{Live: true, Asking: true}},
		{"a question by the agent's word that the screen does not show",
			func(_ *terminal, w *watcher, _ *convo.Target) { w.status["api:0"] = agent.Status{State: agent.Waiting} }, convo.PaneState{Live: true, Asking: true}},
		{"works", func(_ *terminal, w *watcher, _ *convo.Target) { w.status["api:0"] = agent.Status{State: agent.Working} }, convo.PaneState{Live: true, Ready: true, Busy: true}},
		{"no answer", func(p *terminal, _ *watcher, _ *convo.Target) { p.list.Known = false }, convo.PaneState{Unknown: true}},
		{"dead", func(p *terminal, _ *watcher, _ *convo.Target) { p.list.Panes[0].Dead = true }, convo.PaneState{}},
		{"none", func(p *terminal, _ *watcher, _ *convo.Target) { p.list.Panes = nil }, convo.PaneState{}},
		{"a shell", func(_ *terminal, _ *watcher, t *convo.Target) { t.Agent = "shell" }, convo.PaneState{Live: true}},
	} {
		transport, term, w, target := newTransport()
		c.change(term, w, &target)
		got, err := transport.State(t.Context(), target)
		got.Reason = ""
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

func TestEnterComesAfterTheTextStandsInTheBox(t *testing.T) {
	transport, term, _, target := newTransport()
	began := time.Now()
	if err := transport.Paste(t.Context(), target, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := transport.Enter(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(term.did, ", "); got != "paste %1, Enter" || time.Since(began) < leastSettle {
		t.Errorf("%s after %v", got, time.Since(began))
	}
}

// direct is an agent's own interface that writes into a terminal's box.
type direct struct {
	terminal  *terminal
	appendErr error
	deaf      int    // to so many submissions
	then      string // what stands in the box after one
}

func (d *direct) Append(_ context.Context, text string) error {
	d.terminal.mu.Lock()
	defer d.terminal.mu.Unlock()
	if d.appendErr != nil {
		return d.appendErr
	}
	d.terminal.did, d.terminal.text = append(d.terminal.did, "append"), text
	return nil
}

func (d *direct) Submit(context.Context) error {
	d.terminal.mu.Lock()
	defer d.terminal.mu.Unlock()
	d.terminal.did = append(d.terminal.did, "submit")
	if d.deaf--; d.deaf < 0 {
		d.terminal.text = d.then
	}
	return nil
}

func TestAgentsOwnInterfaceIsUsedInPlaceOfItsTerminal(t *testing.T) {
	transport, term, w, target := newTransport()
	own := &direct{terminal: term}
	w.direct = own
	if err := errors.Join(transport.Paste(t.Context(), target, "hello"), transport.Enter(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(term.did, ", "); got != "append, submit" {
		t.Errorf("did %s, want no key and no paste", got)
	}
	// A refusal proves that nothing was typed; no answer does not.
	own.appendErr = fmt.Errorf("append: %w", agent.ErrNotTaken)
	if err := transport.Paste(t.Context(), target, "x"); !errors.Is(err, convo.ErrRefused) {
		t.Errorf("a refusal is %v", err)
	}
	own.appendErr = context.DeadlineExceeded
	if err := transport.Paste(t.Context(), target, "x"); err == nil || errors.Is(err, convo.ErrRefused) {
		t.Errorf("no answer is %v", err)
	}
	// Text that tmux pasted gets tmux's Enter, although the interface answers by
	// now.
	w.direct, term.did = nil, nil
	if err := transport.Paste(t.Context(), target, "hello"); err != nil {
		t.Fatal(err)
	}
	w.direct = &direct{terminal: term}
	if err := transport.Enter(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(term.did, ", "); got != "paste %1, Enter" {
		t.Error(got)
	}
}

func TestSubmissionThatWasLostIsRepeatedWhileTheTextStandsInTheBox(t *testing.T) {
	for _, c := range []struct {
		name string
		deaf int
		then string
		want string
	}{
		{"taken", 0, "", "append, submit"},
		{"lost once", 1, "", "append, submit, submit"},
		{"the user types at once", 0, "a next one", "append, submit"},
	} {
		transport, term, w, target := newTransport()
		w.direct = &direct{terminal: term, deaf: c.deaf, then: c.then}
		if err := errors.Join(transport.Paste(t.Context(), target, "hello"), transport.Enter(t.Context(), target)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(term.did, ", "); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestEnterIsNotTakenByAListOfCompletions(t *testing.T) {
	for text, want := range map[string]string{
		"what is in @README.md": "what is in @README.md ",
		"a line\n@":             "a line\n@ ",
		"mail me@example.org":   "mail me@example.org ",
		"use $skill":            "use $skill ",
		"@README.md is wrong":   "@README.md is wrong",
		"plain":                 "plain",
		"":                      "",
	} {
		transport, term, _, target := newTransport()
		if err := transport.Paste(t.Context(), target, text); err != nil || term.text != want {
			t.Errorf("%q goes in as %q, %v", text, term.text, err)
		}
	}
}

func TestNothingIsPastedIntoAQuestionThatCameUpMeanwhile(t *testing.T) {
	for name, ask := range map[string]func(*terminal, *watcher){
		"on the screen":     func(p *terminal, _ *watcher) { p.asks = true },
		"by its own word":   func(_ *terminal, w *watcher) { w.status["api:0"] = agent.Status{State: agent.Waiting} },
		"with an interface": func(p *terminal, w *watcher) { p.asks, w.direct = true, &direct{terminal: p} },
	} {
		transport, term, w, target := newTransport()
		if s, err := transport.State(t.Context(), target); err != nil || !s.Ready {
			t.Fatalf("%+v, %v", s, err)
		}
		ask(term, w)
		if err := transport.Paste(t.Context(), target, "hello"); !errors.Is(err, convo.ErrRefused) || len(term.did) != 0 {
			t.Errorf("%s: %v, did %q", name, err, term.did)
		}
	}
}

func TestRefusalsOfTmuxLeaveTheMessageQueued(t *testing.T) {
	for _, err := range []error{tmux.ErrDead, tmux.ErrGone, tmux.ErrNoServer} {
		transport, term, _, target := newTransport()
		term.pasteErr = fmt.Errorf("paste: %w", err)
		if got := transport.Paste(t.Context(), target, "x"); !errors.Is(got, convo.ErrRefused) {
			t.Errorf("%v: %v", err, got)
		}
	}
	transport, term, _, target := newTransport()
	term.pasteErr = tmux.ErrNoAnswer
	if got := transport.Paste(t.Context(), target, "x"); got == nil || errors.Is(got, convo.ErrRefused) {
		t.Errorf("without an answer nobody knows whether it was pasted: %v", got)
	}
}

func TestAgentsWordProvesASubmission(t *testing.T) {
	since := time.Now()
	for _, c := range []struct {
		name   string
		status agent.Status
		text   string
		proven bool
	}{
		{"its words, folded and wrapped", agent.Status{TurnBegan: since, Prompt: `<pasted_content id="ab">fix  the "test"</pasted_content>`}, "fix the\n\"test\"", true},
		{"no words", agent.Status{TurnBegan: since}, "fix", true},
		{"another message's words", agent.Status{TurnBegan: since, Prompt: "something else"}, "fix the test", false},
		{"a turn before", agent.Status{TurnBegan: since.Add(-time.Minute), Prompt: "fix the test"}, "fix the test", false},
	} {
		transport, _, w, target := newTransport()
		w.status["api:0"] = c.status
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		proven, err := transport.Submitted(ctx, target, c.text, since)
		cancel()
		if proven != c.proven || proven == (err != nil) {
			t.Errorf("%s: %v, %v", c.name, proven, err)
		}
	}
}

func TestBoxThatHeldTheTextAndIsEmptyProvesIt(t *testing.T) {
	transport, _, _, target := newTransport()
	since := time.Now()
	if err := transport.Paste(t.Context(), target, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := transport.Enter(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if proven, err := transport.Submitted(t.Context(), target, "hello", since); !proven || err != nil {
		t.Errorf("%v, %v", proven, err)
	}
}

func TestBoxThatStillHoldsTheTextProvesTheContrary(t *testing.T) {
	transport, term, _, target := newTransport()
	term.enter = func(p *terminal) { p.text += "\n" } // Enter was taken for a line end
	since := time.Now()
	if err := errors.Join(transport.Paste(t.Context(), target, "hello"), transport.Enter(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if proven, err := transport.Submitted(ctx, target, "hello", since); proven || err != nil {
		t.Errorf("%v, %v", proven, err)
	}
}

func TestTextThatNeverStoodInTheBoxIsNotCalledSubmitted(t *testing.T) {
	transport, _, _, target := newTransport() // an empty box: the agent dropped the paste
	ctx, cancel := context.WithTimeout(t.Context(), wordPatience+500*time.Millisecond)
	defer cancel()
	if proven, err := transport.Submitted(ctx, target, "hello", time.Now()); proven || err == nil {
		t.Errorf("%v, %v", proven, err)
	}
}

func TestQuestionThatComesUpAfterEnterIsNoProof(t *testing.T) {
	transport, term, _, target := newTransport()
	term.enter = func(p *terminal) { p.asks = true }
	since := time.Now()
	if err := errors.Join(transport.Paste(t.Context(), target, "hello"), transport.Enter(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), wordPatience+500*time.Millisecond)
	defer cancel()
	if proven, err := transport.Submitted(ctx, target, "hello", since); proven || err == nil {
		t.Errorf("%v, %v", proven, err)
	}
}

func TestTurnThatBeganWithEnterProvesItOfAnAgentThatTellsNoTurns(t *testing.T) {
	for name, c := range map[string]struct {
		before, after agent.State
		proven        bool
	}{
		"it works now":      {agent.Idle, agent.Working, true},
		"it worked before":  {agent.Working, agent.Working, false},
		"it still is idle":  {agent.Idle, agent.Idle, false},
		"it asks something": {agent.Idle, agent.Waiting, false},
	} {
		transport, term, w, target := newTransport()
		w.status["api:0"] = agent.Status{State: c.before}
		term.enter = func(*terminal) { // the line stays on the screen
			w.mu.Lock()
			defer w.mu.Unlock()
			w.status["api:0"] = agent.Status{State: c.after}
		}
		since := time.Now()
		if err := errors.Join(transport.Paste(t.Context(), target, "hello"), transport.Enter(t.Context(), target)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		proven, err := transport.Submitted(ctx, target, "hello", since)
		cancel()
		if proven != c.proven || c.after == agent.Waiting && err == nil {
			t.Errorf("%s: %v, %v", name, proven, err)
		}
	}
}

func TestOldAttemptIsLookedUpAndNotWaitedFor(t *testing.T) {
	transport, _, _, target := newTransport()
	began := time.Now()
	if proven, err := transport.Submitted(t.Context(), target, "hello", began.Add(-time.Hour)); proven || err == nil || time.Since(began) > oldAttempt/2 {
		t.Errorf("%v, %v after %v", proven, err, time.Since(began))
	}
}
