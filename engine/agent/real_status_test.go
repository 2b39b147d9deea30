package agent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellmux/engine/agent"
	"cellmux/engine/agent/agenttest"
)

// statusLimit is how long a status may take from its source, by agent: files and
// HTTP, and gemini's title, which tmux tells once a second.
func statusLimit(name string) time.Duration {
	if name == "gemini" {
		return 1500 * time.Millisecond
	}
	return 500 * time.Millisecond
}

// source reads an agent's level source by itself, apart from the watcher.
type source func() agent.State

// sourceOf is the source of the lab's slot 0.
func (l *lab) sourceOf() source {
	spool := filepath.Join(l.cell.WorkspaceHome, ".devcell", "agents", "api-0")
	switch l.name {
	case "claude":
		return func() agent.State {
			files, _ := filepath.Glob(filepath.Join(l.home, ".claude", "sessions", "*.json"))
			for _, file := range files {
				var entry struct{ Status string }
				if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &entry) == nil {
					return map[string]agent.State{"busy": agent.Working, "waiting": agent.Waiting, "idle": agent.Idle}[entry.Status]
				}
			}
			return agent.Unknown
		}
	case "codex":
		return func() agent.State {
			files, _ := filepath.Glob(filepath.Join(l.home, ".codex", "sessions", "*", "*", "*", "rollout-*.jsonl"))
			if len(files) == 0 {
				return agent.Unknown
			}
			data, _ := os.ReadFile(files[0])
			started, ended := strings.LastIndex(string(data), `"task_started"`), max(strings.LastIndex(string(data), `"task_complete"`), strings.LastIndex(string(data), `"turn_aborted"`))
			switch {
			case started < 0:
				return agent.Unknown
			case ended > started:
				return agent.Idle
			}
			info, err := os.Stat(files[0])
			if asked, e := os.Stat(filepath.Join(spool, "spool", "PermissionRequest.json")); err == nil && e == nil && asked.ModTime().After(info.ModTime()) {
				return agent.Waiting
			}
			return agent.Working
		}
	case "gemini":
		return func() agent.State {
			cmd := exec.Command("tmux", "-L", "real", "display-message", "-p", "-t", "=api-0:", "#{pane_title}")
			cmd.Env = l.environ
			title, _ := cmd.Output()
			for sign, state := range map[string]agent.State{"✦": agent.Working, "✋": agent.Waiting, "◇": agent.Idle} {
				if strings.HasPrefix(string(title), sign) {
					return state
				}
			}
			return agent.Unknown
		}
	}
	return l.opencodeSource(spool)
}

// opencodeSource listens to the events of the lab's opencode: asking it again and
// again would keep it from its work.
func (l *lab) opencodeSource(dir string) source {
	var launch struct{ Address, Password string }
	if data, err := os.ReadFile(filepath.Join(dir, "launch.json")); err != nil || json.Unmarshal(data, &launch) != nil {
		l.t.Fatalf("opencode's launch: %v", err)
	}
	r, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, launch.Address+"/event", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	r.SetBasicAuth("opencode", launch.Password)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	var now atomic.Int64
	now.Store(int64(agent.Idle))
	go func() { // ends with the test's context
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var e struct {
				Type       string
				Properties struct{ Status struct{ Type string } }
			}
			data, ok := strings.CutPrefix(lines.Text(), "data:")
			if !ok || json.Unmarshal([]byte(data), &e) != nil {
				continue
			}
			switch {
			case e.Type == "permission.asked":
				now.Store(int64(agent.Waiting))
			case e.Type == "permission.replied", e.Type == "session.status" && e.Properties.Status.Type == "busy" && agent.State(now.Load()) != agent.Waiting:
				now.Store(int64(agent.Working))
			case e.Type == "session.idle":
				now.Store(int64(agent.Idle))
			}
		}
	}()
	return func() agent.State { return agent.State(now.Load()) }
}

// change is when a state was first seen.
type change struct {
	state agent.State
	at    time.Time
}

// sampled notes the changes of what read says until stop is called. at is the
// time after each read: of a source that is early, of a status late.
func sampled(read func() agent.State) (stop func() []change) {
	var changes []change
	var sampling sync.WaitGroup
	end := make(chan struct{})
	sampling.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		look := func() {
			if state := read(); len(changes) == 0 || changes[len(changes)-1].state != state {
				changes = append(changes, change{state, time.Now()})
			}
		}
		for {
			look()
			select {
			case <-end:
				look() // what is so at the end counts
				return
			case <-tick.C:
			}
		}
	})
	return func() []change { close(end); sampling.Wait(); return changes }
}

func TestRealAgentsStatusFollowsItsSourceInTime(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, name)
			l.open(0)
			l.until(startup, "its box takes text", func() bool { return l.box(0).Ready })
			fromSource := sampled(l.sourceOf())
			fromStatus := sampled(func() agent.State { return l.status(0).State })

			l.deliver(0, "please "+agenttest.WordTool)
			l.request("the tool's turn", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), agenttest.WordTool) })
			l.becomes(0, 10*time.Second, agent.Waiting)
			p, _ := l.pane(0)
			var pressed time.Time
			l.until(20*time.Second, "idle after the rejection", func() bool {
				if l.status(0).State == agent.Waiting && time.Since(pressed) > 2*time.Second {
					pressed = time.Now()
					if err := l.tmux.Keys(t.Context(), p.ID, "Escape"); err != nil {
						t.Fatal(err)
					}
				}
				return l.status(0).State == agent.Idle
			})
			l.deliver(0, "be "+agenttest.WordSlow)
			l.becomes(0, 10*time.Second, agent.Working)
			l.request("the slow turn", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), agenttest.WordSlow) })
			pressed = time.Time{}
			l.until(30*time.Second, "idle after the interrupt", func() bool {
				if l.status(0).State == agent.Working && time.Since(pressed) > 3*time.Second {
					pressed = time.Now() // keys that come before the turn is drawn are lost
					if err := l.agent.Interrupt(t.Context(), func(ctx context.Context, key string) error { return l.tmux.Keys(ctx, p.ID, key) }); err != nil {
						t.Fatal(err)
					}
				}
				return l.status(0).State == agent.Idle
			})
			statuses, sources := fromStatus(), fromSource()

			// Each state of the source is the status's within the limit, unless the
			// source has left it by then. Hooks may tell before the source does.
			limit, seen := statusLimit(name), 0
			for i, s := range sources {
				if s.state == agent.Unknown || i == 0 {
					continue
				}
				left := statuses[len(statuses)-1].at.Add(time.Hour)
				if i+1 < len(sources) {
					left = sources[i+1].at
				}
				lag := time.Duration(-1)
				for j, st := range statuses {
					until := left
					if j+1 < len(statuses) {
						until = statuses[j+1].at
					}
					if st.state == s.state && until.After(s.at) && st.at.Before(left) {
						lag = max(0, st.at.Sub(s.at))
						break
					}
				}
				if lag < 0 && left.Before(s.at.Add(limit)) {
					continue
				}
				seen++
				t.Logf("%v after %s", s.state, lag.Round(time.Millisecond))
				if lag < 0 || lag > limit {
					t.Errorf("%v of the source is the status's after %s, want within %s", s.state, lag, limit)
				}
			}
			if seen < 3 {
				t.Errorf("the source was seen in %d states: %v", seen, fmt.Sprint(sources))
			}
		})
	}
}
