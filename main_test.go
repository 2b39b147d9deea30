package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellmux/cell/proc/proctest"
	"cellmux/cell/state"
	"cellmux/tui/cli"
)

// The tests below run the built program as a script would: no terminal, an empty
// environment, a HOME and a tmux socket of their own.

// house is one user's home.
type house struct {
	t       *testing.T
	home    string
	env     []string
	program string
	as      *syscall.SysProcAttr // nil: the user who runs the tests
}

var program = build{}

type build struct{ path string }

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "cellmux-program")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		program.path = filepath.Join(dir, "cellmux")
		if out, err := exec.Command("go", "build", "-o", program.path, ".").CombinedOutput(); err != nil {
			panic(string(out))
		}
		return m.Run()
	}())
}

func newHouse(t *testing.T) *house {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"api", "run", "tmux"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h := &house{t: t, home: home, program: program.path}
	h.env = []string{
		"HOME=" + home, "PATH=/usr/bin:/bin", "XDG_RUNTIME_DIR=" + filepath.Join(home, "run"),
		"TMUX_TMPDIR=" + filepath.Join(home, "tmux"), cli.SocketVariable + "=test", "TERM=xterm-256color", "LANG=C.UTF-8",
	}
	t.Cleanup(func() {
		end := exec.Command("tmux", "-L", "test", "kill-server")
		end.Env, end.SysProcAttr = h.env, h.as
		_ = end.Run() // there may be none
		proctest.EndAllOf(t, h.home)
	})
	return h
}

func (h *house) state(name string) string {
	return filepath.Join(h.home, ".local", "state", "cellmux", name)
}

// cellmux runs one command in the project directory.
func (h *house) cellmux(args ...string) (code int, stdout, stderr string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.program, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = filepath.Join(h.home, "api"), h.env, h.as
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) || ctx.Err() != nil {
		h.t.Fatalf("cellmux %q: %v: %s", args, err, errs.String())
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// uid is whom the house belongs to.
func (h *house) uid() int {
	if h.as != nil {
		return int(h.as.Credential.Uid)
	}
	return os.Getuid()
}

func (h *house) must(args ...string) string {
	h.t.Helper()
	code, stdout, stderr := h.cellmux(args...)
	if code != 0 {
		h.t.Fatalf("cellmux %q: exit code %d: %s", args, code, stderr)
	}
	return stdout
}

func TestCommandsThatNeedNoStateLeaveNone(t *testing.T) {
	h := newHouse(t)
	for _, args := range [][]string{{"--help"}, {"--version"}, {"session-id", "api:0"}, {"completion", "zsh"}, {"man"}, {"config", "path"}, {"doctor"}} {
		h.cellmux(args...)
	}
	if _, err := os.Stat(filepath.Join(h.home, ".local")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("state was made: %v", err)
	}
	if sockets, _ := filepath.Glob(filepath.Join(h.home, "tmux", "*", "test")); len(sockets) != 0 {
		t.Error("a tmux server was started")
	}
}

func TestDatabaseThatCannotBeUsedIsFiveWithASentence(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, h *house)
		said  string
	}{
		"read-only": {func(t *testing.T, h *house) {
			for _, file := range []string{h.state("cellmux.db"), h.state("")} {
				if err := os.Chmod(file, 0o500); err != nil {
					t.Fatal(err)
				}
			}
		}, "cannot be written"},
		"newer": {func(t *testing.T, h *house) {
			db, _, err := state.Open(t.Context(), h.state("cellmux.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.SQL().Exec(`UPDATE state_versions SET version = 999 WHERE component = 'convo'`); err != nil {
				t.Fatal(err)
			}
		}, "newer cellmux"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newPlainHouse(t)
			h.must("new")
			c.spoil(t, h)
			code, stdout, stderr := h.cellmux("new")
			if code != cli.ExitUnavailable || stdout != "" || !strings.Contains(stderr, c.said) {
				t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
			}
		})
	}
}

func TestDamagedDatabaseIsSetAsideReportedAndNotOverwritten(t *testing.T) {
	h := newHouse(t)
	h.must("new")
	damage := bytes.Repeat([]byte("this is no database "), 1000)
	if err := os.WriteFile(h.state("cellmux.db"), damage, 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := h.cellmux("ls", "--json")
	if code != 0 || !strings.Contains(stdout, `"cells": []`) || !strings.Contains(stderr, "damaged") {
		t.Fatalf("exit code %d, %q, %q", code, stdout, stderr)
	}
	kept, err := filepath.Glob(h.state("cellmux.db*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range kept {
		if content, err := os.ReadFile(file); err == nil && bytes.Equal(content, damage) {
			if !strings.Contains(stderr, file) {
				t.Errorf("%s is not named: %s", file, stderr)
			}
			return
		}
	}
	t.Errorf("the damaged bytes are nowhere: %v", kept)
}

func TestDatabaseThatSomebodyHoldsForAWhileIsWaitedFor(t *testing.T) {
	h := newHouse(t)
	h.must("new")
	db, _, err := state.Open(t.Context(), h.state("cellmux.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.SQL().BeginTx(t.Context(), nil) // takes the write lock
	if err != nil {
		t.Fatal(err)
	}
	release := time.AfterFunc(2*time.Second, func() { _ = tx.Rollback() })
	defer release.Stop()
	if got := h.must("new", "--name", "second"); got != "second\n" {
		t.Errorf("%q", got)
	}
}

// printsFirst starts a command and waits until it has printed its first line.
func (h *house) printsFirst(args ...string) *exec.Cmd {
	h.t.Helper()
	cmd := exec.Command(h.program, args...)
	cmd.Dir, cmd.Env = filepath.Join(h.home, "api"), h.env
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := out.Read(line); err != nil || string(line) != "first\n" {
		h.t.Fatalf("%q, %v", line, err)
	}
	return cmd
}

func TestRunThatIsToldToEndKeepsWhatWasPrinted(t *testing.T) {
	h := newHouse(t)
	h.must("new")
	cmd := h.printsFirst("run", "api", "echo first; sleep 300")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != cli.ExitInterrupted {
		t.Errorf("%v", cmd.ProcessState)
	}
	if got := h.must("log", "--shell", "api"); !strings.Contains(got, "cancelled") || !strings.Contains(got, "\nfirst\n") {
		t.Errorf("%q", got)
	}
}

func TestRunThatWasKilledIsRecordedByTheNextOne(t *testing.T) {
	h := newHouse(t)
	h.must("new")
	cmd := h.printsFirst("run", "api", "echo first; exec sleep 300")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as we wanted
	h.must("run", "api", "true")
	if got := h.must("log", "--shell", "api"); !strings.Contains(got, "interrupted") {
		t.Errorf("%q", got)
	}
}

func TestWaitGivesUpInTimeWithItsOwnCode(t *testing.T) {
	h := newHouse(t)
	h.must("open", "--agent", "shell")
	began := time.Now()
	code, _, stderr := h.cellmux("wait", "api:0", "--for", "dead", "--timeout", "500ms")
	if code != cli.ExitTimeout || time.Since(began) > 30*time.Second {
		t.Errorf("exit code %d after %v: %s", code, time.Since(began), stderr)
	}
}

func TestDeadPaneSaysHowItEndedAndOpensAgain(t *testing.T) {
	h := newHouse(t)
	if err := os.MkdirAll(filepath.Join(h.home, ".config", "cellmux"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := "[agents.custom.failing]\ncommand = [\"" + filepath.Join(h.home, "failing") + "\"]\n"
	if err := os.WriteFile(filepath.Join(h.home, ".config", "cellmux", "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.home, "failing"), []byte("#!/bin/sh\necho last words\nexit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.must("open", "--agent", "failing")
	if got := h.must("wait", "api:0", "--for", "dead", "--timeout", "30s", "--json"); !strings.Contains(got, `"exit_status": 7`) {
		t.Errorf("%s", got)
	}
	h.must("open", "api:0")
	if got := h.must("wait", "api:0", "--for", "dead", "--timeout", "30s"); got != "dead\n" {
		t.Errorf("%q", got)
	}
}

func TestUnknownSettingStopsEverythingWithItsPlaceButDoctorWorks(t *testing.T) {
	h := newHouse(t)
	if err := os.MkdirAll(filepath.Join(h.home, ".config", "cellmux"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.home, ".config", "cellmux", "config.toml"), []byte("[screen]\nteme = 'x'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ls"}, {"config", "check"}} {
		if code, _, stderr := h.cellmux(args...); code != cli.ExitFailed || !strings.Contains(stderr, "config.toml:2:1") {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
	}
	if code, stdout, _ := h.cellmux("doctor"); code != cli.ExitFailed || !strings.Contains(stdout, "config.toml:2:1") || !strings.Contains(stdout, "tmux") {
		t.Errorf("doctor: exit code %d: %s", code, stdout)
	}
}

func TestLogHoldsNoOutputNoPromptAndNoValue(t *testing.T) {
	h := newHouse(t)
	h.env = append(h.env, "MY_TOKEN=s3cr3t-value")
	h.must("open", "--agent", "shell")
	h.must("run", "--private", "api:0", `echo out-"put"; echo $MY_TOKEN`)
	content, err := os.ReadFile(h.state("cellmux.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"out-put", "s3cr3t-value", "echo"} {
		if bytes.Contains(content, []byte(word)) {
			t.Errorf("%q is in the log:\n%s", word, content)
		}
	}
}

func TestTheShellsSettingsReachRun(t *testing.T) {
	h := newHouse(t)
	if err := os.MkdirAll(filepath.Join(h.home, ".config", "cellmux"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := func(text string) {
		if err := os.WriteFile(filepath.Join(h.home, ".config", "cellmux", "config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const block = "[shell]\nblock = ['git push --force', 'uname']\n"
	config(block)
	h.must("new")
	code, stdout, _ := h.cellmux("run", "api", "env uname || echo caught; git -C . push origin --force=x")
	if code != 126 || !strings.Contains(stdout, `"uname" is not allowed by "uname" of the block list`) ||
		!strings.Contains(stdout, "caught\n") || !strings.Contains(stdout, `git: not allowed by "git push --force" of the block list`) {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	if code, stdout, _ := h.cellmux("run", "api", "git push --help >/dev/null; echo uname"); code != 0 || stdout != "uname\n" {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	config(block + "program = 'bash'\n")
	if code, _, stderr := h.cellmux("run", "api", "cd / && uname -a"); code != cli.ExitRunFailed || !strings.Contains(stderr, `"uname" is not allowed by "uname" of the block list`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	config("[shell]\nmax_output = 1\n")
	if code, _, stderr := h.cellmux("run", "api", "yes"); code == 0 || !strings.Contains(stderr, "ended after 1 MiB of output") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	config(block + "program = 'bash'\n")
	if code, stdout, _ := h.cellmux("run", "api", "echo uname ${BASH_VERSION:+bash}"); code != 0 || stdout != "uname bash\n" {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

func TestJobsListsAndEndsWhatAnotherCellmuxRuns(t *testing.T) {
	h := newHouse(t)
	h.must("new")
	cmd := exec.Command(program.path, "run", "api", "echo first; sleep 300")
	cmd.Dir, cmd.Env = filepath.Join(h.home, "api"), h.env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := out.Read(line); err != nil || string(line) != "first\n" {
		t.Fatalf("%q, %v", line, err)
	}
	var jobs []struct {
		ID        string
		Command   string
		Running   bool
		Elsewhere bool
	}
	if err := json.Unmarshal([]byte(h.must("jobs", "--json")), &jobs); err != nil || len(jobs) != 1 ||
		jobs[0].Command != "echo first; sleep 300" || !jobs[0].Running || !jobs[0].Elsewhere {
		t.Fatalf("%+v %v", jobs, err)
	}
	h.must("jobs", "kill", jobs[0].ID)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() <= 128 {
		t.Errorf("%v", cmd.ProcessState)
	}
	if got := h.must("jobs"); strings.Contains(got, "sleep") {
		t.Errorf("%q", got)
	}
}
