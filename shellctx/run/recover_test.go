//go:build unix

package run

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/cell/state"
	"cellmux/engine"
)

// crashEnv makes this test binary a cellmux that runs a line and waits to be
// killed: DATABASE|SPILL|PROJECT|LINE.
const crashEnv = "CELLMUX_TEST_CRASH"

func TestMain(m *testing.M) {
	if spec := os.Getenv(crashEnv); spec != "" {
		crash(strings.SplitN(spec, "|", 4))
		return
	}
	os.Exit(m.Run())
}

func crash(spec []string) {
	db, _, err := state.Open(context.Background(), spec[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := db.Migrate(context.Background(), "run", Migrations()); err != nil {
		fmt.Println(err)
		return
	}
	s := New(Options{DB: db.SQL(), SpillDir: spec[1], Env: func(context.Context, engine.Cell, int, bool) ([]string, error) {
		return []string{"PATH=" + os.Getenv("PATH")}, nil
	}})
	h, err := s.Start(context.Background(), Request{Cell: engine.Cell{Name: "api", ProjectDir: spec[2], Kind: engine.Host}, Line: spec[3], Mode: Ask})
	if err != nil {
		fmt.Println(err)
		return
	}
	for c := range h.Chunks() {
		fmt.Print(c.Text)
	}
	e, err := h.Wait(context.Background())
	fmt.Println("ended", e.Leftover, err)
	select {} // a cellmux that runs on
}

// crashed runs a line in a cellmux of its own, which is killed with SIGKILL once
// it has printed until.
func crashed(t *testing.T, b *subject, database, line, until string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Neither its context nor its Wait is used: it is to die alone.
	p, err := os.StartProcess(self, []string{self}, &os.ProcAttr{
		Dir: b.cell.ProjectDir,
		Env: append(os.Environ(), crashEnv+"="+strings.Join([]string{database, b.opts.SpillDir, b.cell.ProjectDir, line}, "|")),
		Files: func() []*os.File {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close() })
			seen := make(chan struct{})
			go func() {
				defer close(seen)
				lines := bufio.NewScanner(r)
				for lines.Scan() {
					if strings.Contains(lines.Text(), until) {
						return
					}
				}
			}()
			t.Cleanup(func() { _ = w.Close() })
			b.up = seen
			return []*os.File{nil, w, os.Stderr}
		}(),
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-b.up:
	case <-time.After(30 * time.Second):
		t.Error("never came up")
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

func newCrashSubject(t *testing.T) (*subject, string) {
	t.Helper()
	database := filepath.Join(t.TempDir(), "cellmux.db")
	db, _, err := state.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b := newSubject(t, func(o *Options) { o.DB = db.SQL() })
	if err := db.Migrate(t.Context(), "run", Migrations()); err != nil {
		t.Fatal(err)
	}
	return b, database
}

// TestAfterKill9TheNextStartEndsAndRecords is the promise of issue D.
func TestAfterKill9TheNextStartEndsAndRecords(t *testing.T) {
	b, database := newCrashSubject(t)
	crashed(t, b, database, "echo half a line; setsid sleep 600 & sleep 600", "half a line")
	rows, err := b.store.list(t.Context(), "WHERE state = 'running'")
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	id := rows[0].ID
	waitUntil(t, func() bool {
		left, err := proc.Members(proc.Tree{Marker: id})
		return err == nil && len(left) == 2
	})

	// What a living cellmux runs is none of ours.
	h := b.start("sleep 600", Context)
	other := New(b.opts)
	defer func() { _ = other.Close(t.Context()) }()
	did, err := other.Recover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(did.Interrupted) != 1 || did.Ended != 2 {
		t.Errorf("%+v", did)
	}
	left, err := proc.Members(proc.Tree{Marker: id})
	if err != nil || len(left) != 0 {
		t.Errorf("left running: %v %v", left, err)
	}
	e := did.Interrupted[0]
	if e.ID != id || e.State != Interrupted || e.Record.Output != "half a line\n" || e.Record.ExitCode != -1 || e.Lines != 1 ||
		e.Record.OutputBytes != 12 || !strings.HasPrefix(e.Record.Error, "interrupted") || e.Mode != Ask {
		t.Errorf("%+v", e)
	}
	if seen := b.handed(); len(seen) != 1 || seen[0].ID != id {
		t.Errorf("handed over: %+v", seen)
	}
	// Once: a second look finds nothing.
	if did, err := other.Recover(t.Context()); err != nil || len(did.Interrupted) != 0 || len(b.handed()) != 1 {
		t.Errorf("second: %+v %v", did, err)
	}
	if h.Execution().State != Running {
		t.Error("the living one was touched")
	}
	h.Cancel()
	b.wait(h)
}

func TestAfterKill9WhatACommandLeftRunningIsEnded(t *testing.T) {
	b, database := newCrashSubject(t)
	crashed(t, b, database, "sleep 600 & echo hi", "ended 1")
	rows, err := b.store.list(t.Context(), "WHERE leftover > 0")
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	did, err := b.Recover(t.Context())
	if err != nil || did.Ended != 1 || len(did.Interrupted) != 0 {
		t.Errorf("%+v %v", did, err)
	}
	if left, _ := proc.Members(proc.Tree{Marker: rows[0].ID}); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestARecordThatWasNotHandedOverIsHandedOverLater(t *testing.T) {
	fail := true
	var seen []Execution
	b := newSubject(t, func(o *Options) {
		o.OnRecord = func(_ context.Context, e Execution) error {
			if fail {
				return fmt.Errorf("the conversation cannot be written")
			}
			seen = append(seen, e)
			return nil
		}
	})
	h := b.start("echo hi", Context)
	if _, err := h.Wait(t.Context()); err == nil {
		t.Error("the failure was not said")
	}
	fail = false
	// Only when its cellmux is gone: the living one might still do it.
	if _, err := b.Recover(t.Context()); err != nil || len(seen) != 0 {
		t.Errorf("%v %v", seen, err)
	}
	if err := b.store.exec(t.Context(), "UPDATE executions SET owner_start = 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Recover(t.Context()); err != nil || len(seen) != 1 || seen[0].Record.Output != "hi\n" {
		t.Errorf("%v %v", seen, err)
	}
	if _, err := b.Recover(t.Context()); err != nil || len(seen) != 1 {
		t.Errorf("a second time: %v %v", seen, err)
	}
}
