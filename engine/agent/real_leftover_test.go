//go:build linux

package agent_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/agent"
	"cellmux/engine/agent/agenttest"
)

// inPanes are the living processes that were started in this lab's panes.
func (l *lab) inPanes(slot string) []proc.Carrier {
	l.t.Helper()
	all, err := proc.Carriers(engine.PaneVariable)
	if err != nil {
		l.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(c proc.Carrier) bool {
		return c.Getenv("HOME") != l.home || !strings.Contains(c.Getenv(engine.PaneVariable), "/"+l.cell.Name+"/"+slot+"/")
	})
}

func living(all []proc.Carrier) (left []proc.Member) {
	for _, c := range all {
		if !proc.Ended(c.PID, c.Start) {
			left = append(left, c.Member)
		}
	}
	return left
}

// A start at once after the terminal server was killed: agents are still saving
// their conversation then, and opencode does not always end.
func TestRealAgentThatOutlivesItsPaneIsEndedBeforeItIsStartedAnew(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, name)
			l.open(0)
			l.deliver(0, "remember the word ALPHA")
			l.request("the first message", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), "ALPHA") })
			l.becomes(0, 10*time.Second, agent.Idle)
			before := l.inPanes("0")
			if len(before) == 0 {
				t.Fatal("no process of the pane carries its mark")
			}
			l.killServer()
			began := time.Now()
			l.open(0)
			t.Logf("opened after %s: %q", time.Since(began).Round(10*time.Millisecond), l.notes)
			if left := living(before); len(left) > 0 {
				t.Errorf("of %d processes these run on: %+v", len(before), left)
			}
			l.deliver(0, "what was BETA")
			if r := l.request("the second message", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), "BETA") }); !strings.Contains(r.UserText(), "ALPHA") {
				t.Errorf("the conversation was lost: %q", r.UserText())
			}
			if p, ok := l.pane(0); !ok || p.Dead {
				t.Errorf("the pane is %+v", p)
			}
		})
	}
}

func TestRealOpencodeOfAPaneThatIsGoneIsEndedAtTheStartOfAScreen(t *testing.T) {
	l := newLab(t, "opencode")
	for _, slot := range []int{0, 1} {
		l.open(slot)
		l.until(startup, "its box takes text", func() bool { return l.box(slot).Ready })
	}
	gone, kept := l.inPanes("0"), l.inPanes("1")
	if ended, err := l.opener.EndLeftovers(t.Context()); len(ended) > 0 || err != nil {
		t.Fatalf("of two live panes it ended %v, %v", ended, err)
	}
	cmd := exec.Command("tmux", "-L", "real", "kill-session", "-t", "=api-0:")
	cmd.Env = l.environ
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(living(gone)) == 0 {
		t.Log("it ended with its pane")
	}
	ended, err := l.opener.EndLeftovers(t.Context())
	t.Logf("ended %v", ended)
	if err != nil || len(ended) > 1 || len(ended) == 1 && ended[0].Slot != 0 {
		t.Errorf("ended %v, %v", ended, err)
	}
	if left := living(gone); len(left) > 0 {
		t.Errorf("what is left of the pane: %+v", left)
	}
	if left := living(kept); len(left) != len(kept) {
		t.Errorf("of the %d processes of the live pane %d are left", len(kept), len(left))
	}
	l.deliver(1, "still there")
	l.request("a message to the live pane", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), "still there") })
}
