//go:build unix

package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellmux/cell/proc"
)

var path = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

func sh(t *testing.T, script string) proc.Cmd {
	t.Helper()
	return proc.Cmd{Argv: []string{"sh", "-c", script}, Dir: t.TempDir(), Env: path}
}

func TestRunReportsHowTheProgramEnded(t *testing.T) {
	for _, tc := range []struct {
		script   string
		code     int
		signaled bool
		out, err string
	}{
		{script: "echo out; echo err >&2", out: "out\n", err: "err\n"},
		{script: "exit 7", code: 7},
		{script: "kill -KILL $$", code: 137, signaled: true},
	} {
		res, err := proc.New().Run(t.Context(), sh(t, tc.script))
		if err != nil {
			t.Errorf("%s: %v", tc.script, err)
		}
		if res.ExitCode != tc.code || res.Signaled != tc.signaled || string(res.Stdout) != tc.out || string(res.Stderr) != tc.err {
			t.Errorf("%s: %+v", tc.script, res)
		}
	}
}

func TestEnvironmentAndDirectoryAreOnlyWhatWasGiven(t *testing.T) {
	t.Setenv("CELLMUX_TEST_LEAK", "leaked")
	c := sh(t, "pwd; env")
	c.Env = append(c.Env, "ONLY=this", proc.MarkerVariable+"=an outer execution's")
	c.Marker = "inner"
	res, err := proc.New().Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	out := string(res.Stdout)
	dir, _ := filepath.EvalSymlinks(c.Dir)
	if !strings.HasPrefix(out, dir+"\n") || !strings.Contains(out, "\nONLY=this\n") {
		t.Errorf("got %s", out)
	}
	if strings.Contains(out, "leaked") || strings.Contains(out, "outer") || !strings.Contains(out, proc.MarkerVariable+"=inner\n") {
		t.Errorf("got %s", out)
	}
}

func TestNilEnvironmentIsEmpty(t *testing.T) {
	res, err := proc.New().Run(t.Context(), proc.Cmd{Argv: []string{"/usr/bin/env"}, Dir: "/", LeavesDaemon: true})
	if err != nil || len(res.Stdout) != 0 {
		t.Errorf("got %q, %v", res.Stdout, err)
	}
}

func TestOutputBeyondTheLimitIsReadAndCounted(t *testing.T) {
	c := sh(t, "head -c 3000000 /dev/zero; head -c 5 /dev/zero >&2")
	c.MaxOutput = 1000
	res, err := proc.New().Run(t.Context(), c)
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v %v", res.ExitCode, err)
	}
	if len(res.Stdout) != 1000 || res.Dropped != 3000000-1000 || len(res.Stderr) != 5 {
		t.Errorf("kept %d and %d, dropped %d", len(res.Stdout), len(res.Stderr), res.Dropped)
	}
}

func TestStdinIsPassedAndIsEmptyByDefault(t *testing.T) {
	c := sh(t, "cat")
	c.Stdin = strings.NewReader(strings.Repeat("x", 200_000))
	res, err := proc.New().Run(t.Context(), c)
	if err != nil || len(res.Stdout) != 200_000 {
		t.Errorf("got %d bytes, %v", len(res.Stdout), err)
	}
	res, err = proc.New().Run(t.Context(), sh(t, "cat; echo end"))
	if err != nil || string(res.Stdout) != "end\n" {
		t.Errorf("got %q, %v", res.Stdout, err)
	}
	unread := sh(t, "exit 3") // a program that ignores its input
	unread.Stdin = strings.NewReader(strings.Repeat("x", 10<<20))
	if res, err = proc.New().Run(t.Context(), unread); err != nil || res.ExitCode != 3 {
		t.Errorf("got %d, %v", res.ExitCode, err)
	}
}

func TestWhatCannotStartIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(c proc.Cmd) error { _, err := proc.New().Run(t.Context(), c); return err }
	if err := run(proc.Cmd{Argv: []string{"cellmux-no-such-program"}, Dir: "/", Env: path}); !errors.Is(err, proc.ErrNotFound) {
		t.Errorf("missing program: %v", err)
	}
	if err := run(proc.Cmd{Argv: []string{"true"}, Dir: "/cellmux/no/such", Env: path}); err == nil || errors.Is(err, proc.ErrNotFound) {
		t.Errorf("a missing directory reads like a missing program: %v", err)
	}
	for _, dir := range []string{"", ".", file} {
		if err := run(proc.Cmd{Argv: []string{"true"}, Dir: dir, Env: path}); err == nil {
			t.Errorf("directory %q was accepted", dir)
		}
	}
	if err := run(proc.Cmd{Dir: "/"}); err == nil {
		t.Error("an empty command was accepted")
	}
}

// escapers starts, from the shell, one process of each kind that a careless
// end leaves behind, each of which writes its PID to a file, and then blocks.
const escapers = `
(echo $BASHPID > child; exec sleep 1000) &
(setsid sh -c 'echo $$ > session; exec sleep 1000') &
(setsid sh -c 'setsid sh -c "echo \$\$ > twice; exec sleep 1000" & exit') &
(sh -c 'trap "" TERM INT HUP; echo $$ > deaf; while :; do sleep 1; done') &
(sh -c 'echo $$ > stopped; kill -STOP $$; sleep 1000') &
for f in child session twice deaf stopped; do while [ ! -s $f ]; do sleep 0.01; done; done
`

func escaped(t *testing.T, dir string) map[string]int {
	t.Helper()
	pids := make(map[string]int)
	for _, name := range []string{"child", "session", "twice", "deaf", "stopped"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if pids[name], err = strconv.Atoi(strings.TrimSpace(string(b))); err != nil {
			t.Fatal(err)
		}
	}
	return pids
}

func expectGone(t *testing.T, pids map[string]int) {
	t.Helper()
	for name, pid := range pids {
		// Killed orphans may wait for init to reap them; a zombie runs no more.
		if syscall.Kill(pid, 0) == nil && !zombie(pid) {
			t.Errorf("%s (%d) still runs", name, pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(b, []byte(") Z "))
}

func bash(t *testing.T, script string) proc.Cmd {
	c := sh(t, script)
	c.Argv[0] = "bash"
	c.Grace = 200 * time.Millisecond
	return c
}

func TestWholeTreeIsEndedWhenTheProgramExits(t *testing.T) {
	c := bash(t, escapers+"echo done; exit 4")
	res, err := proc.New().Run(t.Context(), c)
	if err != nil || res.ExitCode != 4 || string(res.Stdout) != "done\n" {
		t.Fatalf("%+v, %v", res, err)
	}
	expectGone(t, escaped(t, c.Dir))
}

func TestWholeTreeIsEndedAtTheDeadline(t *testing.T) {
	c := bash(t, escapers+"echo partial; sleep 1000")
	c.Timeout = 2 * time.Second
	begin := time.Now()
	res, err := proc.New().Run(t.Context(), c)
	if !errors.Is(err, proc.ErrTimeout) || string(res.Stdout) != "partial\n" {
		t.Errorf("%+v, %v", res, err)
	}
	if took := time.Since(begin); took > 6*time.Second {
		t.Errorf("took %v", took)
	}
	expectGone(t, escaped(t, c.Dir))
}

func TestWholeTreeIsEndedOnCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := bash(t, escapers+"echo ready; sleep 1000")
	p, err := proc.New().Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.Stdout(), make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := p.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	expectGone(t, escaped(t, c.Dir))
}

// What slipped out of group, session, marker and descent cannot be found; it
// must still not hold the call through the pipe that it inherited.
func TestUntraceableProcessDoesNotHoldTheCall(t *testing.T) {
	c := bash(t, `(setsid env -i sh -c '(echo $$ > lost; exec sleep 1000) &') ; while [ ! -s lost ]; do sleep 0.01; done; echo done`)
	begin := time.Now()
	res, err := proc.New().Run(t.Context(), c)
	if err != nil || string(res.Stdout) != "done\n" {
		t.Fatalf("%+v, %v", res, err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	members, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("needs /proc to find the process again")
	}
	for _, m := range members {
		pid, err := strconv.Atoi(m.Name())
		if err != nil {
			continue
		}
		if cwd, _ := os.Readlink("/proc/" + m.Name() + "/cwd"); cwd == c.Dir {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestDaemonThatIsLeftOnPurposeLivesOn(t *testing.T) {
	c := bash(t, `setsid bash -c 'echo $$ > daemon; env > env; exec sleep 1000' >/dev/null 2>&1 & while [ ! -s env ]; do sleep 0.01; done`)
	c.LeavesDaemon = true
	c.Env = append(c.Env, proc.MarkerVariable+"=outer")
	if res, err := proc.New().Run(t.Context(), c); err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	b, err := os.ReadFile(filepath.Join(c.Dir, "daemon"))
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	if err := syscall.Kill(pid, 0); err != nil || zombie(pid) {
		t.Errorf("the daemon was ended: %v", err)
	}
	if env, _ := os.ReadFile(filepath.Join(c.Dir, "env")); bytes.Contains(env, []byte(proc.MarkerVariable)) {
		t.Errorf("the daemon carries a marker, so that another execution's end would find it:\n%s", env)
	}
}

func TestEndTreeHitsNoStrangerWithTheSamePID(t *testing.T) {
	p, err := proc.New().Start(t.Context(), sh(t, "exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	start, err := proc.StartTime(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := proc.EndTree(proc.Tree{PID: p.PID(), Start: start + 1}, 0); n != 0 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	if now, err := proc.StartTime(p.PID()); err != nil || now != start {
		t.Fatalf("the stranger was ended: %v", err)
	}
	if n, err := proc.EndTree(proc.Tree{PID: p.PID(), Start: start}, time.Second); n != 1 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	if res, err := p.Wait(); err != nil || !res.Signaled || res.ExitCode != 143 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestMembersNamesWhatALineLeftBehind(t *testing.T) {
	p, err := proc.New().Start(t.Context(), proc.Cmd{
		Argv: []string{"bash", "-c", "setsid sleep 1000 & echo up; read x"}, Dir: "/", Env: path, Marker: "left-" + t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.End()
	if _, err := io.ReadFull(p.Stdout(), make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		members, err := proc.Members(proc.Tree{Marker: "left-" + t.Name()})
		if err != nil {
			t.Fatal(err)
		}
		names := ""
		for _, m := range members {
			names += m.Name + " "
		}
		if len(members) == 2 && strings.Contains(names, "sleep") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %v", members)
		}
	}
}

func TestStartedProcessTalksOverItsPipes(t *testing.T) {
	p, err := proc.New().Start(t.Context(), sh(t, "while read line; do echo got $line; done; echo bye >&2; exit 5"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p.Stdin(), "one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.Stdout())
	if err != nil || string(out) != "got one\ngot two\nbye\n" {
		t.Errorf("%q, %v", out, err)
	}
	if res, err := p.Wait(); err != nil || res.ExitCode != 5 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestEndedProcessIsReapedWithoutWait(t *testing.T) {
	p, err := proc.New().Start(t.Context(), sh(t, "exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	p.End()
	if err := syscall.Kill(p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("not reaped: %v", err)
	}
	p.End() // a second end is harmless
}

func TestNothingIsLeakedOverManyRuns(t *testing.T) {
	fds := func() int {
		names, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Skip("needs /dev/fd")
		}
		return len(names)
	}
	run := func() {
		c := proc.Cmd{Argv: []string{"true"}, Dir: "/", Env: path, Stdin: strings.NewReader("x")}
		if _, err := proc.New().Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	run()
	before := fds()
	for range 100 {
		run()
	}
	if after := fds(); after > before+1 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestLookPathSkipsWhatAnotherDirectoryCouldPlant(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "tool")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if got, err := proc.LookPath("tool", []string{"PATH=/nowhere", "PATH=/usr/bin:" + dir}); err != nil || got != tool {
		t.Errorf("got %q, %v", got, err)
	}
	for name, env := range map[string][]string{
		"tool":      {"PATH=:."}, // the current directory
		"data":      {"PATH=" + dir},
		"./tool":    {"PATH=" + dir},
		"":          {"PATH=" + dir},
		dir:         nil,
		"no-such-x": {},
	} {
		if got, err := proc.LookPath(name, env); err == nil {
			t.Errorf("%q on %q: found %q", name, env, got)
		}
	}
}
