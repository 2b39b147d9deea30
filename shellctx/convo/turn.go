package convo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"cellmux/shellctx/protocol"
)

// partialInterval bounds how often a growing answer is written.
const partialInterval = 250 * time.Millisecond

// turns are the headless turns of this process.
type turns struct {
	mu     sync.Mutex
	cancel map[string]context.CancelCauseFunc // by session
}

func (t *turns) begin(session string, cancel context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel == nil {
		t.cancel = map[string]context.CancelCauseFunc{}
	}
	t.cancel[session] = cancel
}

func (t *turns) end(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.cancel, session)
}

var errCancelled = errors.New("cancelled")

// CancelTurn ends the headless turn that this process runs for a session, and
// reports whether there was one.
func (s *Service) CancelTurn(session string) bool {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	cancel, runs := s.turns.cancel[session]
	if runs {
		cancel(errCancelled)
	}
	return runs
}

// runTurn is the headless delivery: intent, one turn, its answer.
func (s *Service) runTurn(ctx context.Context, t Target, l letter) (bool, error) {
	intended, err := s.store.intend(ctx, &l, stepTurn, false)
	if err != nil || !intended {
		return intended, err
	}
	s.changed(t.Session)
	turnCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.turns.begin(t.Session, cancel)
	defer s.turns.end(t.Session)

	growing := &growing{service: s, target: t, letter: l}
	s.options.crash("before the turn")
	turn, err := s.options.Headless.Run(turnCtx, t, l.payload, func(text string) { growing.add(ctx, text) })
	s.options.crash("after the turn")

	work, done := context.WithTimeout(context.WithoutCancel(ctx), typeTimeout)
	defer done()
	if errors.Is(err, ErrRefused) {
		return false, s.settled(work, t, l, Queued, err.Error())
	}
	if turn.Text == "" {
		turn.Text = growing.text()
	}
	to := Answered
	switch {
	case context.Cause(turnCtx) != nil && (err != nil || turn.Error != "" || turn.Text == ""):
		turn.Error, to = "cancelled", Failed
	case err != nil:
		turn.Error, to = err.Error(), Failed
	case turn.Error != "":
		to = Failed
	case turn.Text == "":
		// Some agents exit 0 after an interrupt or a refused tool.
		turn.Error, to = "the agent ended without an answer", Failed
	}
	if err := s.store.endTurn(work, t, l, turn, to); err != nil {
		return true, err
	}
	s.changed(t.Session)
	return true, nil
}

// growing is the answer so far. It is written at intervals, so that other
// screens see it and a crash keeps it.
type growing struct {
	service *Service
	target  Target
	letter  letter

	mu      sync.Mutex
	so      []byte
	written time.Time
}

func (g *growing) add(ctx context.Context, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.so = append(g.so, text...)
	now := time.Now()
	if now.Sub(g.written) < partialInterval {
		return
	}
	g.written = now
	if err := g.service.store.grow(ctx, g.letter.seq, string(g.so)); err != nil {
		g.service.options.Log.Warn("a growing answer was not written", "session", g.target.Session, "error", err.Error())
		return
	}
	g.service.changed(g.target.Session)
}

func (g *growing) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return string(g.so)
}

func (s *store) grow(ctx context.Context, seq int64, text string) error {
	_, err := s.db.ExecContext(ctx, `UPDATE convo_outbox SET partial = ?, updated = ? WHERE message = ? AND state = 'typed'`,
		text, s.now().UnixMilli(), seq)
	return err
}

// endTurn stores what a headless turn answered, with its error, and the fate of
// the message that asked, in one transaction. Without a text of the turn's own
// it keeps what had grown.
func (s *store) endTurn(ctx context.Context, t Target, l letter, turn Turn, to Delivery) error {
	return s.transact(ctx, "the turn's end", func(tx *sql.Tx) error {
		if turn.Text == "" {
			if err := tx.QueryRowContext(ctx, `SELECT partial FROM convo_outbox WHERE message = ?`, l.seq).Scan(&turn.Text); err != nil {
				return err
			}
		}
		if turn.Text != "" {
			answer := protocol.NewText(fmt.Sprintf("%s-answer-%d", l.entry.Message.ID, l.typed.UnixMilli()), protocol.Assistant, turn.Text, s.now())
			if turn.Error != "" {
				if err := answer.SetMeta(protocol.ErrorKey, turn.Error); err != nil {
					return err
				}
			}
			if turn.Error == errCancelled.Error() {
				if err := answer.SetMeta(protocol.CancelledKey, true); err != nil {
					return err
				}
			}
			if len(turn.Usage) > 0 {
				if err := answer.SetMeta(usageKey, turn.Usage); err != nil {
					return err
				}
			}
			body, err := answer.Encode()
			if err != nil {
				return err
			}
			conversation, err := s.conversationOf(ctx, tx, t)
			if err != nil {
				return err
			}
			if _, _, err := s.insert(ctx, tx, conversation, t, []protocol.ChatMessage{answer}, [][]byte{body}); err != nil {
				return err
			}
		}
		return settle(ctx, tx, s.now(), l.seq, to, turn.Error, Typed)
	})
}

// answered moves what was submitted in a conversation, before a time, to
// Answered, and the context that rode with it.
func (s *store) answered(ctx context.Context, session string, before time.Time) error {
	// By a clock of the guest's own that is ahead, what is not typed yet would be
	// answered.
	if now := s.now(); before.After(now) {
		before = now
	}
	return s.transact(ctx, "the answers", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE convo_conversations SET ended = max(ended, ?) WHERE session = ?`,
			before.UnixMilli(), session); err != nil {
			return err
		}
		// Submitted rows are not open; the newest few are all that a turn can
		// have answered, the older ones were answered by earlier turns.
		_, err := tx.ExecContext(ctx, `
			UPDATE convo_outbox SET state = 'answered', updated = ?1 WHERE state = 'submitted' AND message IN
				(SELECT m.id FROM convo_messages r CROSS JOIN convo_messages m CROSS JOIN convo_outbox o ON o.message = m.id
				 WHERE r.conversation = (SELECT id FROM convo_conversations WHERE session = ?2) AND r.run > 0
					AND m.id >= r.id AND m.id < r.id + r.run
				 ORDER BY r.id DESC, m.id DESC LIMIT 200)
			AND coalesce((SELECT c.typed FROM convo_outbox c WHERE c.message = convo_outbox.carrier), typed) <= ?3`,
			s.now().UnixMilli(), session, before.UnixMilli())
		return err
	})
}
