package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"cellmux/cell/proc/proctest"
)

// terminal is a pseudo-terminal on which cellmux runs without a tmux between,
// so that every byte it writes is seen.
type terminal struct {
	t             *testing.T
	master, slave *os.File
	cmd           *exec.Cmd
	ended         chan struct{} // closed when cmd has been waited for
	err           error         // of cmd, then
	before        string        // modes as stty tells them
	mu            sync.Mutex
	grown         *sync.Cond
	bytes         bytes.Buffer
}

// isolated is the environment of a program that shares nothing with the user.
func isolated(t *testing.T, extra ...string) (env []string, dir string) {
	t.Helper()
	work := t.TempDir()
	// A socket's path is short; a test's name may not be.
	runtime, err := os.MkdirTemp("", "cellmux-run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(runtime) })
	socket := filepath.Base(runtime)
	for _, name := range []string{"home", "project"} {
		if err := os.Mkdir(filepath.Join(work, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := welcomed(filepath.Join(work, "home")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := tmuxOutput(socket, "kill-server"); err != nil && !noServer(out) {
			t.Log(out, err)
		}
		proctest.EndAllOf(t, filepath.Join(work, "home"))
		_ = os.Remove(filepath.Join("/tmp", "tmux-"+strconv.Itoa(os.Getuid()), socket))
	})
	env = []string{
		"HOME=" + filepath.Join(work, "home"), "TMPDIR=" + runtime, "XDG_RUNTIME_DIR=" + runtime,
		"PATH=" + strings.Join([]string{filepath.Join(programs, "cellmux"), filepath.Join(programs, "claude"), "/usr/local/bin", "/usr/bin", "/bin"}, ":"),
		"CELLMUX_TMUX_SOCKET=" + socket, "TERM=xterm-256color", "LANG=C.UTF-8", "GORACE=halt_on_error=1",
	}
	return append(env, extra...), filepath.Join(work, "project")
}

func openTerminal(t *testing.T, env []string, dir string, args ...string) *terminal {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("needs a pseudo-terminal: " + err.Error())
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, master: master, slave: slave}
	term.grown = sync.NewCond(&term.mu)
	term.before = term.modes()
	t.Cleanup(func() { _ = master.Close(); _ = slave.Close() })
	go func() { _, _ = io.Copy(term, master) }()
	term.cmd = exec.Command(filepath.Join(programs, "cellmux", "cellmux"), args...)
	term.cmd.Env, term.cmd.Dir = env, dir
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	term.ended = make(chan struct{})
	go func() {
		term.err = term.cmd.Wait()
		close(term.ended)
	}()
	t.Cleanup(func() {
		_ = term.cmd.Process.Kill() // it has ended by itself, but for a test that fails
		<-term.ended
	})
	return term
}

func (term *terminal) Write(b []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	defer term.grown.Broadcast()
	return term.bytes.Write(b)
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.bytes.String()
}

// wait blocks until the bytes satisfy check.
func (term *terminal) wait(what string, check func(text string) bool) {
	term.t.Helper()
	expired := false
	timer := time.AfterFunc(patience, func() {
		term.mu.Lock()
		defer term.mu.Unlock()
		expired = true
		term.grown.Broadcast()
	})
	defer timer.Stop()
	term.mu.Lock()
	defer term.mu.Unlock()
	for !check(term.bytes.String()) {
		if expired {
			term.t.Fatalf("%s did not happen; the terminal got %q", what, term.bytes.String())
		}
		term.grown.Wait()
	}
}

func (term *terminal) waitFor(want string) {
	term.t.Helper()
	term.wait("output of "+want, func(text string) bool { return strings.Contains(text, want) })
}

func (term *terminal) modes() string {
	term.t.Helper()
	stty := exec.Command("stty", "-g")
	stty.Stdin = term.slave
	out, err := stty.Output()
	if err != nil {
		term.t.Fatalf("stty -g: %v", err)
	}
	return string(out)
}

func (term *terminal) end() error {
	term.t.Helper()
	select {
	case <-term.ended:
		return term.err
	case <-time.After(patience):
		term.t.Fatalf("cellmux did not end; the terminal got %q", term.text())
		return nil
	}
}

var (
	privateMode  = regexp.MustCompile(`\x1b\[\?([0-9;]+)([hl])`)
	kittyPush    = regexp.MustCompile(`\x1b\[>[0-9]*u`)
	kittyPop     = regexp.MustCompile(`\x1b\[<[0-9]*u`)
	modifyOthers = regexp.MustCompile(`\x1b\[>4(?:;([0-9]*))?m`)
)

// leftOn names the modes that the bytes leave on: screens, mouse reports,
// paste and focus reports, keyboard protocols, lines that do not wrap, and a
// hidden cursor.
func leftOn(text string) []string {
	state := map[string]bool{}
	for _, m := range privateMode.FindAllStringSubmatch(text, -1) {
		for mode := range strings.SplitSeq(m[1], ";") {
			state[mode] = m[2] == "h"
		}
	}
	var on []string
	for _, mode := range []string{"1049", "1047", "47", "1000", "1002", "1003", "1004", "1005", "1006", "1015", "2004", "2026", "2027", "2031", "2048"} {
		if state[mode] {
			on = append(on, mode)
		}
	}
	if shown, said := state["25"]; said && !shown {
		on = append(on, "cursor")
	}
	if wraps, said := state["7"]; said && !wraps {
		on = append(on, "no line wrap")
	}
	if len(kittyPush.FindAllString(text, -1)) > len(kittyPop.FindAllString(text, -1)) {
		on = append(on, "kitty keyboard")
	}
	if all := modifyOthers.FindAllStringSubmatch(text, -1); len(all) > 0 {
		if last := all[len(all)-1][1]; last != "" && last != "0" {
			on = append(on, "modifyOtherKeys")
		}
	}
	return on
}

// givenBack asserts that the terminal is as it was; the keeper may still be at
// it when the program is gone.
func (term *terminal) givenBack() {
	term.t.Helper()
	term.wait("giving the terminal back", func(text string) bool { return len(leftOn(text)) == 0 })
	deadline := time.Now().Add(patience)
	for term.modes() != term.before {
		if time.Now().After(deadline) {
			term.t.Fatalf("terminal modes are %s, were %s", term.modes(), term.before)
		}
	}
}

func TestTheTerminalIsAsItWas(t *testing.T) {
	tests := []struct {
		name string
		how  func(term *terminal) error
	}{
		{"after q", func(term *terminal) error { _, err := term.master.WriteString("q"); return err }},
		{"after SIGTERM", func(term *terminal) error { return term.cmd.Process.Signal(syscall.SIGTERM) }},
		{"after SIGHUP", func(term *terminal) error { return term.cmd.Process.Signal(syscall.SIGHUP) }},
		{"after SIGINT", func(term *terminal) error { return term.cmd.Process.Signal(syscall.SIGINT) }},
		{"after kill -9", func(term *terminal) error { return term.cmd.Process.Kill() }},
		// The Go runtime ends the program as it does after a panic that nothing
		// recovers, in whatever goroutine.
		{"after SIGQUIT", func(term *terminal) error { return term.cmd.Process.Signal(syscall.SIGQUIT) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env, dir := isolated(t)
			term := openTerminal(t, env, dir)
			term.waitFor("\x1b[?1049h")
			term.waitFor("project")
			if err := tt.how(term); err != nil {
				t.Fatal(err)
			}
			_ = term.end()
			term.givenBack()
		})
	}
}

func TestTheNextStartSaysHowTheLastOneEnded(t *testing.T) {
	for signal, said := range map[syscall.Signal]string{
		syscall.SIGKILL: "tidy", syscall.SIGQUIT: "(SIGQUIT:",
		syscall.SIGTERM: "", syscall.SIGHUP: "",
	} {
		t.Run(signal.String(), func(t *testing.T) {
			env, dir := isolated(t)
			term := openTerminal(t, env, dir)
			term.waitFor("project")
			if err := term.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = term.end()
			next := openTerminal(t, env, dir)
			if said != "" {
				next.waitFor(said)
			}
			next.waitFor("project")
			if _, err := next.master.WriteString("q"); err != nil {
				t.Fatal(err)
			}
			_ = next.end()
			if text := next.text(); said == "" && strings.Contains(text, "panes ran on") {
				t.Errorf("an orderly end is told as a failure: %q", text)
			}
		})
	}
}

func TestWithoutATerminalTheScreenSaysSoAndTheCommandsWork(t *testing.T) {
	env, dir := isolated(t)
	cmd := exec.Command(filepath.Join(programs, "cellmux", "cellmux"))
	cmd.Env, cmd.Dir = env, dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() == 0 {
		t.Fatalf("got %v, want an exit code that tells", err)
	}
	if said := stderr.String(); !strings.Contains(said, "terminal") || !strings.Contains(said, "cellmux ls") {
		t.Errorf("it says %q: want a sentence with a next step", said)
	}
}

func TestNoSubcommandWaitsForATerminalThatNeverAnswers(t *testing.T) {
	env, dir := isolated(t)
	// Nobody answers queries on this terminal.
	for _, args := range [][]string{{"--version"}, {"session-id", "proj-0"}, {"ls"}, {"--help"}} {
		begin := time.Now()
		term := openTerminal(t, env, dir, args...)
		if err := term.end(); err != nil {
			t.Errorf("%q: %v: %s", args, err, term.text())
		}
		// Bubble Tea's own query waits for five seconds.
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("%q took %v on a terminal that does not answer", args, took)
		}
		if strings.Contains(term.text(), "\x1b]11;?") || strings.Contains(term.text(), "\x1b[6n") {
			t.Errorf("%q queries the terminal: %q", args, term.text())
		}
	}
}
