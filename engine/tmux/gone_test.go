//go:build unix

package tmux

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// origin opens a pane and returns where its program was started, as that itself
// says.
func (p *private) origin(slot int) (id string, o engine.PaneOrigin) {
	p.t.Helper()
	file := "origin" + strconv.Itoa(slot)
	id = p.openShell("api", slot, `trap "" HUP; printf '%s %s %s' $$ "$TMUX_PANE" "$TMUX" >`+file+`.tmp; mv `+file+`.tmp `+file+`; while :; do sleep 1; done`)
	words := strings.SplitN(p.file(file), " ", 3)
	pid, err := strconv.Atoi(words[0])
	if err != nil || len(words) != 3 {
		p.t.Fatalf("the program says %q", words)
	}
	p.t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
	start, err := proc.StartTime(pid)
	if err != nil {
		p.t.Fatal(err)
	}
	return id, engine.PaneOrigin{Pane: words[1], Server: words[2], Started: start}
}

func (p *private) gone(want bool, what string, o engine.PaneOrigin) {
	p.t.Helper()
	if got := p.Gone(p.t.Context(), []engine.PaneOrigin{o}); !slices.Equal(got, []bool{want}) {
		p.t.Errorf("%s: gone %v, want %v (%+v)", what, got, want, o)
	}
}

func TestAPaneIsGoneWithItsServerOrFromItsList(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		_, keptOrigin := p.origin(0)
		killed, killedOrigin := p.origin(1)
		p.gone(false, "a live pane", keptOrigin)
		p.gone(false, "another live pane", killedOrigin)
		if _, err := p.raw("kill-session", "-t", killed); err != nil {
			t.Fatal(err)
		}
		p.gone(true, "a pane that was killed", killedOrigin)
		p.gone(false, "the pane beside it", keptOrigin)

		// Its program has ended, and the pane stays to show it.
		dead, deadOrigin := p.origin(2)
		program, err := strconv.Atoi(p.must("display-message", "-p", "-t", dead, "#{pane_pid}"))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(program, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.eventually("a dead pane", func() bool {
			for _, pane := range p.Refresh(t.Context()).Panes {
				if pane.ID == dead {
					return pane.Dead
				}
			}
			return false
		})
		p.gone(true, "a dead pane", deadOrigin)

		server := p.Refresh(t.Context()).ServerPID
		if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.eventually("the server's end", func() bool { return proc.Ended(server, 1<<63) })
		p.gone(true, "a pane whose server was killed", keptOrigin)
		if _, err := p.Open(t.Context(), engine.PaneSpec{Cell: "api", Slot: 0, Agent: "shell", Dir: p.dir, Argv: []string{"sleep", "1000"}}); err != nil {
			t.Fatal(err)
		}
		p.gone(true, "a pane of the server before", keptOrigin)
	})
}

// impatient is the same server for somebody who does not wait long.
func (p *private) impatient() *Server {
	o := p.opts
	o.Timeout = 300 * time.Millisecond
	return New(o)
}

func TestAnOriginThatProvesNothingIsNotGone(t *testing.T) {
	p := newPrivate(t)
	killed, o := p.origin(0)
	p.openShell("api", 1, "sleep 1000")
	p.must("kill-session", "-t", killed)
	p.gone(true, "the pane itself", o)
	for what, change := range map[string]func(o *engine.PaneOrigin){
		"no server":        func(o *engine.PaneOrigin) { o.Server = "" },
		"no pane":          func(o *engine.PaneOrigin) { o.Pane = "" },
		"a strange server": func(o *engine.PaneOrigin) { o.Server = "/tmp/s,x,0" },
		"a strange pane":   func(o *engine.PaneOrigin) { o.Pane = "=api" },
		// Of a server that lives, and that this one does not speak to.
		"another server": func(o *engine.PaneOrigin) { o.Server = "/tmp/s," + strconv.Itoa(os.Getpid()) + ",0" },
	} {
		o := o
		change(&o)
		if got := p.impatient().Gone(t.Context(), []engine.PaneOrigin{o}); !slices.Equal(got, []bool{false}) {
			t.Errorf("%s: gone", what)
		}
	}
}

func TestNothingIsGoneWithoutAnAnswer(t *testing.T) {
	p := newPrivate(t)
	_, o := p.origin(0)
	server := p.Refresh(t.Context()).ServerPID
	if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(server, syscall.SIGCONT) }()
	if got := p.impatient().Gone(t.Context(), []engine.PaneOrigin{o}); !slices.Equal(got, []bool{false}) {
		t.Errorf("a pane of a server that is stopped is gone: %v", got)
	}
}

func TestAServerThatIsJustEndingIsWaitedFor(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		_, o := p.origin(0)
		server := p.Refresh(t.Context()).ServerPID
		sockets, _ := filepath.Glob(filepath.Join(p.dir, "tmux-*", "test"))
		if len(sockets) != 1 {
			t.Fatalf("the sockets are %q", sockets)
		}
		// As between the end of its socket and its own.
		if err := os.Remove(sockets[0]); err != nil {
			t.Fatal(err)
		}
		ending := time.AfterFunc(200*time.Millisecond, func() { _ = syscall.Kill(server, syscall.SIGKILL) })
		defer ending.Stop()
		if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		p.gone(true, "a pane whose server ends", o)
	})
}

// A cleaner of temporary files may take the socket of a server that lives.
func TestAPaneIsNotGoneWithTheServersSocket(t *testing.T) {
	p := newPrivate(t)
	_, o := p.origin(0)
	server := p.Refresh(t.Context()).ServerPID
	t.Cleanup(func() { _ = syscall.Kill(server, syscall.SIGKILL) })
	sockets, _ := filepath.Glob(filepath.Join(p.dir, "tmux-*", "test"))
	if len(sockets) != 1 {
		t.Fatalf("the sockets are %q", sockets)
	}
	if err := os.Remove(sockets[0]); err != nil {
		t.Fatal(err)
	}
	if list := p.Refresh(t.Context()); !list.Known || list.ServerPID != 0 {
		t.Fatalf("the server answers all the same: %+v", list)
	}
	if got := p.impatient().Gone(t.Context(), []engine.PaneOrigin{o}); !slices.Equal(got, []bool{false}) {
		t.Error("a pane is gone whose server has lost its socket")
	}
}
