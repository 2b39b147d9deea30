// Package state keeps what exists: cells, slots, the trash, what can be undone
// and which project files the user approved, as rows in one SQLite database.
//
// The rule it keeps: every change is one transaction on single rows, so that
// any number of processes may work at once, and nothing that it cannot read is
// ever overwritten. A damaged database is set aside under a name of its own and
// reported. Names of cells and numbers of slots are never given out twice; what
// counts them outlives what they named.
package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"modernc.org/sqlite"

	"cellmux/cell/lock"
)

// BusyTimeout is how long a statement waits for another process's write before
// it fails with ErrLocked.
const BusyTimeout = 15 * time.Second

// DB is the database. It is safe for concurrent use.
type DB struct {
	sql  *sql.DB
	path string
	now  func() time.Time
	// checked is when the file was last read whole; zero: it was too large.
	checked time.Time
	// versions are those of the components as they were when it was opened.
	versions map[string]int
}

// Report says what Open had to do beyond opening.
type Report struct {
	Created  bool   // there was no database
	SetAside string // where the damaged one lies now; "" there was none
	Reason   string // what was wrong with it, a sentence
	Whole    bool   // the file was read whole to look for damage
}

// Open opens the database at path (absolute), creating it with its directory
// when there is none. A damaged file is renamed, never changed, and a new one
// takes its place; the report says so. The error explains a read-only, full,
// locked or newer database (ErrReadOnly, ErrFull, ErrLocked, ErrNewer).
//
// It may wait up to BusyTimeout for other processes.
func Open(ctx context.Context, path string) (*DB, Report, error) {
	return open(ctx, path, time.Now)
}

func open(ctx context.Context, path string, now func() time.Time) (*DB, Report, error) {
	if !filepath.IsAbs(path) {
		return nil, Report{}, fmt.Errorf("open state database %q: the path must be absolute", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, Report{}, fmt.Errorf("make the state directory: %w", Explain(err))
	}
	// One process at a time examines, creates or sets aside; those that only
	// open find the work done. Without it two starts could both find the damage,
	// and the second would set aside the first one's new database.
	guard, err := waitForGuard(ctx, path+".lock")
	if err != nil {
		return nil, Report{}, fmt.Errorf("open state database %s: %w", path, Explain(err))
	}
	defer guard.Release()

	var report Report
	checked, known := remembered(path, now())
	reason, whole, err := examine(ctx, path, known)
	if err != nil {
		return nil, report, fmt.Errorf("open state database %s: %w", path, Explain(err))
	}
	if report.Whole = whole; whole {
		checked = now()
	}
	if reason != "" {
		checked = time.Time{}
		report.Reason = reason
		if report.SetAside, err = setAside(path, now()); err != nil {
			return nil, report, fmt.Errorf("the state database %s is damaged (%s) and could not be set aside: %w", path, reason, Explain(err))
		}
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		report.Created = true
		// SQLite gives its side files the mode of the database.
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, report, fmt.Errorf("create state database: %w", Explain(err))
		}
		file.Close()
	}
	db, err := connect(ctx, path, now)
	if err != nil {
		return nil, report, fmt.Errorf("open state database %s: %w", path, Explain(err))
	}
	db.checked = checked
	if report.Created {
		db.checked = now() // there is nothing that could be damaged
	}
	if report.Whole {
		remember(path, db.checked)
	}
	db.readVersions(ctx)
	if err := db.Migrate(ctx, "state", schema); err != nil {
		db.Close()
		return nil, report, err
	}
	return db, report, nil
}

// guardTimeout is how long Open waits for others that open: each holds the guard
// for a moment, but fifty at once on a busy machine take their turns.
const guardTimeout = time.Minute

func waitForGuard(ctx context.Context, path string) (*lock.File, error) {
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	return lock.Wait(ctx, path)
}

func connect(ctx context.Context, path string, now func() time.Time) (*DB, error) {
	if runtime.GOOS == "linux" {
		// A commit needs the data and the size on disk, not the timestamps; with
		// fsync(2) ext4 writes those through its journal too, at twice the time.
		// Where it is not available SQLite goes on with fsync.
		_, _ = sqlite.Fdatasync(true)
	}
	handle, err := sql.Open("sqlite", source(path, url.Values{
		"_busy_timeout": {fmt.Sprint(BusyTimeout.Milliseconds())},
		"_foreign_keys": {"on"},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_txlock":       {"immediate"}, // a transaction that reads first and writes later could fail at once, unretried, with SQLITE_BUSY
		"_dqs":          {"0"},
		// A commit of some messages writes half as many frames as with 4096; one of
		// a single message pays little for it. It counts for a new file alone.
		"_pragma": {"page_size(8192)", "cache_size(-8000)", "journal_size_limit(67108864)", "temp_store(MEMORY)"},
	}))
	if err != nil {
		return nil, err
	}
	handle.SetMaxIdleConns(4)
	handle.SetMaxOpenConns(8)
	if err := handle.PingContext(ctx); err != nil {
		handle.Close()
		return nil, err
	}
	return &DB{sql: handle, path: path, now: now}, nil
}

// source is the driver's name for a file, with the characters escaped that
// have a meaning in a URI.
func source(path string, options url.Values) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: options.Encode()}).String()
}

// SQL is the handle that other components keep their own tables with.
// Transactions begun on it hold the write lock from their start.
func (db *DB) SQL() *sql.DB { return db.sql }

// Path is the database file.
func (db *DB) Path() string { return db.path }

// Close closes the database. What was committed stays committed.
func (db *DB) Close() error {
	err := db.sql.Close()
	if err == nil {
		remember(db.path, db.checked)
	}
	return err
}

// transact runs change in one transaction.
func (db *DB) transact(ctx context.Context, what string, change func(*sql.Tx) error) error {
	tx, err := db.sql.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, Explain(err))
	}
	defer tx.Rollback()
	if err := change(tx); err != nil {
		return fmt.Errorf("%s: %w", what, Explain(err))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: %w", what, Explain(err))
	}
	return nil
}

// moment and instant convert between the wall clock and the milliseconds since
// 1970 that the columns hold; 0 is the zero time.
func moment(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
