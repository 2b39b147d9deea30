package agent_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/engine/agent"
	"cellmux/engine/agent/agenttest"
	"cellmux/engine/fleet"
	"cellmux/engine/tmux"
	"cellmux/shellctx/convo"
)

// withoutPaste is a terminal server into which nothing may be pasted.
type withoutPaste struct{ *tmux.Server }

func (withoutPaste) Paste(context.Context, string, string) error {
	return errors.New("pasted, although the agent has an interface of its own")
}

// bySlot lets the transport find the lab's slots.
type bySlot struct{ *agent.Watcher }

func (w bySlot) Status(ref string) agent.Status {
	return w.Watcher.Status(strings.Replace(ref, ":", "-", 1))
}

func (w bySlot) Direct(ref string) (agent.Direct, bool) {
	return w.Watcher.Direct(strings.Replace(ref, ":", "-", 1))
}

func TestRealOpencodeOnTheHostGetsMessagesByItsInterface(t *testing.T) {
	l := newLab(t, "opencode")
	if err := os.WriteFile(filepath.Join(l.project, "README.md"), []byte("README-CONTENT"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.open(0)
	transport := fleet.NewTransport(withoutPaste{l.tmux}, l.set, bySlot{l.watcher})
	target := convo.Target{Session: "s", Cell: l.cell.Name, Agent: l.name}
	state := func() convo.PaneState {
		s, err := transport.State(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	send := func(text string) {
		t.Helper()
		var since time.Time
		l.until(startup, "it takes a message", func() bool {
			if s := state(); !s.Ready || s.Asking || s.Draft || s.Busy {
				return false
			}
			since = time.Now()
			err := transport.Paste(t.Context(), target, text)
			if err != nil && !errors.Is(err, convo.ErrRefused) {
				t.Fatal(err)
			}
			return err == nil // refused is queued, and tried again
		})
		if err := transport.Enter(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		proof, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if proven, err := transport.Submitted(proof, target, text, since); !proven || err != nil {
			t.Fatalf("no proof of %.40q: %v, %v", text, proven, err)
		}
	}

	// Three lines: a paste of them would be folded, and end in a blank.
	text := "ALPHA\n  two\n\tthree"
	send(text)
	if r := l.request("the message", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), "ALPHA") }); r.LastUser() != text {
		t.Errorf("%q arrived as %q", text, r.LastUser())
	}
	l.becomes(0, 10*time.Second, agent.Idle)

	// A text that ends in a path would open opencode's list of files, which takes
	// the Enter.
	send("what is in @README.md")
	l.request("the path", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), "@README.md") })
	l.becomes(0, 10*time.Second, agent.Idle)

	// What the user has half typed holds a message back, and stays.
	p, _ := l.pane(0)
	if err := l.tmux.Keys(t.Context(), p.ID, "h", "a", "l", "f"); err != nil {
		t.Fatal(err)
	}
	l.until(10*time.Second, "the draft in the box", func() bool { return l.box(0).Draft == "half" })
	if s := state(); !s.Draft {
		t.Errorf("with a draft in its box it is %+v", s)
	}
	if err := l.tmux.Keys(t.Context(), p.ID, "BSpace", "BSpace", "BSpace", "BSpace"); err != nil {
		t.Fatal(err)
	}

	// A question holds it back too; even a submission that comes anyway does not
	// answer it.
	send("please " + agenttest.WordTool)
	l.becomes(0, 10*time.Second, agent.Waiting)
	if s := state(); !s.Asking || s.Ready {
		t.Errorf("while it asks it is %+v", s)
	}
	direct, ok := bySlot{l.watcher}.Direct("api:0")
	if !ok {
		t.Fatal("no interface")
	}
	_ = direct.Submit(t.Context()) // it may refuse
	l.becomes(0, 10*time.Second, agent.Waiting)
	if l.toolRan() {
		t.Error("a submission approved the command")
	}

	// Its port answers nobody else, and its password is in no command line.
	address, password := l.launchOf("api-0")
	response, err := http.Get(address + "/session/status")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a password it answers %s", response.Status)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		if line, _ := os.ReadFile(file); strings.Contains(string(line), password) {
			t.Errorf("the password is in %s", file)
		}
	}
}
