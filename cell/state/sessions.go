package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// What can keep a slot from being moved to another conversation.
var (
	// ErrMoved says that the slot is not in that conversation any more: another
	// process has moved it.
	ErrMoved = errors.New("the slot is in another conversation by now")
	// ErrShared says that another slot is in the conversation: two panes never
	// share one.
	ErrShared = errors.New("another slot is in that conversation")
)

// LeftSession is a conversation that a slot's agent has left for another.
type LeftSession struct {
	ID   string // the agent's own
	Left time.Time
}

// MoveSession moves a slot from one of its agent's own session IDs to another,
// which the agent began or resumed by itself, and keeps the one that it leaves.
// Of several processes that see the same move one succeeds; the others get
// ErrMoved. A conversation of another slot, one in the trash too, is ErrShared.
func (db *DB) MoveSession(ctx context.Context, cell string, number int, from, to string) error {
	return db.transact(ctx, "move "+target(cell, number)+" to another conversation", func(tx *sql.Tx) error {
		var current string
		err := tx.QueryRowContext(ctx, `SELECT iif(agent_session = '', session, agent_session) FROM state_slots
			WHERE cell = ? AND number = ? AND deleted = 0`, cell, number).Scan(&current)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNoSlot
		}
		if err != nil {
			return err
		}
		if current != from {
			return ErrMoved
		}
		var others int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM state_slots
			WHERE iif(agent_session = '', session, agent_session) = ?3 AND NOT (cell = ?1 AND number = ?2)`, cell, number, to).Scan(&others); err != nil {
			return err
		}
		if others > 0 {
			return ErrShared
		}
		if _, err := tx.ExecContext(ctx, `UPDATE state_slots SET agent_session = ?3 WHERE cell = ?1 AND number = ?2`, cell, number, to); err != nil {
			return err
		}
		// Back in an earlier one: it is not one that was left any more.
		if _, err := tx.ExecContext(ctx, `DELETE FROM state_left_sessions WHERE cell = ? AND number = ? AND session = ?`, cell, number, to); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO state_left_sessions (cell, number, session, left_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (cell, number, session) DO UPDATE SET left_at = excluded.left_at`, cell, number, from, moment(db.now()))
		return err
	})
}

// LeftSessions are the conversations that a slot's agent has left, the newest
// first.
func (db *DB) LeftSessions(ctx context.Context, cell string, number int) ([]LeftSession, error) {
	rows, err := db.sql.QueryContext(ctx, `SELECT session, left_at FROM state_left_sessions
		WHERE cell = ? AND number = ? ORDER BY left_at DESC, session`, cell, number)
	if err != nil {
		return nil, fmt.Errorf("list the conversations that %s has left: %w", target(cell, number), Explain(err))
	}
	defer rows.Close()
	var left []LeftSession
	for rows.Next() {
		var s LeftSession
		var at int64
		if err := rows.Scan(&s.ID, &at); err != nil {
			return nil, fmt.Errorf("list the conversations that %s has left: %w", target(cell, number), Explain(err))
		}
		s.Left = instant(at)
		left = append(left, s)
	}
	return left, rows.Err()
}

// SetNotes keeps what the last launch of a slot had to say, a sentence each, for
// every process that shows the slot.
func (db *DB) SetNotes(ctx context.Context, cell string, number int, notes []string) error {
	encoded := ""
	if len(notes) > 0 {
		data, err := json.Marshal(notes)
		if err != nil {
			return err
		}
		encoded = string(data)
	}
	return db.setSlot(ctx, "keep the notes of", cell, number,
		`UPDATE state_slots SET notes = ?3 WHERE cell = ?1 AND number = ?2 AND deleted = 0`, encoded)
}
