//go:build unix

package terminal

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"cellmux/cell/proc"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// The keeper is tested through a program of its own that dies: this test binary,
// started with childVariable set, keeps the terminal of its standard input,
// makes it raw, says so, and waits to be killed, or releases it.
const childVariable = "CELLMUX_KEEPER_CHILD"

func TestMain(m *testing.M) {
	how := os.Getenv(childVariable)
	if how == "" {
		os.Exit(m.Run())
	}
	path := os.Getenv("CELLMUX_KEEPER_PATH")
	k, err := Keep(Options{Runner: proc.New(), Path: path, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		panic(err)
	}
	before, err := term.MakeRaw(0)
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(os.Stdout, "RAW")
	if how == "release" {
		if err := term.Restore(0, before); err != nil {
			panic(err)
		}
		k.Release()
		_, _ = io.WriteString(os.Stdout, "RELEASED")
		os.Exit(0)
	}
	select {}
}

type screen struct {
	mu   sync.Mutex
	cond *sync.Cond
	text bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.cond.Broadcast()
	return s.text.Write(b)
}

func (s *screen) waitFor(t *testing.T, want string) {
	t.Helper()
	expired := false
	timer := time.AfterFunc(20*time.Second, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		expired = true
		s.cond.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.text.String(), want) {
		if expired {
			t.Fatalf("the terminal never got %q, but %q", want, s.text.String())
		}
		s.cond.Wait()
	}
}

// startChild runs this binary on a fresh terminal and waits until it is raw.
func startChild(t *testing.T, how string) (child *exec.Cmd, terminal *os.File, shown *screen, modes func() string) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("needs a pseudo-terminal: " + err.Error())
	}
	t.Cleanup(func() { _ = master.Close(); _ = slave.Close() })
	modes = func() string {
		stty := exec.Command("stty", "-g")
		stty.Stdin = slave
		out, err := stty.Output()
		if err != nil {
			t.Fatalf("stty -g: %v", err)
		}
		return string(out)
	}
	shown = &screen{}
	shown.cond = sync.NewCond(&shown.mu)
	go func() { _, _ = io.Copy(shown, master) }()
	child = exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+how, "CELLMUX_KEEPER_PATH="+slave.Name())
	child.Stdin, child.Stdout, child.Stderr = slave, slave, slave
	return child, slave, shown, modes
}

func TestKillNineGivesTheTerminalBack(t *testing.T) {
	child, _, shown, modes := startChild(t, "wait")
	before := modes()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	shown.waitFor(t, "RAW")
	if modes() == before {
		t.Fatal("the child did not make the terminal raw: nothing to give back")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	shown.waitFor(t, "\x1b[?1049l\x1b[?25h")
	if after := modes(); after != before {
		t.Errorf("modes are %s, were %s", after, before)
	}
}

func TestReleaseLeavesTheTerminalAlone(t *testing.T) {
	child, _, shown, modes := startChild(t, "release")
	before := modes()
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	shown.waitFor(t, "RELEASED")
	shown.mu.Lock()
	defer shown.mu.Unlock()
	if strings.Contains(shown.text.String(), "\x1b[?1049l") {
		t.Error("the keeper wrote to a terminal that it had released")
	}
	if after := modes(); after != before {
		t.Errorf("modes are %s, were %s", after, before)
	}
}

func TestAShellThatTookItsTerminalBackIsNotDisturbed(t *testing.T) {
	child, slave, shown, modes := startChild(t, "wait")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	shown.waitFor(t, "RAW")
	// A shell's line editor: no echo, no line buffering, output processing on.
	editor := exec.Command("stty", "-icanon", "-echo", "opost", "onlcr", "isig")
	editor.Stdin = slave
	if err := editor.Run(); err != nil {
		t.Fatal(err)
	}
	editing := modes()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	shown.waitFor(t, "\x1b[?1049l")
	if after := modes(); after != editing {
		t.Errorf("modes are %s, the shell had set %s", after, editing)
	}
}

func TestKeepSaysWhenThereIsNoTerminal(t *testing.T) {
	if _, err := Keep(Options{Runner: proc.New(), Path: "/dev/null", Env: []string{"PATH=/usr/bin:/bin"}}); err == nil {
		t.Error("it keeps /dev/null as a terminal")
	}
}
