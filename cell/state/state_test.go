package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"cellmux/cell"
)

// clock counts milliseconds, so that rows have an order and tests no wall time.
func clock() func() time.Time {
	var mu sync.Mutex
	now := time.UnixMilli(1_800_000_000_000)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Millisecond)
		return now
	}
}

func openTest(t *testing.T) *DB {
	t.Helper()
	db, report, err := open(t.Context(), filepath.Join(t.TempDir(), "state", "cellmux.db"), clock())
	if err != nil {
		t.Fatal(err)
	}
	if !report.Created || report.SetAside != "" {
		t.Fatalf("report of a fresh database: %+v", report)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestBaseName(t *testing.T) {
	for dir, want := range map[string]string{
		"/src/api":                      "api",
		"/src/My Project.v2":            "my-project-v2",
		"/src/--x--":                    "x",
		"/src/Üben":                     "ben",
		"/src/日本":                       "cell",
		"/":                             "cell",
		"/src/a\nb\x1b[2Jc":             "a-b-2jc",
		"/" + strings.Repeat("ab-", 40): strings.TrimRight(strings.Repeat("ab-", 16), "-"),
	} {
		if got := BaseName(dir); got != want {
			t.Errorf("BaseName(%q) = %q, want %q", dir, got, want)
		}
		if !validName.MatchString(BaseName(dir)) {
			t.Errorf("BaseName(%q) is no valid name", dir)
		}
	}
}

func TestNamesAreNeverGivenOutAgain(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	name := func() string {
		t.Helper()
		return must[Cell](t)(db.CreateCell(ctx, Cell{ProjectDir: "/src/api"})).Name
	}
	if got := []string{name(), name(), name()}; !reflect.DeepEqual(got, []string{"api", "api-2", "api-3"}) {
		t.Fatalf("names: %v", got)
	}
	if err := db.DeleteCell(ctx, "api-3"); err != nil {
		t.Fatal(err)
	}
	must[[]string](t)(db.Purge(ctx, time.Now().AddDate(100, 0, 0)))
	if got := name(); got != "api-4" {
		t.Fatalf("after the purge of api-3: %s, want api-4", got)
	}
	if _, err := db.CreateCell(ctx, Cell{ProjectDir: "/x", Name: "api-3"}); !errors.Is(err, ErrNameTaken) {
		t.Fatalf("a purged name asked for: %v, want ErrNameTaken", err)
	}
	for _, bad := range []string{"API", "a b", "-a", "a-", "a/b", strings.Repeat("a", maxName+1)} {
		if _, err := db.CreateCell(ctx, Cell{ProjectDir: "/x", Name: bad}); err == nil {
			t.Errorf("name %q was accepted", bad)
		}
	}
	if _, err := db.CreateCell(ctx, Cell{ProjectDir: "relative"}); err == nil {
		t.Error("a relative project directory was accepted")
	}
}

func TestSlotNumbersAreNeverReused(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	must[Cell](t)(db.CreateCell(ctx, Cell{ProjectDir: "/src/api", Engine: "host"}))
	slot := func() Slot {
		t.Helper()
		return must[Slot](t)(db.CreateSlot(ctx, Slot{Cell: "api", Agent: "claude", Command: []string{"claude", "--x y"}}))
	}
	first, second := slot(), slot()
	if first.Number != 0 || second.Number != 1 {
		t.Fatalf("numbers %d, %d", first.Number, second.Number)
	}
	if first.SessionID != cell.SessionID("api-0") {
		t.Fatalf("session ID %s", first.SessionID)
	}
	if err := db.DeleteSlot(ctx, "api", 1); err != nil {
		t.Fatal(err)
	}
	sessions := must[[]string](t)(db.Purge(ctx, time.Now().AddDate(100, 0, 0)))
	if !reflect.DeepEqual(sessions, []string{second.SessionID}) {
		t.Fatalf("purged sessions %v", sessions)
	}
	if third := slot(); third.Number != 2 {
		t.Fatalf("after the purge of slot 1 comes %d, want 2", third.Number)
	}
	if got := must[Slot](t)(db.Slot(ctx, "api", 0)); !reflect.DeepEqual(got, first) {
		t.Fatalf("stored %+v, read %+v", first, got)
	}
	if _, err := db.CreateSlot(ctx, Slot{Cell: "none"}); !errors.Is(err, ErrNoCell) {
		t.Fatalf("a slot of no cell: %v", err)
	}
}

func TestTrashHidesAndRestores(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	must[Cell](t)(db.CreateCell(ctx, Cell{ProjectDir: "/src/api"}))
	must[Cell](t)(db.CreateCell(ctx, Cell{ProjectDir: "/src/web"}))
	for range 2 {
		must[Slot](t)(db.CreateSlot(ctx, Slot{Cell: "api", Agent: "shell"}))
	}
	if err := errors.Join(db.DeleteSlot(ctx, "api", 0), db.DeleteCell(ctx, "web")); err != nil {
		t.Fatal(err)
	}
	trash := must[[]Trashed](t)(db.Trash(ctx))
	if len(trash) != 2 || trash[0].Cell != "web" || trash[0].Slot != -1 || trash[1].Cell != "api" || trash[1].Slot != 0 {
		t.Fatalf("trash %+v", trash)
	}
	if cells := must[[]Cell](t)(db.Cells(ctx)); len(cells) != 1 {
		t.Fatalf("cells %+v", cells)
	}
	if err := db.RenameCell(ctx, "web", "x"); !errors.Is(err, ErrNoCell) {
		t.Fatalf("renaming a trashed cell: %v", err)
	}
	if err := errors.Join(db.Restore(ctx, "web", -1), db.Restore(ctx, "api", 0)); err != nil {
		t.Fatal(err)
	}
	if cells, slots := must[[]Cell](t)(db.Cells(ctx)), must[[]Slot](t)(db.Slots(ctx)); len(cells) != 2 || len(slots) != 2 {
		t.Fatalf("restored: %d cells, %d slots", len(cells), len(slots))
	}
	if err := db.Restore(ctx, "web", -1); !errors.Is(err, ErrNoCell) {
		t.Fatalf("restoring what is not in the trash: %v", err)
	}
}

func TestUndoGoesBackInOrder(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	must[Cell](t)(db.CreateCell(ctx, Cell{ProjectDir: "/src/api"}))
	must[Slot](t)(db.CreateSlot(ctx, Slot{Cell: "api", Agent: "shell", Title: "old"}))
	err := errors.Join(
		db.RenameCell(ctx, "api", "New"),
		db.RenameCell(ctx, "api", "New"), // no change: not an action
		db.PinCell(ctx, "api", true),
		db.ArchiveSlot(ctx, "api", 0, true),
		db.RenameSlot(ctx, "api", 0, "title"),
		db.SetStopped(ctx, "api", 0, true),
		db.DeleteCell(ctx, "api"))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []ActionKind
	for {
		action, err := db.Undo(ctx, time.Time{})
		if errors.Is(err, ErrNothingToUndo) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, action.Kind)
	}
	if want := []ActionKind{Delete, Stop, Rename, Archive, Pin, Rename}; !reflect.DeepEqual(kinds, want) {
		t.Fatalf("undone %v, want %v", kinds, want)
	}
	c, s := must[Cell](t)(db.Cell(ctx, "api")), must[Slot](t)(db.Slot(ctx, "api", 0))
	if c.Title != "api" || c.Pinned || s.Archived || s.Title != "old" || s.Stopped {
		t.Fatalf("after undoing all: %+v %+v", c, s)
	}
}

func TestUndoLeavesWhatWasChangedSince(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	must[Cell](t)(db.CreateCell(ctx, Cell{ProjectDir: "/src/api"}))
	if err := errors.Join(db.PinCell(ctx, "api", true), db.RenameCell(ctx, "api", "a")); err != nil {
		t.Fatal(err)
	}
	// Somebody renames without an action of ours.
	if _, err := db.SQL().ExecContext(ctx, `UPDATE state_cells SET title = 'b'`); err != nil {
		t.Fatal(err)
	}
	if action := must[Action](t)(db.Undo(ctx, time.Time{})); action.Kind != Pin {
		t.Fatalf("undid %s, want pin", action.Kind)
	}
	if c := must[Cell](t)(db.Cell(ctx, "api")); c.Title != "b" {
		t.Fatalf("title %q, want b", c.Title)
	}
	if _, err := db.Undo(ctx, time.Now().AddDate(100, 0, 0)); !errors.Is(err, ErrNothingToUndo) {
		t.Fatalf("undo with a limit in the future: %v", err)
	}
}

func TestApprovals(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	if got := must[string](t)(db.Approved(ctx, "/p/devcell.toml")); got != "" {
		t.Fatalf("approved at first: %q", got)
	}
	if err := errors.Join(db.Approve(ctx, "/p/devcell.toml", "one"), db.Approve(ctx, "/p/devcell.toml", "two")); err != nil {
		t.Fatal(err)
	}
	if got := must[string](t)(db.Approved(ctx, "/p/devcell.toml")); got != "two" {
		t.Fatalf("approved %q, want two", got)
	}
	if err := db.Revoke(ctx, "/p/devcell.toml"); err != nil {
		t.Fatal(err)
	}
	if got := must[string](t)(db.Approved(ctx, "/p/devcell.toml")); got != "" {
		t.Fatalf("approved after revoking: %q", got)
	}
}

func TestMigrationsRunOnceAndRefuseNewerOnes(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	steps := []string{`CREATE TABLE x (a INTEGER); INSERT INTO x VALUES (1);`, `INSERT INTO x VALUES (2);`}
	if err := errors.Join(db.Migrate(ctx, "x", steps[:1]), db.Migrate(ctx, "x", steps), db.Migrate(ctx, "x", steps)); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := db.SQL().QueryRowContext(ctx, `SELECT count(*) FROM x`).Scan(&rows); err != nil || rows != 2 {
		t.Fatalf("%d rows, %v", rows, err)
	}
	if err := db.Migrate(ctx, "x", steps[:1]); !errors.Is(err, ErrNewer) {
		t.Fatalf("an older cellmux: %v, want ErrNewer", err)
	}
	if err := db.Migrate(ctx, "y", []string{`CREATE TABLE y (a); SELECT nonsense;`}); err == nil {
		t.Fatal("a bad step was accepted")
	}
	var tables int
	if err := db.SQL().QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'y'`).Scan(&tables); err != nil || tables != 0 {
		t.Fatalf("a failed step left %d tables, %v", tables, err)
	}
}

// childVariable makes the test binary one of the many processes.
const childVariable = "CELLMUX_STATE_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		os.Exit(child(path))
	}
	os.Exit(m.Run())
}

func child(path string) int {
	ctx := context.Background()
	db, _, err := Open(ctx, path)
	if err == nil {
		defer db.Close()
		for range 5 {
			var c Cell
			if c, err = db.CreateCell(ctx, Cell{ProjectDir: "/src/api"}); err != nil {
				break
			}
			if _, err = db.CreateSlot(ctx, Slot{Cell: c.Name, Agent: "shell"}); err != nil {
				break
			}
			if _, err = db.CreateSlot(ctx, Slot{Cell: "api", Agent: "shell"}); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestManyProcessesCreateAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cellmux.db")
	const processes = 12
	var wait sync.WaitGroup
	for range processes {
		wait.Go(func() {
			command := exec.CommandContext(t.Context(), os.Args[0])
			command.Env = []string{childVariable + "=" + path}
			if out, err := command.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wait.Wait()
	db, _, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	cells, slots := must[[]Cell](t)(db.Cells(t.Context())), must[[]Slot](t)(db.Slots(t.Context()))
	names, apps := map[string]bool{}, map[string]bool{}
	for _, c := range cells {
		names[c.Name] = true
	}
	for _, s := range slots {
		apps[target(s.Cell, s.Number)] = true
	}
	if len(names) != 5*processes || len(apps) != 10*processes {
		t.Fatalf("%d names and %d slots, want %d and %d", len(names), len(apps), 5*processes, 10*processes)
	}
}
