package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/agent"
	"cellmux/engine/host"
	"cellmux/shellctx/convo"
)

// turnsOf are headless turns of an agent that is a script, in a slot of its own.
func turnsOf(t *testing.T, script string) (*Turns, convo.Target, *world) {
	t.Helper()
	agents := agent.New(agent.Options{Custom: []agent.Custom{{Name: "fable", Command: []string{"sh"}, Headless: []string{"sh", "-c", script, "fable", "{session}"}}}})
	w := newWorld(t, func(o *Options) {
		o.Agents = agents
		o.LookPath = func(string) (string, error) { return "/bin/sh", nil }
	})
	name := w.cellWith(t, "fable")
	opener := engine.NewOpener(engine.OpenerOptions{
		Engines: []engine.Engine{host.New(host.Options{Home: w.o.Home, Hostname: "box"})},
		Agent:   func(name string) (engine.Agent, bool) { return agents.Lookup(name) },
		Environ: []string{"PATH=/usr/bin:/bin", "HOME=" + w.o.Home}, Home: w.o.Home, HostUser: "ada", RuntimeDir: t.TempDir(),
	})
	turns := NewTurns(proc.New(), opener, agents)
	turns.Of(w.Fleet)
	target, err := w.target(t.Context(), Ref{name, 0})
	if err != nil {
		t.Fatal(err)
	}
	return turns, target, w
}

func TestTurnGetsItsPromptOnAnInputThatIsNoTerminalAndEnds(t *testing.T) {
	turns, target, _ := turnsOf(t, `text=$(cat); [ -t 0 ] && echo terminal; [ -t 1 ] && echo terminal; echo "$text for $1 in $(pwd)"`)
	var emitted strings.Builder
	turn, err := turns.Run(t.Context(), target, "hello\n!x", func(text string) { emitted.WriteString(text) })
	if err != nil || turn.Error != "" || !strings.HasPrefix(turn.Text, "hello\n!x for "+target.Session+" in ") || strings.Contains(turn.Text, "terminal") {
		t.Errorf("%+v, %v", turn, err)
	}
	if strings.TrimSpace(emitted.String()) != turn.Text {
		t.Errorf("emitted %q", emitted.String())
	}
}

func TestTurnThatFailsSaysWhy(t *testing.T) {
	turns, target, _ := turnsOf(t, `cat >/dev/null; echo half; echo "the ink is out" >&2; exit 4`)
	turn, err := turns.Run(t.Context(), target, "x", func(string) {})
	if err != nil || turn.Error != "it ended with exit status 4: the ink is out" {
		t.Errorf("%+v, %v", turn, err)
	}
}

// family is a script that notes its own pid and that of a child, both of which
// must be signalled.
const family = `sleep 300 & echo $! >>"$HOME/pids"; echo $$ >>"$HOME/pids"; echo begun; cat >/dev/null; wait`

func familyGone(t *testing.T, home string) {
	t.Helper()
	pids, err := os.ReadFile(filepath.Join(home, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Fields(string(pids)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			if stat, err := os.ReadFile("/proc/" + text + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
				continue // ended; whoever adopted it has not reaped it yet
			}
			t.Errorf("process %s of the turn is left: %v", text, err)
		}
	}
}

func TestCancelledTurnEndsWithItsWholeFamilyAndIsNoSuccess(t *testing.T) {
	turns, target, w := turnsOf(t, `trap 'exit 0' INT TERM; `+family)
	ctx, cancel := context.WithCancel(t.Context())
	turn, err := turns.Run(ctx, target, "x", func(string) { cancel() }) // once it has begun
	if err != nil || turn.Error != "cancelled" {
		t.Errorf("exit 0 after a cancel is %+v, %v", turn, err)
	}
	familyGone(t, w.o.Home)
}

func TestTurnThatIsSilentForTooLongIsEnded(t *testing.T) {
	turns, target, w := turnsOf(t, family)
	turns.silence = 500 * time.Millisecond
	turn, err := turns.Run(t.Context(), target, "x", func(string) {})
	if err != nil || turn.Error != "it said nothing for 500ms and was ended" || turn.Text != "begun" {
		t.Errorf("%+v, %v", turn, err)
	}
	familyGone(t, w.o.Home)

	// One that goes on saying something is not.
	turns, target, _ = turnsOf(t, `cat >/dev/null; for i in 1 2 3 4 5 6; do sleep 0.3; echo $i; done`)
	turns.silence = time.Second
	if turn, err := turns.Run(t.Context(), target, "x", func(string) {}); err != nil || turn.Error != "" {
		t.Errorf("%+v, %v", turn, err)
	}
}

func TestTurnsOfAReviewAreReadOnly(t *testing.T) {
	turns, target, w := turnsOf(t, `cat`)
	name := target.Cell
	if _, err := w.db.SQL().ExecContext(t.Context(), `UPDATE state_slots SET review = 1 WHERE cell = ?`, name); err != nil {
		t.Fatal(err)
	}
	// The user's own agent has no read-only mode, and is not run without one.
	if _, err := turns.Run(t.Context(), target, "x", func(string) {}); !errors.Is(err, convo.ErrRefused) {
		t.Errorf("a review ran without its read-only mode: %v", err)
	}
}
