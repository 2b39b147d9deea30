package convo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// How far an attempt got, for the reason that is shown when it did not end.
const (
	stepIntent  = "intent"  // nothing was typed yet, or the paste was under way
	stepPasted  = "pasted"  // Enter was not given yet, or was under way
	stepEntered = "entered" // proof was awaited
	stepTurn    = "turn"    // a headless turn ran
)

// letter is a row of the outbox that somebody works on.
type letter struct {
	seq     int64
	entry   Entry
	step    string
	payload string
	typed   time.Time
}

// queued returns the oldest message of a conversation that waits for delivery.
func (s *store) queued(ctx context.Context, session string) (letter, bool, error) {
	letters, err := s.letters(ctx, session, Queued, 1)
	if err != nil || len(letters) == 0 {
		return letter{}, false, err
	}
	return letters[0], true, nil
}

// letters returns up to n open messages in a state, oldest first.
func (s *store) letters(ctx context.Context, session string, state Delivery, n int) ([]letter, error) {
	rows, err := s.db.QueryContext(ctx, `
		SELECT message, step, payload, typed FROM convo_outbox
		WHERE open = 1 AND context = 0 AND state = ? AND conversation = (SELECT id FROM convo_conversations WHERE session = ?)
		ORDER BY message LIMIT ?`, state, session, n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var letters []letter
	for rows.Next() {
		var l letter
		var typed int64
		if err := rows.Scan(&l.seq, &l.step, &l.payload, &typed); err != nil {
			return nil, err
		}
		l.typed = time.UnixMilli(typed)
		letters = append(letters, l)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i := range letters {
		if letters[i].entry, err = s.entry(ctx, letters[i].seq); err != nil {
			return nil, err
		}
	}
	return letters, nil
}

// waiting returns the targets that have a message queued, or one that an
// attempt left behind; with unconfirmed also those whose agents' transcripts may
// tell by now.
func (s *store) waiting(ctx context.Context, unconfirmed bool) ([]Target, error) {
	rows, err := s.db.QueryContext(ctx, `
		SELECT session, cell, slot, agent FROM convo_conversations WHERE id IN
			(SELECT conversation FROM convo_outbox WHERE open = 1 AND context = 0
				AND (state IN ('queued', 'typed') OR ? AND state = 'unconfirmed'))
		ORDER BY id`, unconfirmed)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var targets []Target
	for rows.Next() {
		var t Target
		if err := rows.Scan(&t.Session, &t.Cell, &t.Slot, &t.Agent); err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, rows.Err()
}

// intend notes, before anything is typed, that a queued message is about to be,
// with the text that goes out: the context that no agent has seen yet, oldest
// first, and the message. It reports false when the message is not queued any
// more.
func (s *store) intend(ctx context.Context, l *letter, step string, steering bool) (bool, error) {
	intended := false
	err := s.transact(ctx, "the intent", func(tx *sql.Tx) error {
		context, err := query(ctx, tx, selectEntries+`
			WHERE m.id IN (SELECT message FROM convo_outbox WHERE open = 1 AND context = 1 AND carrier = 0 AND message < ?1
				AND conversation = (SELECT conversation FROM convo_outbox WHERE message = ?1))
			ORDER BY m.id`, l.seq)
		if err != nil {
			return err
		}
		text := compose(context, l.entry.Message)
		now := s.now()
		result, err := tx.ExecContext(ctx, `
			UPDATE convo_outbox SET state = 'typed', step = ?, payload = ?, reason = '', steering = ?, typed = ?, updated = ?
			WHERE message = ? AND state = 'queued'`, step, text, steering, now.UnixMilli(), now.UnixMilli(), l.seq)
		if err != nil {
			return err
		}
		if rows, err := result.RowsAffected(); err != nil || rows == 0 {
			return err
		}
		intended = true
		l.payload, l.typed, l.step = text, now, step
		for _, c := range context {
			if _, err := tx.ExecContext(ctx, `UPDATE convo_outbox SET carrier = ?, state = 'typed', updated = ? WHERE message = ?`,
				l.seq, now.UnixMilli(), c.Seq); err != nil {
				return err
			}
		}
		return nil
	})
	return intended, err
}

// advance notes how far an attempt got.
func (s *store) advance(ctx context.Context, l letter, step string) error {
	return s.transact(ctx, "step "+step, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE convo_outbox SET step = ?, updated = ? WHERE message = ? AND state = 'typed'`,
			step, s.now().UnixMilli(), l.seq)
		return err
	})
}

// explain notes why a queued message waits; the same reason again writes nothing.
func (s *store) explain(ctx context.Context, seq int64, reason string) (bool, error) {
	result, err := s.db.ExecContext(ctx, `UPDATE convo_outbox SET reason = ?, updated = ? WHERE message = ? AND state = 'queued' AND reason <> ?`,
		reason, s.now().UnixMilli(), seq, reason)
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows > 0, err
}

// errMoved is returned when a message is in none of the states that a change
// starts from.
var errMoved = errors.New("its state has changed meanwhile")

// settle moves a message, and the context that rides with it, to a state.
// Queued frees the context, which rides again with whatever goes next.
func (s *store) settle(ctx context.Context, seq int64, to Delivery, reason string, from ...Delivery) error {
	return s.transact(ctx, "state "+string(to), func(tx *sql.Tx) error {
		return settle(ctx, tx, s.now(), seq, to, reason, from...)
	})
}

func settle(ctx context.Context, tx *sql.Tx, now time.Time, seq int64, to Delivery, reason string, from ...Delivery) error {
	var state Delivery
	var over bool // the turn that it became has ended
	err := tx.QueryRowContext(ctx, `
		SELECT o.state, o.typed <= c.ended FROM convo_outbox o JOIN convo_conversations c ON c.id = o.conversation
		WHERE o.message = ? AND o.context = 0`, seq).Scan(&state, &over)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNoMessage
	}
	if err != nil {
		return err
	}
	allowed := false
	for _, f := range from {
		allowed = allowed || f == state
	}
	if !allowed {
		return fmt.Errorf("message %d is %s: %w", seq, state, errMoved)
	}
	if to == Submitted && over {
		to = Answered
	}
	open := to == Queued || to == Typed || to == Unconfirmed
	_, err = tx.ExecContext(ctx, `
		UPDATE convo_outbox SET state = ?1, reason = ?2, open = ?3, updated = ?4,
			payload = CASE WHEN ?3 AND ?1 <> 'queued' THEN payload ELSE '' END,
			step = CASE WHEN ?3 AND ?1 <> 'queued' THEN step ELSE '' END,
			partial = CASE WHEN ?1 = 'typed' THEN partial ELSE '' END
		WHERE message = ?5`, to, reason, open, now.UnixMilli(), seq)
	if err != nil {
		return err
	}
	if to == Queued {
		_, err = tx.ExecContext(ctx, `UPDATE convo_outbox SET state = 'saved', open = 1, carrier = 0, updated = ? WHERE carrier = ?`, now.UnixMilli(), seq)
	} else {
		_, err = tx.ExecContext(ctx, `UPDATE convo_outbox SET state = ?, open = ?, updated = ? WHERE carrier = ?`, to, open, now.UnixMilli(), seq)
	}
	return err
}
