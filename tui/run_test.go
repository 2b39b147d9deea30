//go:build linux

package tui_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"cellmux/engine/fleet"
	"cellmux/tui"
	"cellmux/tui/tuitest"
)

// childVariable makes the test's own program a screen over the sample world, so
// that it can be run in a terminal, signalled and killed.
const childVariable = "CELLMUX_TUI_CHILD"

// leavesVariable is what an attached pane writes to the child's terminal.
const leavesVariable = "CELLMUX_TUI_LEAVES"

func init() {
	if os.Getenv(childVariable) == "" {
		return
	}
	f := tuitest.Sample()
	f.Begin()
	ports := f.Ports()
	ports.Fleet = panicking{f}
	f.OnAttach(func(string) { fmt.Print(os.Getenv(leavesVariable)) })
	err := tui.Run(context.Background(), tui.Options{
		Ports: ports, Version: "test", In: os.Stdin, Out: os.Stdout, Getenv: os.Getenv,
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// panicking fails where a user's key can reach it.
type panicking struct{ *tuitest.Fleet }

func (panicking) Agents(context.Context, string) ([]fleet.AgentChoice, error) {
	panic("a fault in a command")
}

// terminal is a screen that runs in a pseudo terminal.
type terminal struct {
	t       *testing.T
	pty     *os.File
	command *exec.Cmd
	before  unix.Termios
	mu      sync.Mutex
	output  bytes.Buffer
	came    chan struct{} // holds one: there is new output
	ended   chan error
	drained chan struct{} // closed when the last byte of output has come
}

func start(t *testing.T, env ...string) *terminal {
	t.Helper()
	return startProgram(t, []string{os.Args[0]}, append([]string{childVariable + "=1"}, env...)...)
}

// startProgram starts a program as the leader of a session of its own, whose
// terminal answers no query.
func startProgram(t *testing.T, argv []string, env ...string) *terminal {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = append([]string{"TERM=xterm-256color", "LANG=C.UTF-8", "PATH=" + os.Getenv("PATH")}, env...)
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
		t.Fatal(err)
	}
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close() // so that reading ends with the program
	tm := &terminal{t: t, pty: master, command: c, before: *before, came: make(chan struct{}, 1), ended: make(chan error, 1), drained: make(chan struct{})}
	go tm.read()
	go func() { tm.ended <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = master.Close()
	})
	return tm
}

func (tm *terminal) read() {
	b := make([]byte, 4096)
	for {
		n, err := tm.pty.Read(b)
		tm.mu.Lock()
		tm.output.Write(b[:n])
		tm.mu.Unlock()
		select {
		case tm.came <- struct{}{}:
		default:
		}
		if err != nil {
			close(tm.drained)
			return
		}
	}
}

func (tm *terminal) text() string {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tm.output.String()
}

// waitFor blocks until the output since the last forget holds text.
func (tm *terminal) waitFor(text string) {
	tm.t.Helper()
	deadline := time.After(30 * time.Second)
	for !strings.Contains(tm.text(), text) {
		select {
		case <-tm.came:
		case <-deadline:
			tm.t.Fatalf("%q never came; output:\n%q", text, tm.text())
		}
	}
}

func (tm *terminal) forget() {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	tm.output.Reset()
}

func (tm *terminal) press(keys string) {
	tm.t.Helper()
	if _, err := tm.pty.WriteString(keys); err != nil {
		tm.t.Fatal(err)
	}
}

// wait returns how the program ended.
func (tm *terminal) wait() error {
	tm.t.Helper()
	select {
	case err := <-tm.ended:
		<-tm.drained
		return err
	case <-time.After(30 * time.Second):
		tm.t.Fatalf("the program does not end; output:\n%q", tm.text())
		return nil
	}
}

// modes are the private modes that the output has left set.
func modes(output string) map[string]bool {
	set := map[string]bool{}
	for rest := output; ; {
		i := strings.Index(rest, "\x1b[?")
		if i < 0 {
			return set
		}
		rest = rest[i+3:]
		end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != ';' })
		if end < 0 {
			return set
		}
		switch rest[end] {
		case 'h':
			set[rest[:end]] = true
		case 'l':
			delete(set, rest[:end])
		}
	}
}

// assertRestored: the terminal is as it was before.
func (tm *terminal) assertRestored() {
	tm.t.Helper()
	now, err := unix.IoctlGetTermios(int(tm.pty.Fd()), unix.TCGETS)
	if err != nil {
		tm.t.Fatal(err)
	}
	if *now != tm.before {
		tm.t.Errorf("the terminal's modes are %+v, were %+v", *now, tm.before)
	}
	left := modes(tm.text())
	delete(left, "7")  // rows wrap: on by default
	delete(left, "25") // the cursor is shown: on by default
	if len(left) > 0 {
		tm.t.Errorf("private modes are still set: %v", left)
	}
	for mode, off := range map[string]string{"wrapping": "\x1b[?7l", "the cursor": "\x1b[?25l"} {
		on := off[:len(off)-1] + "h"
		if strings.LastIndex(tm.text(), off) > strings.LastIndex(tm.text(), on) {
			tm.t.Errorf("%s is still off", mode)
		}
	}
}

func TestQuittingLeavesTheTerminalAsItWas(t *testing.T) {
	tm := start(t)
	tm.waitFor("api-auth")
	tm.press("jj")
	tm.waitFor("this is pane %2")
	tm.press("q")
	if err := tm.wait(); err != nil {
		t.Fatal(err)
	}
	tm.assertRestored()
}

func TestSignalsLeaveTheTerminalAsItWas(t *testing.T) {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT} {
		t.Run(unix.SignalName(signal), func(t *testing.T) {
			tm := start(t)
			tm.waitFor("api-auth")
			if err := tm.command.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := tm.wait(); err != nil {
				t.Error(err)
			}
			tm.assertRestored()
		})
	}
}

func TestAHangupEndsTheScreen(t *testing.T) {
	tm := start(t)
	tm.waitFor("api-auth")
	_ = tm.pty.Close()
	if err := tm.wait(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 1 {
			t.Error(err)
		}
	}
}

func TestWithoutATerminalThereIsASentence(t *testing.T) {
	c := exec.Command(os.Args[0])
	c.Env = []string{childVariable + "=1", "TERM=xterm"}
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "must be a terminal") || strings.Contains(string(out), "\x1b") {
		t.Errorf("got %v, %q", err, out)
	}
}

func TestADumbTerminalGetsASentence(t *testing.T) {
	tm := start(t, "TERM=dumb")
	if err := tm.wait(); err == nil {
		t.Error("it ran")
	}
	tm.waitFor("TERM is dumb")
	if strings.Contains(tm.text(), "\x1b") {
		t.Errorf("escape sequences on a dumb terminal: %q", tm.text())
	}
}

func TestAnUnknownTerminalIsUsedAsAnyOther(t *testing.T) {
	tm := start(t, "TERM=nobody-knows-this")
	tm.waitFor("api-auth")
	tm.press("q")
	if err := tm.wait(); err != nil {
		t.Error(err)
	}
	tm.assertRestored()
}

func TestNothingIsAskedOfTheTerminalAtStart(t *testing.T) {
	tm := start(t)
	tm.waitFor("api-auth")
	for name, query := range map[string]string{"a colour": "\x1b]1", "its attributes": "\x1b[c", "the cursor's place": "\x1b[6n", "a mode": "$p"} {
		if strings.Contains(tm.text(), query) {
			t.Errorf("the terminal was asked for %s", name)
		}
	}
	tm.press("q")
	_ = tm.wait()
}
