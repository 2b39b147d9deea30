package state

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"cellmux/cell"
)

// CreateSlot stores a slot and returns it with its number, the next one that
// its cell never gave out, and the session ID that follows from it. Created is
// now; Number and SessionID of s are not read.
func (db *DB) CreateSlot(ctx context.Context, s Slot) (Slot, error) {
	command, err := encodeCommand(s.Command)
	if err != nil {
		return Slot{}, fmt.Errorf("create a slot in %s: %w", s.Cell, err)
	}
	s.Created = instant(moment(db.now()))
	err = db.transact(ctx, "create a slot in "+s.Cell, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `
			UPDATE state_names SET next_slot = next_slot + 1
			WHERE name = (SELECT name FROM state_cells WHERE name = ? AND deleted = 0)
			RETURNING next_slot - 1`, s.Cell).Scan(&s.Number)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNoCell
		}
		if err != nil {
			return err
		}
		s.SessionID = cell.SessionID(fmt.Sprintf("%s-%d", s.Cell, s.Number))
		_, err = tx.ExecContext(ctx, `INSERT INTO state_slots
			(cell, number, agent, command, session, agent_session, title, stopped, archived, created, review)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			s.Cell, s.Number, s.Agent, command, s.SessionID, s.AgentSession, s.Title, s.Stopped, s.Archived, moment(s.Created), s.Review)
		return err
	})
	if err != nil {
		return Slot{}, err
	}
	return s, nil
}

const slotColumns = `s.cell, s.number, s.agent, s.command, s.session, s.agent_session, s.title, s.stopped, s.archived, s.created, s.notes, s.review,
	(SELECT coalesce(max(left_at), 0) FROM state_left_sessions l WHERE l.cell = s.cell AND l.number = s.number)`

const liveSlots = ` FROM state_slots s JOIN state_cells c ON c.name = s.cell WHERE s.deleted = 0 AND c.deleted = 0`

// Slots returns the slots that are not in the trash, ordered by cell name and
// number.
func (db *DB) Slots(ctx context.Context) ([]Slot, error) {
	slots, err := db.querySlots(ctx, `SELECT `+slotColumns+liveSlots+` ORDER BY s.cell, s.number`)
	if err != nil {
		return nil, fmt.Errorf("list slots: %w", Explain(err))
	}
	return slots, nil
}

// Slot returns one slot, or ErrNoSlot when it does not exist or is in the trash.
func (db *DB) Slot(ctx context.Context, cell string, number int) (Slot, error) {
	slots, err := db.querySlots(ctx, `SELECT `+slotColumns+liveSlots+` AND s.cell = ? AND s.number = ?`, cell, number)
	if err != nil {
		return Slot{}, fmt.Errorf("read slot %s: %w", target(cell, number), Explain(err))
	}
	if len(slots) == 0 {
		return Slot{}, fmt.Errorf("%s: %w", target(cell, number), ErrNoSlot)
	}
	return slots[0], nil
}

func (db *DB) querySlots(ctx context.Context, query string, args ...any) ([]Slot, error) {
	rows, err := db.sql.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var slots []Slot
	for rows.Next() {
		var s Slot
		var command, notes string
		var created, moved int64
		if err := rows.Scan(&s.Cell, &s.Number, &s.Agent, &command, &s.SessionID, &s.AgentSession, &s.Title, &s.Stopped, &s.Archived, &created, &notes, &s.Review, &moved); err != nil {
			return nil, err
		}
		if notes != "" {
			if err := json.Unmarshal([]byte(notes), &s.Notes); err != nil {
				return nil, fmt.Errorf("the notes of %s: %w", target(s.Cell, s.Number), err)
			}
		}
		if command != "" {
			if err := json.Unmarshal([]byte(command), &s.Command); err != nil {
				return nil, fmt.Errorf("the command of %s: %w", target(s.Cell, s.Number), err)
			}
		}
		s.Created, s.Moved = instant(created), instant(moved)
		slots = append(slots, s)
	}
	return slots, rows.Err()
}

// RenameSlot changes the title.
func (db *DB) RenameSlot(ctx context.Context, cell string, number int, title string) error {
	return db.changeSlot(ctx, Rename, "title", cell, number, title)
}

// ArchiveSlot archives or takes back.
func (db *DB) ArchiveSlot(ctx context.Context, cell string, number int, archived bool) error {
	return db.changeSlot(ctx, Archive, "archived", cell, number, archived)
}

// SetStopped notes that the user stopped a slot, or that it runs again.
// Stopping is undoable: the caller restarts what Undo returns.
func (db *DB) SetStopped(ctx context.Context, cell string, number int, stopped bool) error {
	if stopped {
		return db.changeSlot(ctx, Stop, "stopped", cell, number, true)
	}
	return db.setSlot(ctx, "note the start of", cell, number, `UPDATE state_slots SET stopped = 0 WHERE cell = ? AND number = ? AND deleted = 0`)
}

// SetAgentSession notes the agent's own session ID where it differs from the
// slot's.
func (db *DB) SetAgentSession(ctx context.Context, cell string, number int, session string) error {
	return db.setSlot(ctx, "note the agent's session of", cell, number,
		`UPDATE state_slots SET agent_session = ?3 WHERE cell = ?1 AND number = ?2 AND deleted = 0`, session)
}

// SetAgent changes which agent runs in the slot, and the user's own command.
func (db *DB) SetAgent(ctx context.Context, cell string, number int, agent string, command []string) error {
	encoded, err := encodeCommand(command)
	if err != nil {
		return fmt.Errorf("change the agent of %s: %w", target(cell, number), err)
	}
	return db.setSlot(ctx, "change the agent of", cell, number,
		`UPDATE state_slots SET agent = ?3, command = ?4 WHERE cell = ?1 AND number = ?2 AND deleted = 0`, agent, encoded)
}

// DeleteSlot moves a slot to the trash.
func (db *DB) DeleteSlot(ctx context.Context, cell string, number int) error {
	return db.changeSlot(ctx, Delete, "deleted", cell, number, moment(db.now()))
}

func (db *DB) changeSlot(ctx context.Context, kind ActionKind, column, cell string, number int, value any) error {
	return db.transact(ctx, fmt.Sprintf("%s slot %s", kind, target(cell, number)), func(tx *sql.Tx) error {
		return change(ctx, tx, Action{Kind: kind, Cell: cell, Slot: number, At: db.now()}, column, value)
	})
}

func (db *DB) setSlot(ctx context.Context, what, cell string, number int, statement string, values ...any) error {
	return db.transact(ctx, what+" "+target(cell, number), func(tx *sql.Tx) error {
		return onlyRow(ErrNoSlot)(tx.ExecContext(ctx, statement, append([]any{cell, number}, values...)...))
	})
}

func encodeCommand(command []string) (string, error) {
	if len(command) == 0 {
		return "", nil
	}
	encoded, err := json.Marshal(command)
	return string(encoded), err
}

// target names a cell (slot -1) or a slot as the command line writes it.
func target(cell string, slot int) string {
	if slot < 0 {
		return cell
	}
	return fmt.Sprintf("%s:%d", cell, slot)
}
