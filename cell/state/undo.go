package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ActionKind names an undoable change.
type ActionKind string

// The undoable changes.
const (
	Rename  ActionKind = "rename"
	Pin     ActionKind = "pin"
	Archive ActionKind = "archive"
	Stop    ActionKind = "stop"
	Delete  ActionKind = "delete"
)

// Action is one undoable change. Before and After are the column's value as
// text: a title, "0" or "1", or a time in milliseconds.
type Action struct {
	ID            int64
	Kind          ActionKind
	Cell          string
	Slot          int // -1: the cell itself
	Before, After string
	At            time.Time
}

// ErrNothingToUndo is returned by Undo when nothing younger than its limit is
// left.
var ErrNothingToUndo = errors.New("there is nothing to undo")

// columnOf is what an action of each kind changed.
var columnOf = map[ActionKind]string{Rename: "title", Pin: "pinned", Archive: "archived", Stop: "stopped", Delete: "deleted"}

// change sets one column of one cell or slot and notes the action. A change to
// the value that is there already is not noted.
func change(ctx context.Context, tx *sql.Tx, a Action, column string, value any) error {
	missing, from, where, key := ErrNoCell, "state_cells", "name = ?", []any{a.Cell}
	if a.Slot >= 0 {
		missing, from, where, key = ErrNoSlot, "state_slots", "cell = ? AND number = ?", []any{a.Cell, a.Slot}
	}
	err := tx.QueryRowContext(ctx, `SELECT CAST(`+column+` AS TEXT) FROM `+from+` WHERE deleted = 0 AND `+where, key...).Scan(&a.Before)
	if errors.Is(err, sql.ErrNoRows) {
		return missing
	}
	if err != nil {
		return err
	}
	err = tx.QueryRowContext(ctx, `UPDATE `+from+` SET `+column+` = ? WHERE `+where+` RETURNING CAST(`+column+` AS TEXT)`,
		append([]any{value}, key...)...).Scan(&a.After)
	if err != nil || a.Before == a.After {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO state_actions (kind, cell, slot, before, after, at) VALUES (?, ?, ?, ?, ?, ?)`,
		a.Kind, a.Cell, a.Slot, a.Before, a.After, moment(a.At))
	return err
}

// Undo takes the newest action back that is not older than since and whose
// result nobody has changed in between, and returns it. The caller says what
// was undone and, for Stop, starts the slot again. Two callers never undo one
// action.
func (db *DB) Undo(ctx context.Context, since time.Time) (Action, error) {
	var undone Action
	err := db.transact(ctx, "undo", func(tx *sql.Tx) error {
		for {
			a, err := newestAction(ctx, tx, since)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `UPDATE state_actions SET undone = 1 WHERE id = ?`, a.ID); err != nil {
				return err
			}
			done, err := revert(ctx, tx, a)
			if err != nil {
				return err
			}
			if done {
				undone = a
				return nil
			}
		}
	})
	return undone, err
}

func newestAction(ctx context.Context, tx *sql.Tx, since time.Time) (Action, error) {
	var a Action
	var at int64
	err := tx.QueryRowContext(ctx, `SELECT id, kind, cell, slot, before, after, at FROM state_actions
		WHERE undone = 0 AND at >= ? ORDER BY id DESC LIMIT 1`, moment(since)).
		Scan(&a.ID, &a.Kind, &a.Cell, &a.Slot, &a.Before, &a.After, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return a, ErrNothingToUndo
	}
	a.At = instant(at)
	return a, err
}

// revert reports false when the row is gone or holds another value by now.
func revert(ctx context.Context, tx *sql.Tx, a Action) (bool, error) {
	column, known := columnOf[a.Kind]
	if !known {
		return false, fmt.Errorf("an action of unknown kind %q", a.Kind)
	}
	statement := `UPDATE state_cells SET ` + column + ` = ? WHERE CAST(` + column + ` AS TEXT) = ? AND name = ?`
	args := []any{a.Before, a.After, a.Cell}
	if a.Slot >= 0 {
		statement = `UPDATE state_slots SET ` + column + ` = ? WHERE CAST(` + column + ` AS TEXT) = ? AND cell = ? AND number = ?`
		args = append(args, a.Slot)
	}
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows == 1, err
}
