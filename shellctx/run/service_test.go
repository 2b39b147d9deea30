package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/cell/state"
	"cellmux/engine"
)

// subject is a Service on a database of its own.
type subject struct {
	*Service
	t    testing.TB
	cell engine.Cell
	opts Options

	mu   sync.Mutex
	seen []Execution   // handed over
	up   chan struct{} // closed when the crash test's cellmux is where it should be
}

func newSubject(t testing.TB, change ...func(*Options)) *subject {
	t.Helper()
	db, _, err := state.Open(context.Background(), filepath.Join(t.TempDir(), "cellmux.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(context.Background(), "run", Migrations()); err != nil {
		t.Fatal(err)
	}
	b := &subject{t: t, cell: engine.Cell{Name: "api", ProjectDir: t.TempDir(), Kind: engine.Host}}
	b.opts = Options{
		DB: db.SQL(), Runner: proc.New(), SpillDir: filepath.Join(t.TempDir(), "spill"),
		Env: func(context.Context, engine.Cell, int, bool) ([]string, error) { return os.Environ(), nil },
		OnRecord: func(_ context.Context, e Execution) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.seen = append(b.seen, e)
			return nil
		},
	}
	for _, c := range change {
		c(&b.opts)
	}
	b.Service = New(b.opts)
	t.Cleanup(b.close)
	return b
}

func (b *subject) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		b.t.Error(err)
	}
}

func (b *subject) handed() []Execution {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Execution(nil), b.seen...)
}

func (b *subject) start(line string, mode Mode) Handle {
	b.t.Helper()
	h, err := b.Start(context.Background(), Request{Cell: b.cell, Line: line, Mode: mode})
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

func (b *subject) run(line string) Execution {
	b.t.Helper()
	return b.wait(b.start(line, Context))
}

func (b *subject) wait(h Handle) Execution {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	e, err := h.Wait(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	return e
}

// waitUntil asks until a condition holds, for at most 20 seconds.
func waitUntil(t testing.TB, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("waited too long")
		}
	}
}

func TestEveryEndIsARecord(t *testing.T) {
	b := newSubject(t)
	for _, c := range []struct {
		line   string
		state  State
		code   int
		output string
		error  string
	}{
		{"echo hi", Exited, 0, "hi\n", ""},
		{"echo out; echo err >&2; exit 3", Exited, 3, "out\nerr\n", ""},
		{"no-such-command-xyz", Exited, 127, "no-such-command-xyz: command not found\n", ""},
		{"if", Exited, 2, "", "could not parse command: 1:1: `if` must be followed by a statement list"},
		{"exit", Exited, 0, "", ""},
	} {
		e := b.run(c.line)
		if e.State != c.state || e.Record.ExitCode != c.code || e.Record.Output != c.output || e.Record.Error != c.error {
			t.Errorf("%s: %+v", c.line, e)
		}
		if e.Record.Command != c.line || e.Record.CWD != b.cell.ProjectDir || e.Record.OutputBytes != len(c.output) {
			t.Errorf("%s: record %+v", c.line, e.Record)
		}
	}
	b.run("cd /; rmdir " + b.cell.ProjectDir)
	if got := len(b.handed()); got != 6 {
		t.Errorf("%d records were handed over, want 6", got)
	}
	log, err := b.Log(t.Context(), "api", 0, 3)
	if err != nil || len(log) != 3 || log[2].Record.Command != "cd /; rmdir "+b.cell.ProjectDir {
		t.Errorf("log: %v %+v", err, log)
	}
}

func TestWorkingDirectoryAndExportsPersist(t *testing.T) {
	b := newSubject(t)
	b.run("mkdir sub; cd sub; export X=1; Y=2")
	e := b.run("pwd; echo $X$Y")
	if want := filepath.Join(b.cell.ProjectDir, "sub") + "\n1\n"; e.Record.Output != want {
		t.Errorf("printed %q, want %q", e.Record.Output, want)
	}
	// A later cellmux goes on in that directory.
	again := New(b.opts)
	dir, note := again.Directory(t.Context(), b.cell, 0, false)
	if dir != filepath.Join(b.cell.ProjectDir, "sub") || note != "" {
		t.Errorf("directory %q, note %q", dir, note)
	}
	// One that vanished: the nearest above it, said aloud.
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	e = b.run("pwd")
	if e.Record.Output != b.cell.ProjectDir+"\n" || !strings.Contains(e.Note, "is gone") {
		t.Errorf("after it vanished: %+v", e)
	}
}

func TestPrivateGoesNowhereElse(t *testing.T) {
	b := newSubject(t)
	b.wait(b.start("echo secret", Private))
	b.wait(b.start("echo asked", Ask))
	seen := b.handed()
	if len(seen) != 1 || seen[0].Record.Output != "asked\n" || !seen[0].Record.TriggerAgent {
		t.Errorf("handed over: %+v", seen)
	}
}

func TestCancelKeepsWhatWasPrinted(t *testing.T) {
	b := newSubject(t)
	h := b.start("echo before; sleep 100; echo after", Context)
	for c := range h.Chunks() {
		if strings.Contains(c.Text, "before") {
			break
		}
	}
	begin := time.Now()
	h.Cancel()
	e := b.wait(h)
	if took := time.Since(begin); took > 2500*time.Millisecond {
		t.Errorf("took %v", took)
	}
	if e.State != Cancelled || e.Record.ExitCode != 130 || e.Record.Output != "before\n" || e.Record.Error != "cancelled" {
		t.Errorf("%+v", e)
	}
}
