package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFullDiskIsExplainedAndChangesNothing(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	db.sql.SetMaxOpenConns(1) // the page limit is one connection's
	must[Cell](t)(db.CreateCell(ctx, Cell{ProjectDir: "/src/api"}))
	var pages int
	if err := db.sql.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if _, err := db.sql.ExecContext(ctx, fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)); err != nil {
		t.Fatal(err)
	}
	_, err := db.CreateCell(ctx, Cell{ProjectDir: "/src/web", Title: strings.Repeat("x", 100_000)})
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("got %v, want ErrFull with its next step", err)
	}
	if cells := must[[]Cell](t)(db.Cells(ctx)); len(cells) != 1 {
		t.Fatalf("%d cells after the failure, want 1", len(cells))
	}
}

func TestLockedAndReadOnlyAreExplained(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	impatient := func(options url.Values) *sql.DB {
		handle, err := sql.Open("sqlite", source(db.Path(), options))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { handle.Close() })
		return handle
	}
	tx, err := db.sql.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = impatient(url.Values{"_busy_timeout": {"1"}}).ExecContext(ctx, `DELETE FROM state_approvals`)
	if got := Explain(err); !errors.Is(got, ErrLocked) || Explain(got) != got {
		t.Errorf("locked: %v", got)
	}
	tx.Rollback()
	_, err = impatient(url.Values{"mode": {"ro"}}).ExecContext(ctx, `DELETE FROM state_approvals`)
	if got := Explain(err); !errors.Is(got, ErrReadOnly) {
		t.Errorf("read-only: %v", got)
	}
}

func TestExplainKeepsOtherErrors(t *testing.T) {
	other := errors.New("other")
	if Explain(nil) != nil || Explain(other) != other || Explain(context.Canceled) != context.Canceled {
		t.Error("an error without a meaning was changed")
	}
	for err, want := range map[error]error{
		&fs.PathError{Op: "open", Err: syscall.ENOSPC}: ErrFull,
		&fs.PathError{Op: "open", Err: syscall.EROFS}:  ErrReadOnly,
		&fs.PathError{Op: "open", Err: syscall.EACCES}: ErrReadOnly,
	} {
		if got := Explain(err); !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("Explain(%v) = %v", err, got)
		}
	}
}

func TestOpenNeedsAnAbsolutePath(t *testing.T) {
	if _, _, err := Open(t.Context(), filepath.Join("relative", "cellmux.db")); err == nil {
		t.Error("a relative path was accepted")
	}
}

func TestPathsMayHoldWhatAURIWouldRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a?b#c%41 d", "cellmux.db")
	db, _, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	must[Cell](t)(db.CreateCell(t.Context(), Cell{ProjectDir: "/src/api"}))
	db.Close()
	again, report, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if report.Created {
		t.Fatal("the second start made another database")
	}
}
