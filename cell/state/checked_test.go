//go:build linux || darwin

package state

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// opened opens and closes the database as one run of cellmux would.
func opened(t *testing.T, path string, now time.Time, use func(*DB)) Report {
	t.Helper()
	db, report, err := open(context.Background(), path, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	if use != nil {
		use(db)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return report
}

func writeRow(t *testing.T, name string) func(*DB) {
	return func(db *DB) {
		if _, err := db.sql.Exec(`CREATE TABLE ` + name + ` (x TEXT)`); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatWasReadWholeIsNotReadWholeAgainUntilSomebodyElseWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	now := time.Now()
	opened(t, path, now, writeRow(t, "a"))
	if opened(t, path, now, writeRow(t, "b")).Whole || opened(t, path, now, nil).Whole {
		t.Error("a database that cellmux itself closed was read whole again")
	}
	if !opened(t, path, now.Add(checkedFor), nil).Whole {
		t.Error("a day later it was not read whole")
	}
	if !opened(t, path, now.Add(-time.Hour), nil).Whole {
		t.Error("before the last reading it was not read whole")
	}
	opened(t, path, now, nil)
	if err := os.WriteFile(checkedFile(path), []byte("1 2 3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !opened(t, path, now, nil).Whole {
		t.Error("with a torn note it was not read whole")
	}
}

// Whoever flips a bit may set the file's time back, and the kernel still tells.
func TestDamageIsFoundInAFileWhoseTimeWasSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	opened(t, path, time.Now(), writeRow(t, "a"))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte{0xff, 0xff, 0xff, 0xff}, 104); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	report := opened(t, path, time.Now(), nil)
	if report.SetAside == "" {
		t.Fatalf("the damage was not found: %+v", report)
	}
	if opened(t, path, time.Now(), nil).SetAside != "" {
		t.Error("the new database was set aside, too")
	}
}

// A log that waits says that somebody ended without closing.
func TestAfterACrashTheDatabaseIsReadWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.db")
	now := time.Now()
	opened(t, path, now, nil)
	db, _, err := open(context.Background(), path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	writeRow(t, "a")(db)
	if report := opened(t, path, now, nil); !report.Whole {
		t.Errorf("beside an open log it was not read whole: %+v", report)
	}
}
