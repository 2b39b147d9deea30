//go:build linux

package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// terminals stands in for what tmux says of panes.
type terminals struct {
	mu    sync.Mutex
	alive map[string]bool // by pane
	asked []engine.PaneOrigin
}

func (s *terminals) gone(_ context.Context, origins []engine.PaneOrigin) []bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, origins...)
	gone := make([]bool, len(origins))
	for i, o := range origins {
		gone[i] = !s.alive[o.Pane]
	}
	return gone
}

// program is one that was started in a pane, as tmux would.
type program struct {
	cmd *exec.Cmd
	dir string
}

// stubborn is an agent that outlives its terminal, with a child of its own, a job
// that it has sent away, and a word when it ends.
const stubborn = `
trap "" HUP
sleep 1000 & echo $! >child
(setsid sh -c 'echo $$ >job; exec sleep 1000' </dev/null >/dev/null 2>&1 &)
while [ ! -s job ]; do sleep 0.01; done
trap 'echo saved >word; exit' TERM
echo $$ >agent
while :; do sleep 1000 & wait $!; done`

// orphan is a launcher that the hang-up ends, and whose program lives on.
const orphan = `
sh -c 'trap "" HUP; echo $$ >agent; exec sleep 1000' &
while [ ! -s agent ]; do sleep 0.01; done
wait`

// started opens a slot and runs its pane's command in a session of its own, until
// the program says that it is up.
func (h *house) started(t *testing.T, slot int, pane string) *program {
	t.Helper()
	_, err := h.opener.Open(t.Context(), engine.OpenRequest{Cell: h.cell, Slot: slot, Agent: h.agent.name})
	if err != nil {
		t.Fatal(err)
	}
	spec := h.panes.opened[len(h.panes.opened)-1]
	p := &program{cmd: exec.Command(spec.Argv[0], spec.Argv[1:]...), dir: h.cell.ProjectDir}
	p.cmd.Env = []string{"TERM=tmux-256color", "TMUX=/tmp/s,4242,0", "TMUX_PANE=" + pane}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reaped sync.WaitGroup
	reaped.Go(func() { _ = p.cmd.Wait() })
	t.Cleanup(func() {
		if job := p.pid("job"); job > 1 {
			_ = syscall.Kill(job, syscall.SIGKILL)
		}
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // its group: nobody else has the number
		reaped.Wait()
	})
	for deadline := time.Now().Add(20 * time.Second); p.pid("agent") == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the program does not come up")
		}
		<-time.After(5 * time.Millisecond)
	}
	return p
}

func (p *program) pid(name string) int {
	data, _ := os.ReadFile(filepath.Join(p.dir, name))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return pid
}

// lives says whether a process of the program runs; one that is not reaped does not.
func (p *program) lives(name string) bool {
	pid := p.pid(name)
	start, err := proc.StartTime(pid)
	return err == nil && !proc.Ended(pid, start)
}

func newStubbornHouse(t *testing.T, script string) (*house, *terminals) {
	t.Helper()
	says := &terminals{alive: map[string]bool{}}
	h := newHouse(t, "claude", func(o *engine.OpenerOptions) { o.State, o.PanesGone = engine.StateName(o.RuntimeDir), says.gone })
	h.agent.plan = engine.AgentPlan{Argv: []string{"/bin/sh", "-c", script}, Env: []string{pathEnv()}, Converses: true}
	return h, says
}

func TestAnAgentThatOutlivedItsPaneIsEndedBeforeTheNextOneIsPlanned(t *testing.T) {
	for name, script := range map[string]string{"it ignores the hang-up": stubborn, "its launcher has ended": orphan} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, says := newStubbornHouse(t, script)
			p := h.started(t, 2, "%3")
			if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			if name == "its launcher has ended" {
				for !proc.Ended(p.cmd.Process.Pid, 1<<63) {
					<-time.After(5 * time.Millisecond)
				}
			}
			if !p.lives("agent") {
				t.Fatal("it did not outlive its pane")
			}
			h.agent.planning = func() {
				if p.lives("agent") || p.lives("child") {
					t.Error("it still runs while the next one is planned")
				}
			}
			var told []string
			opened, err := h.opener.Open(t.Context(), engine.OpenRequest{Cell: h.cell, Slot: 2, Agent: "claude", Progress: func(p engine.Progress) { told = append(told, p.Step) }})
			if err != nil {
				t.Fatal(err)
			}
			// Its name is that of what it executes at the moment.
			if len(opened.Notes) != 1 || !strings.Contains(opened.Notes[0], "had outlived the pane before this one and was ended") {
				t.Errorf("the notes are %q", opened.Notes)
			}
			if !slices.ContainsFunc(told, func(step string) bool {
				return strings.HasPrefix(step, fmt.Sprintf("waiting for process %d (", p.pid("agent"))) && strings.HasSuffix(step, "to end, which outlived its pane")
			}) {
				t.Errorf("the progress is %q", told)
			}
			if want := (engine.PaneOrigin{Server: "/tmp/s,4242,0", Pane: "%3"}); len(says.asked) != 1 || says.asked[0].Server != want.Server || says.asked[0].Pane != want.Pane || says.asked[0].Started == 0 {
				t.Errorf("asked about %+v", says.asked)
			}
			if script == stubborn {
				if word, _ := os.ReadFile(filepath.Join(p.dir, "word")); string(word) != "saved\n" {
					t.Error("it was killed without being asked to end")
				}
				if !p.lives("job") {
					t.Error("what it had sent away was ended too")
				}
			}
		})
	}
}

// Asked to end it would lose what it saves.
func TestAnAgentThatIsStillSavingIsWaitedForAndLeftInPeace(t *testing.T) {
	t.Parallel()
	h, _ := newStubbornHouse(t, `trap "sleep 0.3; echo saved >word; exit" HUP; trap "exit 1" TERM; echo $$ >agent; while :; do sleep 1000 & wait $!; done`)
	p := h.started(t, 2, "%3")
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	saved := false
	h.agent.planning = func() {
		word, _ := os.ReadFile(filepath.Join(p.dir, "word"))
		saved = string(word) == "saved\n" && !p.lives("agent")
	}
	opened, err := h.opener.Open(t.Context(), engine.OpenRequest{Cell: h.cell, Slot: 2, Agent: "claude"})
	if err != nil || !saved || len(opened.Notes) > 0 {
		t.Errorf("%v, saved before the next one was planned: %v, notes %q", err, saved, opened.Notes)
	}
}

func TestWhatIsNotProvenToBeALeftoverIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		opened int // the slot that is opened next
		change func(*house, *terminals, *engine.OpenerOptions)
	}{
		"its pane lives":                        {2, func(_ *house, s *terminals, _ *engine.OpenerOptions) { s.alive["%3"] = true }},
		"another slot":                          {1, func(*house, *terminals, *engine.OpenerOptions) {}},
		"another cell":                          {2, func(h *house, _ *terminals, _ *engine.OpenerOptions) { h.cell.Name = "proj-b" }},
		"another state directory":               {2, func(_ *house, _ *terminals, o *engine.OpenerOptions) { o.State = engine.StateName("another") }},
		"a cellmux that knows of no state":      {2, func(_ *house, _ *terminals, o *engine.OpenerOptions) { o.State = "" }},
		"a terminal server that cannot be read": {2, func(_ *house, _ *terminals, o *engine.OpenerOptions) { o.PanesGone = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, says := newStubbornHouse(t, stubborn)
			p := h.started(t, 2, "%3")
			o := h.options
			c.change(h, says, &o)
			next := engine.NewOpener(o)
			opened, err := next.Open(t.Context(), engine.OpenRequest{Cell: h.cell, Slot: c.opened, Agent: "claude"})
			if err != nil || len(opened.Notes) > 0 {
				t.Errorf("%v, notes %q", err, opened.Notes)
			}
			if c.opened == 2 && h.cell.Name == "proj" {
				if ended, err := next.EndLeftovers(t.Context()); len(ended) > 0 || err != nil {
					t.Errorf("ended %v, %v", ended, err)
				}
			}
			if !p.lives("agent") {
				t.Error("it was ended")
			}
		})
	}
}

func TestAtTheStartOfAScreenTheLeftoversOfAllSlotsAreEnded(t *testing.T) {
	t.Parallel()
	h, says := newStubbornHouse(t, stubborn)
	var all []*program
	for slot, pane := range []string{"%1", "%2", "%3"} {
		h.cell.ProjectDir = t.TempDir()
		all = append(all, h.started(t, slot, pane))
	}
	says.alive["%2"] = true
	ended, err := h.opener.EndLeftovers(t.Context())
	if err != nil || len(ended) != 2 || ended[0].Slot != 0 || ended[1].Slot != 2 || ended[0].PID != all[0].pid("agent") {
		t.Errorf("ended %v, %v", ended, err)
	}
	for slot, want := range []bool{false, true, false} {
		if got := all[slot].lives("agent"); got != want {
			t.Errorf("slot %d lives: %v", slot, got)
		}
	}
}

func TestAShellsPaneIsNotMarked(t *testing.T) {
	for _, converses := range []bool{false, true} {
		h, _ := newStubbornHouse(t, "")
		h.agent.plan = engine.AgentPlan{Argv: []string{"/usr/bin/env", "-0"}, Converses: converses}
		marked := slices.ContainsFunc(h.inside(t), func(pair string) bool {
			return strings.HasPrefix(pair, engine.PaneVariable+"="+h.options.State+"/proj/2/")
		})
		if marked != converses {
			t.Errorf("converses %v, marked %v", converses, marked)
		}
	}
}
