//go:build unix

package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
)

func TestActiveListsTheExecutionsOfEveryProcess(t *testing.T) {
	b := newSubject(t)
	// The other cellmux: it has its own start time, and lives as long as we do.
	other := New(b.opts)
	other.store.owner.pid = os.Getppid()
	other.store.owner.start, _ = proc.StartTime(os.Getppid())
	t.Cleanup(func() { _ = other.Close(t.Context()) })

	mine := b.start("echo up; sleep 600", Context)
	waitForOutput(t, mine, "up")
	left := b.run("sleep 600 & echo hi")
	theirs, err := other.Start(t.Context(), Request{Cell: b.cell, Line: "echo up; sleep 600", Mode: Private})
	if err != nil {
		t.Fatal(err)
	}
	waitForOutput(t, theirs, "up")
	b.run("true")

	list, err := b.Active(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v %v", list, err)
	}
	for i, want := range []struct {
		id        string
		state     State
		leftover  int
		elsewhere bool
	}{{mine.Execution().ID, Running, 0, false}, {left.ID, Exited, 1, false}, {theirs.Execution().ID, Running, 0, true}} {
		if a := list[i]; a.ID != want.id || a.State != want.state || a.Leftover != want.leftover || a.Elsewhere != want.elsewhere {
			t.Errorf("%d: %+v, want %+v", i, a, want)
		}
	}
	noCell := func(string) (engine.Cell, error) { t.Error("asked for a cell"); return engine.Cell{}, nil }
	for _, a := range list {
		if err := b.End(t.Context(), a.ID, noCell); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if e := b.wait(mine); e.State != Cancelled {
		t.Errorf("%+v", e)
	}
	if e := b.wait(theirs); e.State != Exited || e.Record.ExitCode <= 128 || e.Record.Output != "up\n" {
		t.Errorf("%+v", e)
	}
	waitUntil(t, func() bool { list, err := b.Active(t.Context()); return err == nil && len(list) == 0 })
	if err := b.End(t.Context(), "nosuch", noCell); err == nil {
		t.Error("an unknown ID was ended")
	}
}

func TestOldOutputIsPrunedByAgeAndBySize(t *testing.T) {
	b := newSubject(t, func(o *Options) { o.Limits = Limits{KeepBytes: 500_000, KeepFor: 24 * time.Hour} })
	var ran []Execution
	for range 4 {
		ran = append(ran, b.run("head -c 200000 /dev/zero"))
	}
	running := b.start("echo up; sleep 600", Context)
	waitForOutput(t, running, "up")
	stray := filepath.Join(b.opts.SpillDir, "gone.out.new")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i, path := range []string{ran[0].Spill, ran[1].Spill, ran[2].Spill, ran[3].Spill, running.Execution().Spill, stray} {
		at := now.Add(time.Duration(i-10) * time.Minute)
		if path == ran[3].Spill || path == stray || i == 4 {
			at = now.Add(-25 * time.Hour)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		ran[0].Spill: false, // the three newest that are young make 600,000 bytes
		ran[1].Spill: true, ran[2].Spill: true, ran[3].Spill: false, stray: false, running.Execution().Spill: true,
	} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want kept %v", path, err, want)
		}
	}
	log, err := b.Log(t.Context(), "api", 0, 10)
	if err != nil || log[0].Spill != "" || log[1].Spill == "" || log[0].Record.Output == "" {
		t.Errorf("%+v %v", log, err)
	}
}
