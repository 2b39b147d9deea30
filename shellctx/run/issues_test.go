//go:build unix

package run

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/shellctx"
)

// The tests below are named after the rows of the reference sheet's table of
// public bugs and requests. Rows 5, 11, 20 and 23 are in traps_test.go; those of
// the composer (26, 27 and 30 as the screen shows them) are in tui.

func TestIssueRow1_EndlessOutputIsEndedAtItsCapAndFillsNoDisk(t *testing.T) {
	b := newSubject(t, func(o *Options) { o.Limits = Limits{Produced: 8 << 20, Disk: 64 << 10} })
	e := b.run("yes | cat")
	if e.State != Cancelled || e.Record.Error != "ended after 8 MiB of output" {
		t.Errorf("state %s, error %q", e.State, e.Record.Error)
	}
	if info, err := os.Stat(e.Spill); err != nil || info.Size() > 65<<10 {
		t.Errorf("on disk: %v %v", info, err)
	}
	if left, err := proc.Members(proc.Tree{Marker: e.ID}); err != nil || len(left) != 0 {
		t.Errorf("still running: %v %v", left, err)
	}
}

func TestIssueRow2_ManyLongOutputsAreBoundedTogether(t *testing.T) {
	const each = 64 << 10
	b := newSubject(t, func(o *Options) { o.Limits = Limits{Disk: each} })
	b.run("true")
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	const commands = 12
	for range commands {
		if e := b.run("yes | head -c 4000000"); e.Record.OutputBytes != 4_000_000 {
			t.Fatalf("%d bytes", e.Record.OutputBytes)
		}
	}
	b.mu.Lock()
	b.seen = nil // the test's own copies
	b.mu.Unlock()
	if grown := heap() - before; grown > 2<<20 {
		t.Errorf("48 MB of output left %d bytes in memory", grown)
	}
	total := int64(0)
	files, err := os.ReadDir(b.opts.SpillDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > commands*(each+1<<10) {
		t.Errorf("48 MB of output left %d bytes on disk", total)
	}
}

func TestIssueRow4_APickerThatWantsATerminalFailsAtOnce(t *testing.T) {
	b := newSubject(t)
	// What fzf does: choices on standard input, keys from /dev/tty.
	e := b.run("printf 'a\\nb\\n' | sh -c 'exec 3</dev/tty || exit 2; head -n1 <&3'")
	if e.State != Exited || e.Record.ExitCode != 2 || e.Leftover != 0 {
		t.Errorf("%+v", e)
	}
	if took := e.Ended.Sub(e.Started); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestIssueRow6_WhatReadsStandardInputEndsAtOnce(t *testing.T) {
	b := newSubject(t)
	for _, line := range []string{"cat", "cat -", "sh -c cat", "wc -c >/dev/null", "sort", "cat | cat"} {
		e := b.run(line)
		if e.State != Exited || e.Record.ExitCode != 0 || e.Record.Output != "" || e.Ended.Sub(e.Started) > 5*time.Second {
			t.Errorf("%s: %+v", line, e)
		}
	}
}

func TestIssueRow7_StandardInputDoesNotLookPiped(t *testing.T) {
	b := newSubject(t)
	e := b.run("sh -c '[ -p /dev/stdin ] && echo piped; [ -S /dev/stdin ] && echo socket; [ -c /dev/stdin ] && echo device'")
	if e.Record.Output != "device\n" {
		t.Errorf("%q", e.Record.Output)
	}
}

func TestIssueRow8_ProfilesAreReadOnlyByTheUsersOwnShell(t *testing.T) {
	const profile = "from_profile() { echo here; }\n"
	own := newProgramSubject(t, "bash", profile)
	if e := own.run("from_profile"); e.Record.Output != "here\n" || e.Record.ExitCode != 0 {
		t.Errorf("the user's shell: %+v", e.Record)
	}
	ours := newProgramSubject(t, "bash", profile, func(o *Options) { o.Program = "" })
	if e := ours.run("from_profile"); e.Record.ExitCode != 127 {
		t.Errorf("the interpreter: %+v", e.Record)
	}
}

func TestIssueRow9_WhatPersistsIsNeverQuotedAndReadAgain(t *testing.T) {
	b := newSubject(t)
	b.run(`export HOSTILE=$'it\'s "$(touch ran)" \\: ` + "`touch ran`" + `\n; touch ran\nend'`)
	b.run(`f() { unset autoload; echo "$1"; }; alias ll='ls "'; export PATH="$PATH:/odd\:dir:/with space"`)
	e := b.run(`printf '%s|%s' "$HOSTILE" "${PATH##*:/odd}"`)
	want := "it's \"$(touch ran)\" \\: `touch ran`\n; touch ran\nend|\\:dir:/with space"
	if e.Record.Output != want || e.Record.ExitCode != 0 {
		t.Errorf("%q, want %q", e.Record.Output, want)
	}
	if e := b.run("sh -c 'printf %s \"$HOSTILE\"'"); !strings.HasPrefix(want, e.Record.Output) || e.Record.Output == "" {
		t.Errorf("a program sees %q", e.Record.Output)
	}
	if e := b.run("test -e ran"); e.Record.ExitCode != 1 {
		t.Error("a value was read as source")
	}
}

func TestIssueRow10_TheDirectoryIsKept(t *testing.T) {
	b := newSubject(t)
	b.run("mkdir -p deep/er && cd deep")
	b.run("cd er")
	want := filepath.Join(b.cell.ProjectDir, "deep", "er")
	if e := b.run("pwd; sh -c pwd"); e.Record.Output != want+"\n"+want+"\n" || e.Record.CWD != want {
		t.Errorf("%+v", e.Record)
	}
	if dir, note := b.Directory(t.Context(), b.cell, 0, false); dir != want || note != "" {
		t.Errorf("%q %q", dir, note)
	}
	// Another slot has a shell of its own.
	if dir, _ := b.Directory(t.Context(), b.cell, 1, false); dir != b.cell.ProjectDir {
		t.Errorf("the other slot is in %q", dir)
	}
}

func TestIssueRow12_ADeletedDirectoryFailsNothing(t *testing.T) {
	b := newSubject(t)
	b.run("mkdir -p a/b/c; cd a/b/c")
	if err := os.RemoveAll(filepath.Join(b.cell.ProjectDir, "a", "b")); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(b.cell.ProjectDir, "a")
	for i, line := range []string{"pwd", "sh -c pwd", "pwd"} {
		e := b.run(line)
		if e.Record.Output != want+"\n" || e.State != Exited || (e.Note != "") != (i == 0) {
			t.Errorf("%s: %+v", line, e)
		}
	}
}

func TestIssueRow13_AServerInTheBackgroundHoldsNothing(t *testing.T) {
	b := newSubject(t)
	// It keeps standard output open and goes on printing.
	e := b.run("sh -c 'echo listening; while :; do sleep 0.05; echo request; done' &")
	if took := e.Ended.Sub(e.Started); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	if e.State != Exited || e.Record.ExitCode != 0 || !strings.HasPrefix(e.Record.Output, "listening\n") || e.Leftover == 0 {
		t.Errorf("%+v", e)
	}
	// It lives on: what it prints later is the job's, not the record's.
	waitUntil(t, func() bool {
		jobs := b.Jobs()
		return len(jobs) == 1 && jobs[0].ID == e.ID && strings.Contains(jobs[0].Output, "request")
	})
}

func TestIssueRow14_EndingAJobReturnsWhateverHoldsItsPipe(t *testing.T) {
	b := newSubject(t)
	e := b.run("sh -c 'trap \"\" INT TERM HUP; setsid sh -c \"trap \\\"\\\" INT TERM; echo up; while :; do sleep 600; done\" & while :; do sleep 600; done' &")
	begin := time.Now()
	if err := b.KillJob(e.ID); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	if left, err := proc.Members(proc.Tree{Marker: e.ID}); err != nil || len(left) != 0 {
		t.Errorf("still running: %v %v", left, err)
	}
}

func TestIssueRow15_AJobDoesNotOutliveCellmux(t *testing.T) {
	b := newSubject(t)
	e := b.run("setsid sh -c 'while :; do sleep 1; done' & nohup sleep 600 >/dev/null 2>&1 &")
	if e.Leftover == 0 {
		t.Fatalf("%+v", e)
	}
	b.close()
	if left, err := proc.Members(proc.Tree{Marker: e.ID}); err != nil || len(left) != 0 {
		t.Errorf("still running: %v %v", left, err)
	}
}

func TestIssueRow17_EveryProgramLeadsASessionWithoutATerminal(t *testing.T) {
	b := newSubject(t)
	e := b.run("sh -c 'ps -o sid=,pgid=,pid=,tty= -p $$'")
	f := strings.Fields(e.Record.Output)
	if len(f) != 4 || f[0] != f[2] || f[1] != f[2] || f[3] != "?" || f[2] == strconv.Itoa(os.Getpid()) {
		t.Errorf("session, group, process, terminal: %q", e.Record.Output)
	}
}

func TestIssueRow18_NoPTYIsOpened(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	ptys := func() (found []string) {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			to, err := os.Readlink("/proc/self/fd/" + fd.Name())
			if err == nil && (strings.HasPrefix(to, "/dev/pts/") || strings.HasPrefix(to, "/dev/ptmx")) {
				found = append(found, to)
			}
		}
		slices.Sort(found)
		return found
	}
	b := newSubject(t)
	before := ptys()
	// After an exit, a failed start and a cancel, and while one runs.
	b.run("sh -c :")
	b.run("./no-such-program")
	h := b.start("echo up; sleep 600", Context)
	waitForOutput(t, h, "up")
	if now := ptys(); !slices.Equal(now, before) {
		t.Errorf("while it runs: %v, before: %v", now, before)
	}
	h.Cancel()
	b.wait(h)
	if now := ptys(); !slices.Equal(now, before) {
		t.Errorf("after: %v, before: %v", now, before)
	}
	e := b.run("sh -c 'readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2'")
	if e.Record.ExitCode != 0 || strings.Contains(e.Record.Output, "/dev/pt") {
		t.Errorf("a program has %q", e.Record.Output)
	}
}

func TestIssueRow19_CancelEndsTheTreeAndNotItsLeaderAlone(t *testing.T) {
	b := newSubject(t)
	h := b.start("sh -c 'sh -c \"sleep 600 & sleep 601 & echo up; wait\" & wait'", Context)
	waitForOutput(t, h, "up")
	id := h.Execution().ID
	if running, err := proc.Members(proc.Tree{Marker: id}); err != nil || len(running) != 4 {
		t.Fatalf("%v %v", running, err)
	}
	h.Cancel()
	b.wait(h)
	if left, err := proc.Members(proc.Tree{Marker: id}); err != nil || len(left) != 0 {
		t.Errorf("still running: %v %v", left, err)
	}
}

func TestIssueRow21_ANULHidesNothing(t *testing.T) {
	b := newSubject(t)
	if e := b.run(`printf 'before\0after\n'; echo more`); e.Record.Output != "before␀after\nmore\n" {
		t.Errorf("%q", e.Record.Output)
	}
}

func TestIssueRow25_AnAmpersandIsNeverShownAsAnEntity(t *testing.T) {
	b := newSubject(t)
	h := b.start(`echo 'a && b <c> &amp;'`, Context)
	shown := screenOf(h)
	e := b.wait(h)
	want := "a && b <c> &amp;\n"
	if shown != want || e.Record.Output != want {
		t.Errorf("shown %q, record %q, want %q", shown, e.Record.Output, want)
	}
	if text := shellctx.ContextText(e.Record); !strings.Contains(text, `"output": "a && b <c> &amp;\n"`) {
		t.Errorf("for the model: %s", text)
	}
}

func TestIssueRow26_ExitEndsNothingButItsOwnShell(t *testing.T) {
	b := newSubject(t)
	for line, code := range map[string]int{"exit": 0, "exit 7": 7, "quit": 127, "logout": 2, "exec true": 0, "set -e; false": 1} {
		other := b.start("sleep 0.1; echo other", Context)
		if e := b.run(line); e.State != Exited || e.Record.ExitCode != code {
			t.Errorf("%s: %+v", line, e)
		}
		if e := b.wait(other); e.Record.Output != "other\n" {
			t.Errorf("%s ended another command: %+v", line, e)
		}
	}
	if e := b.run("echo on"); e.Record.Output != "on\n" {
		t.Errorf("afterwards: %+v", e)
	}
}

func TestIssueRow27_TheKindIsReadFromTheLineItself(t *testing.T) {
	// Edited letter by letter, a line is at each moment what it would be if it
	// were pasted: there is no mode that could stick to prose or be lost.
	for _, c := range []struct {
		line string
		want Line
	}{
		{"!make", Line{Shell: true, Mode: Context, Text: "make"}},
		{"!make test", Line{Shell: true, Mode: Context, Text: "make test"}},
		{"make test", Line{Text: "make test"}},
		{"run !make", Line{Text: "run !make"}},
		{"!make", Line{Shell: true, Mode: Context, Text: "make"}},
	} {
		if got := ParseLine(c.line); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.line, got, c.want)
		}
	}
}

func TestIssueRow28_ACommandRunsAtOnceWhateverElseRuns(t *testing.T) {
	handing, release := make(chan struct{}), make(chan struct{})
	b := newSubject(t, func(o *Options) {
		o.OnRecord = func(_ context.Context, e Execution) error {
			if e.Record.Command == "echo first" {
				close(handing)
				<-release // the agent takes its time
			}
			return nil
		}
	})
	long := b.start("sleep 600", Context)
	first := b.start("echo first", Context)
	<-handing
	if e := b.run("echo second"); e.Record.Output != "second\n" {
		t.Errorf("%+v", e)
	}
	if long.Execution().State != Running {
		t.Error("it waited for the long one")
	}
	close(release)
	b.wait(first)
	long.Cancel()
	b.wait(long)
}

func TestIssueRow30_WhereItRunsIsKnownBeforeItRuns(t *testing.T) {
	b := newGuestSubject(t, nil)
	for _, onHost := range []bool{true, false} {
		h, err := b.Start(t.Context(), Request{Cell: b.cell, Line: "sleep 0.1", OnHost: onHost})
		if err != nil {
			t.Fatal(err)
		}
		e := h.Execution()
		if e.OnHost != onHost || e.Cell != b.cell.Name || e.Record.CWD != b.cell.ProjectDir {
			t.Errorf("%+v", e)
		}
		b.wait(h)
	}
	log, err := b.Log(t.Context(), b.cell.Name, 0, 2)
	if err != nil || len(log) != 2 || !log[0].OnHost || log[1].OnHost {
		t.Errorf("%v %+v", err, log)
	}
}

func TestIssueRow31_NoTimeoutEndsACommand(t *testing.T) {
	b := newSubject(t)
	ctx, cancel := context.WithCancel(t.Context())
	h, err := b.Start(ctx, Request{Cell: b.cell, Line: "sleep 0.3; echo done"})
	if err != nil {
		t.Fatal(err)
	}
	cancel() // the caller's patience bounded the start alone
	if deadline, ok := h.(*execution).ctx.Deadline(); ok {
		t.Errorf("it would be ended at %v", deadline)
	}
	if e := b.wait(h); e.State != Exited || e.Record.Output != "done\n" {
		t.Errorf("%+v", e)
	}
}

func TestIssueRow33_NotRecordedAndAnsweredAreMarksOfTheirOwn(t *testing.T) {
	b := newSubject(t)
	for _, typed := range []string{"!echo context", "!!echo private", "!?echo ask"} {
		line := ParseLine(typed)
		b.wait(b.start(line.Text, line.Mode))
	}
	var got bytes.Buffer
	for _, e := range b.handed() {
		got.WriteString(strings.TrimSpace(e.Record.Output) + " " + strconv.FormatBool(e.Record.TriggerAgent) + "\n")
	}
	if got.String() != "context false\nask true\n" {
		t.Errorf("the conversation got %q", got.String())
	}
	log, err := b.Log(t.Context(), "api", 0, 10)
	if err != nil || len(log) != 3 || log[1].Record.Output != "private\n" {
		t.Errorf("the shell log: %v %+v", err, log)
	}
}
