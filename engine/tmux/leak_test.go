//go:build linux

package tmux

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

var cycles = flag.Int("cycles", 40, "cycles of the leak tests; 1000 is the full number")

// holdings is what a leak would grow.
type holdings struct{ goroutines, descriptors, children, clients int }

func (p *private) holdings() holdings {
	p.t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		p.t.Skip("needs /proc")
	}
	children := 0
	names, _ := filepath.Glob("/proc/self/task/*/children")
	for _, n := range names {
		b, _ := os.ReadFile(n)
		children += len(bytes.Fields(b))
	}
	clients := p.must("list-clients", "-F", "#{client_name}")
	return holdings{runtime.NumGoroutine(), len(fds), children, len(strings.Fields(clients))}
}

// returnsTo waits until nothing more is held than before.
func (p *private) returnsTo(before holdings) {
	p.t.Helper()
	var now holdings
	deadline := time.Now().Add(30 * time.Second)
	for {
		now = p.holdings()
		if now.goroutines <= before.goroutines && now.descriptors <= before.descriptors &&
			now.children <= before.children && now.clients <= before.clients {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("held before: %+v, after: %+v", before, now)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestOpeningAndClosingLeaksNothing(t *testing.T) {
	p := newPrivate(t)
	p.start()
	cycle := func(i int) {
		id := p.openShell("leak", i, "exec sleep 1000")
		ctx, cancel := context.WithCancel(t.Context())
		events := p.Follow(ctx, id, 0, 0)
		if e := <-events; e.Err != nil {
			t.Fatal(e.Err)
		}
		if err := p.Kill(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		cancel()
		for range events { // until it is closed
		}
	}
	cycle(0)
	before := p.holdings()
	for i := range *cycles {
		cycle(i + 1)
	}
	p.returnsTo(before)
}

func TestAttachingLeaksNothing(t *testing.T) {
	p := newPrivate(t)
	p.start()
	id := p.openShell("leak", 0, "printf ready; exec cat")
	p.shows(id, "ready")
	server := p.serverPID()
	attach := func() {
		c, err := p.AttachCommand(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range c.Env {
			if strings.HasPrefix(kv, "TMUX=") {
				t.Fatal("tmux would refuse to attach within itself")
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
		cmd.Env, cmd.Dir = c.Env, c.Dir
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
		if err != nil {
			t.Fatal(err)
		}
		// The pane and our status line are drawn before the key is pressed.
		seen, buf := "", make([]byte, 4096)
		for !strings.Contains(seen, "ready") {
			n, err := terminal.Read(buf)
			if seen += string(buf[:n]); err != nil {
				t.Fatalf("attach ended: %q", seen)
			}
		}
		// tmux 3.3a now and then passes over a key that comes within milliseconds
		// of its first frame, which no person is quick enough for.
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = io.Copy(io.Discard, terminal) // until the client lets it go
		}()
		for detached := false; !detached; {
			_, _ = terminal.WriteString("\x11") // ctrl-q
			select {
			case <-gone:
				detached = true
			case <-time.After(200 * time.Millisecond):
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("attach: %v", err)
		}
		_ = terminal.Close()
	}
	attach()
	before := p.holdings()
	for range *cycles {
		attach()
	}
	p.returnsTo(before)
	if p.serverPID() != server {
		t.Error("the server is another")
	}
	p.eventually("nobody attached", func() bool { pane, _ := p.pane(id); return !pane.Dead && pane.Attached == 0 })
}
