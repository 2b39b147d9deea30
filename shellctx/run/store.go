package run

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Migrations are the steps that make this package's tables
// (cell/state.DB.Migrate, component "run"). Steps are added to, never changed.
func Migrations() []string {
	return []string{`
CREATE TABLE executions (
	seq         INTEGER PRIMARY KEY,
	id          TEXT NOT NULL,
	cell        TEXT NOT NULL,
	slot        INTEGER NOT NULL,
	mode        TEXT NOT NULL,
	on_host     INTEGER NOT NULL,
	guest       INTEGER NOT NULL,
	state       TEXT NOT NULL,
	command     TEXT NOT NULL,
	directory   TEXT NOT NULL,
	started     INTEGER NOT NULL,
	ended       INTEGER NOT NULL DEFAULT 0,
	lines       INTEGER NOT NULL DEFAULT 0,
	leftover    INTEGER NOT NULL DEFAULT 0,
	note        TEXT NOT NULL DEFAULT '',
	spill       TEXT NOT NULL DEFAULT '',
	record      TEXT NOT NULL DEFAULT '',
	handed      INTEGER NOT NULL DEFAULT 0,
	owner_pid   INTEGER NOT NULL,
	owner_start INTEGER NOT NULL
);
CREATE INDEX executions_by_slot ON executions (cell, slot, seq);
CREATE INDEX executions_open ON executions (handed) WHERE handed = 0 OR leftover > 0;
CREATE TABLE shell_directories (
	cell      TEXT NOT NULL,
	slot      INTEGER NOT NULL,
	on_host   INTEGER NOT NULL,
	directory TEXT NOT NULL,
	PRIMARY KEY (cell, slot, on_host)
);`,
		// A command waits for its row, and each index makes that longer: those that
		// run are found by executions_open.
		`
DROP INDEX executions_by_slot;
CREATE INDEX executions_by_slot ON executions (cell, slot, seq) WHERE ended > 0;`}
}

// owner tells which process an execution belongs to. A PID is given out again,
// a PID together with its start time is not.
type owner struct {
	pid   int
	start uint64
}

// store keeps executions. It writes through one connection of its own, with
// synchronous NORMAL: a power cut may lose the last rows, a crash of cellmux
// cannot, and a command does not wait for the disk.
type store struct {
	db    *sql.DB
	owner owner

	mu     sync.Mutex
	conn   *sql.Conn
	insert *sql.Stmt
}

// connect makes the connection when it is first needed. The lock is held.
func (s *store) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA synchronous = NORMAL"); err != nil {
		_ = conn.Close()
		return err
	}
	insert, err := conn.PrepareContext(ctx, `INSERT INTO executions
		(id, cell, slot, mode, on_host, guest, state, command, directory, started, spill, owner_pid, owner_start)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		_ = conn.Close()
		return err
	}
	s.conn, s.insert = conn, insert
	return nil
}

func (s *store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return
	}
	_ = s.insert.Close()
	// The connection goes back to the pool, whose other users want FULL.
	_, _ = s.conn.ExecContext(context.Background(), "PRAGMA synchronous = FULL")
	_ = s.conn.Close()
	s.conn = nil
}

// begin stores an execution before it starts, and returns the number of its
// row. A command waits for this write: the table has no more indexes than it
// needs.
func (s *store) begin(ctx context.Context, e Execution, guest bool) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.connect(ctx); err != nil {
		return 0, fmt.Errorf("record the command before it runs: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	// A statement that can be cancelled costs a goroutine; the wait for another
	// process's transaction is bounded by the database's busy timeout.
	ctx = context.WithoutCancel(ctx)
	res, err := s.insert.ExecContext(ctx, e.ID, e.Cell, e.Slot, string(e.Mode), e.OnHost, guest, string(Running),
		e.Record.Command, e.Record.CWD, e.Started.UnixMilli(), e.Spill, s.owner.pid, int64(s.owner.start))
	if err != nil {
		return 0, fmt.Errorf("record the command before it runs: %w", err)
	}
	return res.LastInsertId()
}

// end stores how an execution ended, and where its shell stands now. Only one
// that is still running is changed: it is recorded exactly once. Private
// executions count as handed over, since nobody gets them.
func (s *store) end(ctx context.Context, seq int64, e Execution, directory string) (bool, error) {
	record, err := json.Marshal(e.Record)
	if err != nil {
		return false, fmt.Errorf("record execution %s: %w", e.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.connect(ctx); err != nil {
		return false, fmt.Errorf("record execution %s: %w", e.ID, err)
	}
	tx, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("record execution %s: %w", e.ID, err)
	}
	defer func() { _ = tx.Rollback() }()
	res, err := tx.ExecContext(ctx, `UPDATE executions SET state = ?, ended = ?, lines = ?, leftover = ?, note = ?,
		spill = ?, record = ?, handed = ? WHERE seq = ? AND state = 'running'`,
		string(e.State), e.Ended.UnixMilli(), e.Lines, e.Leftover, e.Note, e.Spill, string(record), e.Mode == Private, seq)
	if err != nil {
		return false, fmt.Errorf("record execution %s: %w", e.ID, err)
	}
	changed, err := res.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("record execution %s: %w", e.ID, err)
	}
	if directory != "" {
		if _, err := tx.ExecContext(ctx, `INSERT INTO shell_directories (cell, slot, on_host, directory) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET directory = excluded.directory`, e.Cell, e.Slot, e.OnHost, directory); err != nil {
			return false, fmt.Errorf("record execution %s: %w", e.ID, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return false, fmt.Errorf("record execution %s: %w", e.ID, err)
	}
	return changed == 1, nil
}

func (s *store) exec(ctx context.Context, query string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.connect(ctx); err != nil {
		return err
	}
	_, err := s.conn.ExecContext(ctx, query, args...)
	return err
}

// handed notes that the record has reached its conversation.
func (s *store) handed(ctx context.Context, seq int64) error {
	return s.exec(ctx, "UPDATE executions SET handed = 1 WHERE seq = ?", seq)
}

// left notes how many background processes an execution still has.
func (s *store) left(ctx context.Context, seq int64, n int) error {
	return s.exec(ctx, "UPDATE executions SET leftover = ? WHERE seq = ?", n, seq)
}

func (s *store) directory(ctx context.Context, k key) (string, error) {
	var dir string
	err := s.db.QueryRowContext(ctx, "SELECT directory FROM shell_directories WHERE cell = ? AND slot = ? AND on_host = ?",
		k.cell, k.slot, k.onHost).Scan(&dir)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return dir, err
}

// row is an execution with what only this package needs of it.
type row struct {
	Execution
	seq    int64
	guest  bool
	handed bool
	owner  owner
}

const columns = `seq, id, cell, slot, mode, on_host, guest, state, command, directory, started, ended, lines, leftover, note,
	spill, record, handed, owner_pid, owner_start`

// list reads rows, in the order in which they started.
func (s *store) list(ctx context.Context, where string, args ...any) ([]row, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT "+columns+" FROM executions "+where, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var list []row
	for rows.Next() {
		var (
			r              row
			started, ended int64
			start          int64
			record         string
			mode, state    string
		)
		err := rows.Scan(&r.seq, &r.ID, &r.Cell, &r.Slot, &mode, &r.OnHost, &r.guest, &state, &r.Record.Command, &r.Record.CWD,
			&started, &ended, &r.Lines, &r.Leftover, &r.Note, &r.Spill, &record, &r.handed, &r.owner.pid, &start)
		if err != nil {
			return nil, err
		}
		r.Mode, r.State, r.owner.start = Mode(mode), State(state), uint64(start)
		r.Started = time.UnixMilli(started)
		if ended != 0 {
			r.Ended = time.UnixMilli(ended)
		}
		if record != "" {
			if err := json.Unmarshal([]byte(record), &r.Record); err != nil {
				return nil, fmt.Errorf("the record of execution %s: %w", r.ID, err)
			}
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// log returns the last n executions of a slot, the oldest first.
func (s *store) log(ctx context.Context, cell string, slot, n int) ([]Execution, error) {
	rows, err := s.list(ctx, `WHERE seq IN (SELECT seq FROM executions WHERE cell = ?1 AND slot = ?2 AND ended > 0
			ORDER BY seq DESC LIMIT ?3)
		OR seq IN (SELECT seq FROM executions WHERE handed = 0 AND ended = 0 AND cell = ?1 AND slot = ?2)
		ORDER BY seq`, cell, slot, n)
	if err != nil {
		return nil, fmt.Errorf("read the shell log of %s:%d: %w", cell, slot, err)
	}
	rows = rows[max(0, len(rows)-n):]
	list := make([]Execution, len(rows))
	for i, r := range rows {
		list[i] = r.Execution
	}
	return list, nil
}
