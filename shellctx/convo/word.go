package convo

import (
	"context"
	"fmt"
	"time"

	"cellmux/shellctx/protocol"
)

// The user's word on a message. Each takes its place in the order and fails
// when the message is not in a state that the word is about.

// Retry queues an unconfirmed or failed message again: the user accepts that
// the agent may get it twice. Its context rides again.
func (s *Service) Retry(ctx context.Context, seq int64) error {
	if err := s.say(ctx, seq, Queued, "", Unconfirmed, Failed); err != nil {
		return err
	}
	s.look()
	return nil
}

// Confirm says that the agent has got an unconfirmed message.
func (s *Service) Confirm(ctx context.Context, seq int64) error {
	return s.say(ctx, seq, Submitted, "", Unconfirmed)
}

// Discard gives a queued or unconfirmed message up. Context that went out with
// an unconfirmed one counts as seen, since it may have been.
func (s *Service) Discard(ctx context.Context, seq int64) error {
	return s.say(ctx, seq, Failed, "taken back", Queued, Unconfirmed)
}

func (s *Service) say(ctx context.Context, seq int64, to Delivery, reason string, from ...Delivery) error {
	entry, err := s.store.entry(ctx, seq)
	if err == nil {
		err = s.store.settle(ctx, seq, to, reason, from...)
	}
	if err != nil {
		return fmt.Errorf("make message %d %s: %w", seq, to, err)
	}
	s.changed(entry.Session)
	return nil
}

// Ready tells that an agent can perhaps take what is queued for it: its turn
// ended, its question was answered, its pane came up.
func (s *Service) Ready(t Target) { s.look() }

// Answered tells that a turn of an agent ended at some time: what was submitted
// before is answered, and the answers, if any are known, are kept with their
// IDs. What waits for the turn's end goes out.
func (s *Service) Answered(ctx context.Context, t Target, ended time.Time, answers ...protocol.ChatMessage) error {
	if _, err := s.store.append(ctx, t, answers, false); err != nil {
		return fmt.Errorf("keep the answers of %s: %w", t.Session, err)
	}
	if err := s.store.answered(ctx, t.Session, ended); err != nil {
		return fmt.Errorf("note the end of a turn of %s: %w", t.Session, err)
	}
	s.changed(t.Session)
	s.look()
	return nil
}
