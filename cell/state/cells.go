package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Errors of the rows.
var (
	ErrNoCell    = errors.New("there is no such cell")
	ErrNoSlot    = errors.New("there is no such slot")
	ErrNameTaken = errors.New("the name is taken, or was once")
)

// maxName keeps "<name>-<slot>" within the 63 bytes of a host name.
const maxName = 48

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// BaseName makes the name that a project directory asks for: its last element
// in [a-z0-9-], "cell" where nothing of it is left.
func BaseName(projectDir string) string {
	var name strings.Builder
	gap := false
	for _, r := range strings.ToLower(filepath.Base(projectDir)) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if gap && name.Len() > 0 {
				name.WriteByte('-')
			}
			gap = false
			name.WriteRune(r)
			continue
		}
		gap = true
	}
	if name.Len() == 0 {
		return "cell"
	}
	return strings.TrimRight(name.String()[:min(name.Len(), maxName)], "-")
}

// CreateCell stores a cell and returns it with its name. With Name "" the name
// is BaseName(ProjectDir), with "-2", "-3", … when that was given out before; a
// Name of the caller's is taken as it is, or refused with ErrNameTaken. Title
// "" is the name, Created is now.
func (db *DB) CreateCell(ctx context.Context, c Cell) (Cell, error) {
	if !filepath.IsAbs(c.ProjectDir) {
		return Cell{}, fmt.Errorf("create cell: the project directory %q must be absolute", c.ProjectDir)
	}
	if c.Name != "" && (!validName.MatchString(c.Name) || len(c.Name) > maxName) {
		return Cell{}, fmt.Errorf("create cell: the name %q must be 1 to %d of a-z, 0-9 and inner dashes", c.Name, maxName)
	}
	c.Created = instant(moment(db.now()))
	err := db.transact(ctx, "create cell", func(tx *sql.Tx) error {
		if err := takeName(ctx, tx, &c); err != nil {
			return err
		}
		if c.Title == "" {
			c.Title = c.Name
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO state_cells
			(name, title, workspace, project_dir, engine, engine_reason, pinned, archived, created)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			c.Name, c.Title, c.Workspace, c.ProjectDir, c.Engine, c.EngineReason, c.Pinned, c.Archived, moment(c.Created))
		return err
	})
	if err != nil {
		return Cell{}, err
	}
	return c, nil
}

// takeName sets c.Name to a name that this transaction has taken.
func takeName(ctx context.Context, tx *sql.Tx, c *Cell) error {
	take := func(name string) (bool, error) {
		result, err := tx.ExecContext(ctx, `INSERT INTO state_names (name) VALUES (?) ON CONFLICT DO NOTHING`, name)
		if err != nil {
			return false, err
		}
		rows, err := result.RowsAffected()
		return rows == 1, err
	}
	if c.Name != "" {
		taken, err := take(c.Name)
		if err == nil && !taken {
			return fmt.Errorf("%q: %w", c.Name, ErrNameTaken)
		}
		return err
	}
	base := BaseName(c.ProjectDir)
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			suffix := fmt.Sprintf("-%d", n)
			name = strings.TrimRight(base[:min(len(base), maxName-len(suffix))], "-") + suffix
		}
		if ok, err := take(name); ok || err != nil {
			c.Name = name
			return err
		}
	}
}

const cellColumns = `name, title, workspace, project_dir, engine, engine_reason, pinned, archived, created`

// Cells returns the cells that are not in the trash, oldest first.
func (db *DB) Cells(ctx context.Context) ([]Cell, error) {
	cells, err := db.queryCells(ctx, `SELECT `+cellColumns+` FROM state_cells WHERE deleted = 0 ORDER BY created, rowid`)
	if err != nil {
		return nil, fmt.Errorf("list cells: %w", Explain(err))
	}
	return cells, nil
}

// Cell returns one cell, or ErrNoCell when it does not exist or is in the trash.
func (db *DB) Cell(ctx context.Context, name string) (Cell, error) {
	cells, err := db.queryCells(ctx, `SELECT `+cellColumns+` FROM state_cells WHERE deleted = 0 AND name = ?`, name)
	if err != nil {
		return Cell{}, fmt.Errorf("read cell %s: %w", name, Explain(err))
	}
	if len(cells) == 0 {
		return Cell{}, fmt.Errorf("%s: %w", name, ErrNoCell)
	}
	return cells[0], nil
}

func (db *DB) queryCells(ctx context.Context, query string, args ...any) ([]Cell, error) {
	rows, err := db.sql.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var cells []Cell
	for rows.Next() {
		var c Cell
		var created int64
		if err := rows.Scan(&c.Name, &c.Title, &c.Workspace, &c.ProjectDir, &c.Engine, &c.EngineReason, &c.Pinned, &c.Archived, &created); err != nil {
			return nil, err
		}
		c.Created = instant(created)
		cells = append(cells, c)
	}
	return cells, rows.Err()
}

// RenameCell changes the title; the name is fixed for life.
func (db *DB) RenameCell(ctx context.Context, name, title string) error {
	return db.changeCell(ctx, Rename, "title", name, title)
}

// PinCell pins or unpins.
func (db *DB) PinCell(ctx context.Context, name string, pinned bool) error {
	return db.changeCell(ctx, Pin, "pinned", name, pinned)
}

// ArchiveCell archives or takes back.
func (db *DB) ArchiveCell(ctx context.Context, name string, archived bool) error {
	return db.changeCell(ctx, Archive, "archived", name, archived)
}

// SetEngine changes the engine and why it is that one. It is not undoable.
func (db *DB) SetEngine(ctx context.Context, name, engine, reason string) error {
	return db.transact(ctx, "change the engine of cell "+name, func(tx *sql.Tx) error {
		return onlyRow(ErrNoCell)(tx.ExecContext(ctx,
			`UPDATE state_cells SET engine = ?, engine_reason = ? WHERE name = ? AND deleted = 0`, engine, reason, name))
	})
}

// DeleteCell moves a cell with its slots to the trash.
func (db *DB) DeleteCell(ctx context.Context, name string) error {
	return db.changeCell(ctx, Delete, "deleted", name, moment(db.now()))
}

func (db *DB) changeCell(ctx context.Context, kind ActionKind, column, name string, value any) error {
	return db.transact(ctx, fmt.Sprintf("%s cell %s", kind, name), func(tx *sql.Tx) error {
		return change(ctx, tx, Action{Kind: kind, Cell: name, Slot: -1, At: db.now()}, column, value)
	})
}

// onlyRow turns "no row was changed" into missing.
func onlyRow(missing error) func(sql.Result, error) error {
	return func(result sql.Result, err error) error {
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err == nil && rows == 0 {
			return missing
		}
		return err
	}
}

// Trashed is what lies in the trash: a cell, or with Slot not -1 a slot of a
// cell that is itself not in the trash.
type Trashed struct {
	Cell    string
	Slot    int
	Title   string
	Deleted time.Time
}

// Trash lists the trash, newest first.
func (db *DB) Trash(ctx context.Context) ([]Trashed, error) {
	rows, err := db.sql.QueryContext(ctx, `
		SELECT name, -1, title, deleted FROM state_cells WHERE deleted > 0
		UNION ALL
		SELECT s.cell, s.number, s.title, s.deleted FROM state_slots s
			JOIN state_cells c ON c.name = s.cell WHERE s.deleted > 0 AND c.deleted = 0
		ORDER BY 4 DESC, 1, 2`)
	if err != nil {
		return nil, fmt.Errorf("list the trash: %w", Explain(err))
	}
	defer rows.Close()
	var trash []Trashed
	for rows.Next() {
		var t Trashed
		var deleted int64
		if err := rows.Scan(&t.Cell, &t.Slot, &t.Title, &deleted); err != nil {
			return nil, fmt.Errorf("list the trash: %w", Explain(err))
		}
		t.Deleted = instant(deleted)
		trash = append(trash, t)
	}
	return trash, rows.Err()
}

// Restore takes a cell, or with slot not -1 a slot, out of the trash.
func (db *DB) Restore(ctx context.Context, cell string, slot int) error {
	return db.transact(ctx, fmt.Sprintf("restore %s", target(cell, slot)), func(tx *sql.Tx) error {
		if slot < 0 {
			return onlyRow(ErrNoCell)(tx.ExecContext(ctx, `UPDATE state_cells SET deleted = 0 WHERE name = ? AND deleted > 0`, cell))
		}
		return onlyRow(ErrNoSlot)(tx.ExecContext(ctx, `UPDATE state_slots SET deleted = 0 WHERE cell = ? AND number = ? AND deleted > 0`, cell, slot))
	})
}

// Expired returns the slots that Purge would remove, of cells that it would
// remove too.
func (db *DB) Expired(ctx context.Context, before time.Time) ([]Slot, error) {
	slots, err := db.querySlots(ctx, `SELECT `+slotColumns+` FROM state_slots s JOIN state_cells c ON c.name = s.cell
		WHERE (s.deleted > 0 AND s.deleted < ?1) OR (c.deleted > 0 AND c.deleted < ?1)
		ORDER BY s.cell, s.number`, moment(before))
	if err != nil {
		return nil, fmt.Errorf("list what of the trash can go: %w", Explain(err))
	}
	return slots, nil
}

// ExpiredCells returns the cells that Purge would remove.
func (db *DB) ExpiredCells(ctx context.Context, before time.Time) ([]Cell, error) {
	cells, err := db.queryCells(ctx, `SELECT `+cellColumns+` FROM state_cells
		WHERE deleted > 0 AND deleted < ? ORDER BY deleted DESC, name`, moment(before))
	if err != nil {
		return nil, fmt.Errorf("list which cells of the trash can go: %w", Explain(err))
	}
	return cells, nil
}

// Purge removes for good what was moved to the trash before the given time and
// returns the session IDs whose conversations nobody can reach any more. Names
// and slot numbers stay taken.
func (db *DB) Purge(ctx context.Context, before time.Time) ([]string, error) {
	var sessions []string
	err := db.transact(ctx, "empty the trash", func(tx *sql.Tx) error {
		sessions = nil
		rows, err := tx.QueryContext(ctx, `
			SELECT s.session FROM state_slots s JOIN state_cells c ON c.name = s.cell
			WHERE (s.deleted > 0 AND s.deleted < ?1) OR (c.deleted > 0 AND c.deleted < ?1)`, moment(before))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var session string
			if err := rows.Scan(&session); err != nil {
				return err
			}
			sessions = append(sessions, session)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM state_slots WHERE deleted > 0 AND deleted < ?`, moment(before)); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM state_cells WHERE deleted > 0 AND deleted < ?`, moment(before))
		return err
	})
	return sessions, err
}
