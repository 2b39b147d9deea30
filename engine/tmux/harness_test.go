//go:build unix

package tmux

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// private is a tmux server of one test: its own socket directory, HOME and
// runtime directory, ended by its own socket.
type private struct {
	*Server
	t   *testing.T
	dir string
}

func newPrivate(t *testing.T, change ...func(*Options)) *private {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux")
	}
	// A socket's path is limited to about 100 bytes; t.TempDir can be longer.
	dir, err := os.MkdirTemp("/tmp", "cmx")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Runner: proc.New(), Socket: "test", RuntimeDir: filepath.Join(dir, "run"),
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm-256color", "LANG=C.UTF-8",
			"SHELL=/bin/sh", "TMUX_TMPDIR=" + dir, "SECRET_OF_THE_HOST=must-not-reach-a-pane"},
		Timeout: 5 * time.Second,
		Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, f := range change {
		f(&o)
	}
	p := &private{Server: New(o), t: t, dir: dir}
	t.Cleanup(func() {
		_, _ = p.raw("kill-server")
		p.eventually("the server's end", func() bool { _, err := p.raw("list-sessions"); return err != nil })
		_ = os.RemoveAll(dir)
	})
	return p
}

// raw runs tmux itself against the private socket.
func (p *private) raw(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-L", "test", "-f", "/dev/null"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TERM=xterm-256color", "TMUX_TMPDIR=" + p.dir}
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

func (p *private) must(args ...string) string {
	p.t.Helper()
	out, err := p.raw(args...)
	if err != nil {
		p.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return out
}

// run starts Server.Run and waits until the control client is attached.
func (p *private) start() (stop func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Run(ctx)
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			<-done
		}
	}
	p.t.Cleanup(stop)
	p.eventually("the control client", p.connected)
	return stop
}

func (p *private) eventually(what string, cond func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for pause := time.Millisecond; !cond(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("waited in vain for %s; the list is %+v", what, p.List())
		}
		<-time.After(pause)
	}
}

// openShell opens a pane that runs a script.
func (p *private) openShell(cell string, slot int, script string) string {
	p.t.Helper()
	id, err := p.Open(p.t.Context(), engine.PaneSpec{
		Cell: cell, Slot: slot, Agent: "shell", Dir: p.dir, Argv: []string{"sh", "-c", script}})
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *private) pane(id string) (Pane, bool) {
	for _, pane := range p.List().Panes {
		if pane.ID == id {
			return pane, true
		}
	}
	return Pane{}, false
}

func (p *private) text(id string) string {
	p.t.Helper()
	s, err := p.Capture(p.t.Context(), id, 0)
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return strings.Join(s.Rows, "\n")
}

func (p *private) shows(id, want string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("%q on the screen", want), func() bool { return strings.Contains(p.text(id), want) })
}

func (p *private) serverPID() int {
	p.t.Helper()
	pid, err := strconv.Atoi(p.must("display-message", "-p", "#{pid}"))
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// file waits for a file that a pane's program writes, and returns its text.
func (p *private) file(name string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	p.eventually(name, func() bool { info, err := os.Stat(path); return err == nil && info.Size() > 0 })
	b, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// both runs a test over the control client and again with a process per call.
func both(t *testing.T, f func(t *testing.T, p *private)) {
	t.Run("control", func(t *testing.T) {
		p := newPrivate(t)
		p.start()
		f(t, p)
	})
	t.Run("process", func(t *testing.T) { f(t, newPrivate(t)) })
}

func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !bytes.Contains(b, []byte(") Z "))
}
