package convo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cellmux/cell/lock"
)

const (
	stateTimeout = 3 * time.Second  // to ask what a pane can take
	typeTimeout  = 15 * time.Second // to paste, settle and press Enter
	checkTimeout = 2 * time.Second  // to look for an old message in a transcript

	// checkInterval is between two looks for the same message: each may take
	// checkTimeout, during which the pane is locked.
	checkInterval = 30 * time.Second
)

// Deliver hands over what is queued in a conversation, in order, as far as the
// agent takes it now, and blocks until then: for each message the agent's settle
// time and the wait for proof, for a headless turn the whole turn. What cannot
// go stays queued, with the reason in its entry. The error is the database's or
// the context's; once a paste has begun, ending ctx only ends the wait for proof.
//
// One process at a time delivers to a pane; others wait here.
func (s *Service) Deliver(ctx context.Context, t Target) error {
	held, err := lock.Wait(ctx, s.lockPath(t.Session))
	if err != nil {
		return fmt.Errorf("deliver to %s: %w", t.Session, err)
	}
	defer held.Release()
	if err := s.adopt(ctx, t); err != nil {
		return fmt.Errorf("look at what was left behind in %s: %w", t.Session, err)
	}
	for {
		l, found, err := s.store.queued(ctx, t.Session)
		if err != nil {
			return fmt.Errorf("read what is queued for %s: %w", t.Session, err)
		}
		if !found {
			return nil
		}
		moved, err := s.deliver(ctx, t, l)
		if err != nil {
			return fmt.Errorf("deliver message %d to %s: %w", l.seq, t.Session, err)
		}
		if !moved || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// lockPath names the lock of a conversation's pane. Session IDs are UUIDs, but
// nothing here depends on it.
func (s *Service) lockPath(session string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, session)
	return filepath.Join(s.options.LockDir, "deliver-"+safe+".lock")
}

// adopt settles what an attempt left behind whose process is gone: the lock is
// ours, so no attempt is under way. Whether it was typed is not known, so it is
// unconfirmed, and stays so unless the agent's transcript proves it.
func (s *Service) adopt(ctx context.Context, t Target) error {
	left, err := s.store.letters(ctx, t.Session, Typed, 100)
	if err != nil {
		return err
	}
	for _, l := range left {
		reason := map[string]string{
			stepIntent:  "cellmux ended while it was about to type this",
			stepPasted:  "cellmux ended between the text and its Enter: it may stand in the agent's box",
			stepEntered: "cellmux ended before it saw the agent take this",
			stepTurn:    "cellmux ended during the turn",
		}[l.step]
		if l.step == stepTurn {
			err = s.store.endTurn(ctx, t, l, Turn{Error: reason}, Unconfirmed)
		} else {
			err = s.store.settle(ctx, l.seq, Unconfirmed, reason, Typed)
		}
		if err != nil {
			return err
		}
		s.changed(t.Session)
	}
	return s.check(ctx, t)
}

// check looks for unconfirmed messages in the agent's transcript.
func (s *Service) check(ctx context.Context, t Target) error {
	if s.options.Pane == nil {
		return nil
	}
	open, err := s.store.letters(ctx, t.Session, Unconfirmed, 100)
	if err != nil {
		return err
	}
	for _, l := range open {
		if !s.checks.due(l.seq, s.options.Now()) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, checkTimeout)
		s.options.crash("before the check")
		proven, err := s.options.Pane.Submitted(limited, t, l.payload, l.typed)
		s.options.crash("after the check")
		cancel()
		if err != nil || !proven {
			continue
		}
		// The user may have had a word meanwhile; theirs stands.
		if err := s.settled(ctx, t, l, Submitted, ""); err != nil && !errors.Is(err, errMoved) {
			return err
		}
	}
	return nil
}

// checks remembers when unconfirmed messages were last looked for.
type checks struct {
	mu   sync.Mutex
	last map[int64]time.Time
}

func (c *checks) due(seq int64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, looked := c.last[seq]; looked && now.Sub(last) < checkInterval {
		return false
	}
	if c.last == nil {
		c.last = map[int64]time.Time{}
	}
	c.last[seq] = now
	return true
}

// deliver tries one message and reports whether it left the queue.
func (s *Service) deliver(ctx context.Context, t Target, l letter) (bool, error) {
	state := s.paneState(ctx, t)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if !state.Live && !state.Unknown && s.options.Headless != nil {
		return s.runTurn(ctx, t, l)
	}
	steering := state.Busy && s.options.Pane != nil && s.options.Pane.SteersOnEnter(t)
	if reason := waits(t, state, steering); reason != "" {
		return false, s.explain(ctx, t, l, reason)
	}
	return s.typeIn(ctx, t, l, steering)
}

func (s *Service) paneState(ctx context.Context, t Target) PaneState {
	if s.options.Pane == nil {
		return PaneState{}
	}
	limited, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	s.options.crash("before the state")
	state, err := s.options.Pane.State(limited, t)
	s.options.crash("after the state")
	if err != nil {
		return PaneState{Unknown: true, Reason: err.Error()}
	}
	return state
}

// waits says why nothing may be typed now; "" when it may.
func waits(t Target, p PaneState, steering bool) string {
	agent := t.Agent
	if agent == "" {
		agent = "the agent"
	}
	switch {
	case p.Unknown:
		return join("the pane does not answer", p.Reason)
	case !p.Live:
		return join(fmt.Sprintf("no pane runs %s:%d", t.Cell, t.Slot), p.Reason)
	case p.Asking:
		return agent + " asks a question, which Enter would answer: answer it first"
	case p.Draft:
		return "something is half typed in " + agent + "'s box: send or clear it first"
	case p.Busy && !steering:
		return agent + " works: it goes out at the turn's end"
	case !p.Ready:
		return join(agent+" takes no text yet", p.Reason)
	}
	return ""
}

func join(sentence, detail string) string {
	if detail == "" {
		return sentence
	}
	return sentence + ": " + detail
}

// typeIn is the pane delivery: intent, paste, Enter, proof.
func (s *Service) typeIn(ctx context.Context, t Target, l letter, steering bool) (bool, error) {
	intended, err := s.store.intend(ctx, &l, stepIntent, steering)
	if err != nil || !intended {
		return intended, err
	}
	s.changed(t.Session)
	// From here on the outcome is noted even when the caller leaves.
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), typeTimeout)
	defer cancel()

	s.options.crash("before the paste")
	err = s.options.Pane.Paste(work, t, l.payload)
	s.options.crash("after the paste")
	switch {
	case errors.Is(err, ErrRefused):
		return false, s.settled(work, t, l, Queued, "the pane refused the text: "+err.Error())
	case err != nil:
		return true, s.settled(work, t, l, Unconfirmed, "it may have been typed: "+err.Error())
	}
	if err := s.store.advance(work, l, stepPasted); err != nil {
		return true, err
	}
	// A question may have come up since; Enter would answer it.
	if state := s.paneState(work, t); state.Asking || state.Unknown || !state.Live {
		reason := "the text stands in the agent's box, but Enter was not pressed: "
		switch {
		case state.Unknown:
			reason += "the pane does not answer"
		case !state.Live:
			reason += "the pane ended"
		default:
			reason += "the agent asks a question"
		}
		return true, s.settled(work, t, l, Unconfirmed, reason)
	}
	s.options.crash("before Enter")
	err = s.options.Pane.Enter(work, t)
	s.options.crash("after Enter")
	if err != nil {
		return true, s.settled(work, t, l, Unconfirmed, "the text stands in the agent's box, Enter may not have been pressed: "+err.Error())
	}
	if err := s.store.advance(work, l, stepEntered); err != nil {
		return true, err
	}
	return true, s.prove(ctx, t, l)
}

func (s *Service) prove(ctx context.Context, t Target, l letter) error {
	limited, cancel := context.WithTimeout(ctx, s.options.ProofTimeout)
	defer cancel()
	s.options.crash("before the proof")
	proven, err := s.options.Pane.Submitted(limited, t, l.payload, l.typed)
	s.options.crash("after the proof")
	switch {
	case err == nil && proven:
		return s.settled(ctx, t, l, Submitted, "")
	case err == nil:
		return s.settled(ctx, t, l, Unconfirmed, "the agent did not take it: it may stand in its box")
	default:
		return s.settled(ctx, t, l, Unconfirmed, "no proof that the agent took it: "+err.Error())
	}
}

// settled notes the outcome of an attempt, although ctx may have ended.
func (s *Service) settled(ctx context.Context, t Target, l letter, to Delivery, reason string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), typeTimeout)
	defer cancel()
	err := s.store.settle(ctx, l.seq, to, reason, Typed, Unconfirmed)
	s.options.Log.Info("delivery", "session", t.Session, "message", l.seq, "state", string(to), "error", err != nil)
	s.changed(t.Session)
	return err
}

func (s *Service) explain(ctx context.Context, t Target, l letter, reason string) error {
	changed, err := s.store.explain(ctx, l.seq, reason)
	if changed {
		s.changed(t.Session)
	}
	return err
}
