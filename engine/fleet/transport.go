package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"cellmux/engine/agent"
	"cellmux/engine/tmux"
	"cellmux/shellctx/convo"
)

// Terminal is the part of the terminal server that types (engine/tmux).
type Terminal interface {
	Refresh(ctx context.Context) tmux.List
	Capture(ctx context.Context, pane string, offset int) (tmux.Screen, error)
	Paste(ctx context.Context, pane, text string) error
	Keys(ctx context.Context, pane string, keys ...string) error
}

// Transport hands text to a live agent pane: by the agent's own interface where
// it has one, else tmux pastes; the agent's declaration says when and how. It is
// a convo.PaneTransport, safe for concurrent use.
type Transport struct {
	terminal Terminal
	agents   *agent.Set
	watcher  Watcher
	fleet    *Fleet // nil until Of

	mu       sync.Mutex
	attempts map[string]attempt // the newest of each slot
}

// attempt is what Enter and Submitted must know of the paste before them.
type attempt struct {
	direct agent.Direct // by which the text went in; nil: tmux pasted it
	text   string
	seen   bool // the text was seen in the box before Enter
	idle   bool // no turn ran before Enter
}

func (t *Transport) note(target convo.Target, change func(*attempt)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attempts == nil {
		t.attempts = map[string]attempt{}
	}
	a := t.attempts[keyOf(target)]
	change(&a)
	t.attempts[keyOf(target)] = a
}

func (t *Transport) noted(target convo.Target) attempt {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attempts[keyOf(target)]
}

var _ convo.PaneTransport = (*Transport)(nil)

// NewTransport returns a transport.
func NewTransport(terminal Terminal, agents *agent.Set, watcher Watcher) *Transport {
	return &Transport{terminal: terminal, agents: agents, watcher: watcher}
}

// Of says whose slots the panes belong to. The fleet needs the conversations, and
// they the transport, so this comes last.
func (t *Transport) Of(f *Fleet) { t.fleet = f }

// State says what the slot's pane can take now. It asks tmux, the screen and
// the agent's own sources anew: what was known a second ago may be a question
// by now, and an Enter would answer it.
func (t *Transport) State(ctx context.Context, target convo.Target) (convo.PaneState, error) {
	a, known := t.agents.Lookup(target.Agent)
	if !known || !a.TakesMessages() {
		return convo.PaneState{Live: true, Reason: fmt.Sprintf("%s takes no messages", target.Agent)}, nil
	}
	list := t.terminal.Refresh(ctx)
	if !list.Known {
		return convo.PaneState{Unknown: true, Reason: list.Err}, nil
	}
	pane, has := panesBySlot(list)[Ref{target.Cell, target.Slot}]
	if !has || pane.Dead {
		return convo.PaneState{}, nil
	}
	if t.fleet != nil {
		if other, is := t.fleet.guestOf(Ref{target.Cell, target.Slot}); is {
			return convo.PaneState{Live: true, Reason: fmt.Sprintf("its agent is in the conversation of %s", other)}, nil
		}
	}
	box, err := t.look(ctx, target, pane)
	if err != nil {
		return convo.PaneState{Live: true, Unknown: true, Reason: err.Error()}, nil
	}
	return convo.PaneState{
		Live: true, Ready: box.Ready, Busy: box.Busy, Asking: box.Asking, Draft: box.Draft != "",
		Reason: box.Reason, Unknown: !box.Known,
	}, nil
}

func (t *Transport) look(ctx context.Context, target convo.Target, pane tmux.Pane) (agent.Box, error) {
	a, known := t.agents.Lookup(target.Agent)
	if !known {
		return agent.Box{}, fmt.Errorf("no agent is called %q", target.Agent)
	}
	screen, err := t.terminal.Capture(ctx, pane.ID, 0)
	if err != nil {
		return agent.Box{}, err
	}
	t.watcher.Read(ctx)
	return a.Box(agent.Look{Rows: screen.Rows, Title: pane.Title}, t.watcher.Status(keyOf(target))), nil
}

func keyOf(target convo.Target) string { return Ref{target.Cell, target.Slot}.String() }

// Paste puts text into the agent's box: by its own interface, else as one
// bracketed paste.
func (t *Transport) Paste(ctx context.Context, target convo.Target, text string) error {
	pane, err := t.pane(ctx, target)
	if err != nil {
		return err
	}
	// The state that let this attempt begin is as old as the writing of it.
	if box, err := t.look(ctx, target, pane); err == nil && box.Asking {
		return fmt.Errorf("%w: %s asks a question", convo.ErrRefused, target.Agent)
	}
	text = closed(text)
	direct, has := t.watcher.Direct(keyOf(target))
	t.note(target, func(a *attempt) { *a = attempt{direct: direct, text: text} })
	if has {
		return refused(direct.Append(ctx, text))
	}
	return refused(t.terminal.Paste(ctx, pane.ID, text))
}

// closed ends the word that a text ends in, where agents would complete it: a
// list of files or of names is open then, and takes the Enter.
func closed(text string) string {
	last := text[strings.LastIndexFunc(text, unicode.IsSpace)+1:]
	if strings.ContainsAny(last, "@$") {
		return text + " "
	}
	return text
}

// Times around a paste. An agent that gets Enter too early takes it for a line
// end of the paste; how early that is depends on how busy the machine is, so
// that the text is waited for on the screen, and the agent's own time is a least.
const (
	leastSettle  = 300 * time.Millisecond
	textPatience = time.Second
	textInterval = 30 * time.Millisecond

	submitPatience = 5 * time.Second // an agent with an interface has a box that can be read
	submitInterval = 1500 * time.Millisecond
	submitTries    = 3
)

// Enter submits what is in the box, when the text stands there and after the
// agent's settle time.
func (t *Transport) Enter(ctx context.Context, target convo.Target) error {
	a, known := t.agents.Lookup(target.Agent)
	if !known {
		return fmt.Errorf("%w: no agent is called %q", convo.ErrRefused, target.Agent)
	}
	direct := t.noted(target).direct
	patience := textPatience
	if direct != nil {
		patience = submitPatience
	}
	pane, box, err := t.awaitText(ctx, target, patience)
	if err != nil {
		return err
	}
	t.note(target, func(a *attempt) { a.seen, a.idle = box.Draft != "", box.Known && !box.Busy })
	if direct != nil {
		return t.submit(ctx, target, pane, direct, t.noted(target).text)
	}
	if err := pause(ctx, max(a.Settle(), leastSettle)); err != nil {
		return err
	}
	return refused(t.terminal.Keys(ctx, pane.ID, "Enter"))
}

// submit submits by an agent's own interface. What that is told while the text
// has not reached the box is lost, on a busy machine seconds after it was
// answered; so it is told again as long as a part of the text stands there.
func (t *Transport) submit(ctx context.Context, target convo.Target, pane tmux.Pane, direct agent.Direct, text string) error {
	for range submitTries {
		if err := direct.Submit(ctx); err != nil {
			return err
		}
		for until := time.Now().Add(submitInterval); time.Now().Before(until); {
			if err := pause(ctx, textInterval); err != nil {
				return err
			}
			box, err := t.look(ctx, target, pane)
			if err == nil && !strings.Contains(letters(text), letters(box.Draft)) || err == nil && box.Draft == "" {
				return nil // it is gone; what stands there is the user's
			}
		}
	}
	return nil // the proof tells
}

// awaitText waits until the agent's box shows a text, at most for patience: not
// every agent's box can be read.
func (t *Transport) awaitText(ctx context.Context, target convo.Target, patience time.Duration) (pane tmux.Pane, box agent.Box, err error) {
	until := time.Now().Add(patience)
	for {
		if pane, err = t.pane(ctx, target); err != nil {
			return pane, agent.Box{}, err
		}
		if box, err = t.look(ctx, target, pane); err == nil && box.Draft != "" {
			return pane, box, nil
		}
		if time.Now().After(until) {
			return pane, box, nil
		}
		if err := pause(ctx, textInterval); err != nil {
			return pane, agent.Box{}, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// pane finds the live pane of a slot by its tags.
func (t *Transport) pane(ctx context.Context, target convo.Target) (tmux.Pane, error) {
	list := t.terminal.Refresh(ctx)
	if !list.Known {
		return tmux.Pane{}, fmt.Errorf("%w: %s", convo.ErrRefused, list.Err)
	}
	pane, has := panesBySlot(list)[Ref{target.Cell, target.Slot}]
	if !has || pane.Dead {
		return tmux.Pane{}, fmt.Errorf("%w: no program runs in %s", convo.ErrRefused, keyOf(target))
	}
	return pane, nil
}

// refused marks the errors with which tmux, or an agent's own interface, proves
// that nothing was typed.
func refused(err error) error {
	if errors.Is(err, tmux.ErrDead) || errors.Is(err, tmux.ErrGone) || errors.Is(err, tmux.ErrNoServer) || errors.Is(err, agent.ErrNotTaken) {
		return fmt.Errorf("%w: %w", convo.ErrRefused, err)
	}
	return err
}

const (
	proofInterval = 150 * time.Millisecond
	// clockSlack is how much earlier than ours the clock of a file's time may be.
	clockSlack = 50 * time.Millisecond
)

// errNoProof says that the agent gave no sign either way.
var errNoProof = errors.New("the agent gave no sign of it")

// Submitted looks for proof that text became a turn, until ctx ends: the agent's
// own word that a turn with it began. Of an agent that says nothing of turns, a
// turn that runs where none did before Enter, or a box that held the text before
// it and is empty and ready after it. A box that still holds it proves the
// contrary, unless a question hides it.
func (t *Transport) Submitted(ctx context.Context, target convo.Target, text string, since time.Time) (bool, error) {
	before := t.noted(target)
	tick := time.NewTicker(proofInterval)
	defer tick.Stop()
	var last agent.Box
	gone := time.Time{}
	for {
		pane, err := t.pane(ctx, target)
		if err == nil {
			last, err = t.look(ctx, target, pane)
		}
		status := t.watcher.Status(keyOf(target))
		if began(status, text, since) {
			return true, nil
		}
		if err == nil && last.Busy && before.idle && before.seen && status.TurnBegan.IsZero() {
			return true, nil
		}
		switch left := err == nil && last.Known && last.Ready && last.Draft == ""; {
		case !left || !before.seen || !status.TurnBegan.IsZero():
			gone = time.Time{}
		case gone.IsZero():
			gone = time.Now()
		case time.Since(gone) > wordPatience:
			return true, nil
		}
		if time.Since(since) > oldAttempt {
			return false, errNoProof // what was not told then is not told now
		}
		select {
		case <-ctx.Done():
			if err == nil && last.Known && !last.Asking && last.Draft != "" {
				return false, nil
			}
			return false, errNoProof
		case <-tick.C:
		}
	}
}

// oldAttempt is the age at which an attempt is looked up, and not waited for.
const oldAttempt = 30 * time.Second

// wordPatience is how long an agent that could tell of a turn is waited for,
// after its box has become empty.
const wordPatience = time.Second

// began tells whether an agent's word proves that text became a turn since
// then. Agents wrap a paste and cut what they report, so that content is
// compared, not equality.
func began(status agent.Status, text string, since time.Time) bool {
	if status.TurnBegan.IsZero() || status.TurnBegan.Before(since.Add(-clockSlack)) {
		return false
	}
	return status.Prompt == "" || strings.Contains(letters(status.Prompt), start(letters(text), 60))
}

// letters keeps the letters and digits of a text: blanks, quotes and folding are
// the agent's.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

func start(text string, runes int) string {
	for i := range text {
		if runes--; runes < 0 {
			return text[:i]
		}
	}
	return text
}

// SteersOnEnter says whether the agent takes a message while a turn runs.
func (t *Transport) SteersOnEnter(target convo.Target) bool {
	a, known := t.agents.Lookup(target.Agent)
	return known && a.SteersOnEnter()
}
