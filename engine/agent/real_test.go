package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/cell"
	"cellmux/cell/proc"
	"cellmux/cell/proc/proctest"
	"cellmux/engine"
	"cellmux/engine/agent"
	"cellmux/engine/agent/agenttest"
	"cellmux/engine/host"
	"cellmux/engine/tmux"
)

// TestMain is also the program that a pane runs: the hand-off.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == engine.HandoffArgument {
		err := engine.RunHandoff(os.Args[2], os.Getenv)
		fmt.Fprintln(os.Stderr, "cellmux:", err)
		os.Exit(err.Code)
	}
	status := m.Run()
	if builtIn != "" {
		if err := os.RemoveAll(builtIn); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(status)
}

// lab runs one real agent in a scratch home, in a private tmux server, against
// the mock of its provider.
type lab struct {
	t       *testing.T
	name    string
	agent   *agent.Agent
	set     *agent.Set
	mock    *agenttest.Mock
	home    string
	project string
	environ []string
	tmux    *tmux.Server
	opener  *engine.Opener
	watcher *agent.Watcher
	cell    engine.Cell
	bound   map[int]string
	prompts cell.ResolveOpts
	notes   []string // of the last launch
	stop    func()
}

func newLab(t *testing.T, name string) *lab {
	t.Helper()
	bin := agenttest.Bin(t, name)
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux")
	}
	// Not below t.TempDir: a socket's path is limited to about 100 bytes.
	dir, err := os.MkdirTemp("", "cmxa")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	l := &lab{t: t, name: name, mock: agenttest.NewMock(t), home: filepath.Join(dir, "home"), project: filepath.Join(dir, "proj"), bound: map[int]string{}}
	for _, d := range []string{l.home, l.project} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l.environ = append([]string{
		"HOME=" + l.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "SHELL=/bin/sh", "USER=dev",
		"TMUX_TMPDIR=" + dir, "TERM=xterm-256color",
		// What a server born inside another agent's session would have.
		"CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1",
	}, agenttest.Home(t, name, l.home, l.mock.URL(), l.project)...)
	set := agent.New(agent.Options{Runner: proc.New(), Environ: l.environ})
	l.set = set
	l.agent, _ = set.Lookup(name)
	l.tmux = tmux.New(tmux.Options{Runner: proc.New(), Socket: "real", RuntimeDir: filepath.Join(dir, "run"), Env: l.environ, Timeout: 10 * time.Second})
	l.tmux.SetSize(110, 40)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runtime := filepath.Join(dir, "handoff")
	if err := os.Mkdir(runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	l.opener = engine.NewOpener(engine.OpenerOptions{
		Engines: []engine.Engine{host.New(host.Options{Home: l.home})},
		Panes:   l.tmux,
		Agent: func(name string) (engine.Agent, bool) {
			a, ok := set.Lookup(name)
			return a, ok
		},
		Self: self, RuntimeDir: runtime, Environ: l.environ, Home: l.home, HostUser: "dev",
		State: engine.StateName(dir), PanesGone: l.tmux.Gone,
	})
	l.cell = engine.Cell{Name: "api", Workspace: "main", WorkspaceHome: filepath.Join(l.home, ".devcell", "main"), ProjectDir: l.project, Kind: engine.Host}
	l.watcher = set.Watch(agent.WatchOptions{Capture: func(ctx context.Context, pane string) ([]string, error) {
		screen, err := l.tmux.Capture(ctx, pane, 0)
		return screen.Rows, err
	}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 3)
	go func() { _ = l.tmux.Run(ctx); done <- struct{}{} }()
	go func() { l.watcher.Run(ctx); done <- struct{}{} }()
	go func() { l.feed(ctx); done <- struct{}{} }()
	// Two clients that find no server at once may each start one, and one loses.
	l.until(20*time.Second, "tmux answers", func() bool { list := l.tmux.List(); return list.Known && list.ServerPID != 0 })
	l.stop = func() {
		for _, p := range l.tmux.List().Panes {
			if p.Cell != "" {
				_ = l.tmux.Kill(context.Background(), p.ID)
			}
		}
		cancel()
		for range 3 {
			<-done
		}
		l.killServer()
		proctest.EndAllOf(t, l.home)
	}
	t.Cleanup(func() {
		if t.Failed() {
			l.dump()
		}
		l.stop()
	})
	return l
}

// removeAll removes a scratch directory in which an ending agent may still
// write.
func removeAll(t *testing.T, dir string) {
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := os.RemoveAll(dir)
		if err == nil || time.Now().After(deadline) {
			if err != nil {
				t.Log(err)
			}
			return
		}
		<-tick.C
	}
}

// killServer ends this lab's own tmux server with every pane in it.
func (l *lab) killServer() {
	cmd := exec.Command("tmux", "-L", "real", "kill-server")
	cmd.Env = l.environ
	_ = cmd.Run() // there may be none
}

func (l *lab) feed(ctx context.Context) {
	for {
		var slots []agent.Slot
		for _, p := range l.tmux.List().Panes {
			if p.Cell == l.cell.Name {
				slots = append(slots, l.slot(p))
			}
		}
		l.watcher.Observe(slots)
		select {
		case <-ctx.Done():
			return
		case <-l.tmux.Changes():
		}
	}
}

func (l *lab) slot(p tmux.Pane) agent.Slot {
	config := l.config(p.Slot)
	return agent.Slot{
		Key: config.Config.AppName(), Agent: p.Agent, Config: config.Config, Home: l.home,
		SessionID: cell.SessionID(config.Config.AppName()), BoundID: l.bound[p.Slot], Pane: p,
	}
}

func (l *lab) config(slot int) engine.Prepared {
	var p engine.Prepared
	p.Config.Workspace, p.Config.WorkspaceHome = l.cell.Workspace, l.cell.WorkspaceHome
	p.Config.Cell, p.Config.Slot, p.Config.ProjectDir, p.Config.Engine = l.cell.Name, slot, l.project, "host"
	p.Config.Guest = host.New(host.Options{Home: l.home}).Guest(l.cell)
	return p
}

func (l *lab) open(slot int) string {
	l.t.Helper()
	opened, err := l.opener.Open(l.t.Context(), engine.OpenRequest{Cell: l.cell, Slot: slot, Agent: l.name, BoundID: l.bound[slot], Prompts: l.prompts})
	if err != nil {
		l.t.Fatal(err)
	}
	l.notes = opened.Notes
	return opened.Pane
}

func (l *lab) pane(slot int) (tmux.Pane, bool) {
	for _, p := range l.tmux.List().Panes {
		if p.Cell == l.cell.Name && p.Slot == slot {
			return p, true
		}
	}
	return tmux.Pane{}, false
}

func (l *lab) status(slot int) agent.Status {
	return l.watcher.Status(fmt.Sprintf("%s-%d", l.cell.Name, slot))
}

func (l *lab) box(slot int) agent.Box {
	p, ok := l.pane(slot)
	if !ok {
		return agent.Box{Reason: "no pane"}
	}
	screen, err := l.tmux.Capture(l.t.Context(), p.ID, 0)
	if err != nil {
		return agent.Box{Reason: err.Error()}
	}
	return l.agent.Box(agent.Look{Rows: screen.Rows, Title: p.Title}, l.status(slot))
}

// until waits for a condition and returns how long it took.
func (l *lab) until(within time.Duration, what string, ok func() bool) time.Duration {
	l.t.Helper()
	start := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Since(start) > within {
			l.t.Fatalf("%s: not within %s: %s", l.name, within, what)
		}
		<-tick.C
	}
	return time.Since(start)
}

// startup is how long an agent may take to show its box; opencode fetches its
// provider's package on the first start.
const startup = 150 * time.Second

// deliver is delivery as the declaration says it: ready, paste, settle, Enter,
// proof.
func (l *lab) deliver(slot int, text string) {
	l.t.Helper()
	took := l.until(startup, "its box takes text", func() bool { return l.box(slot).Ready })
	l.t.Logf("ready after %s", took.Round(10*time.Millisecond))
	p, _ := l.pane(slot)
	before := time.Now()
	if err := l.tmux.Paste(l.t.Context(), p.ID, text); err != nil {
		l.t.Fatal(err)
	}
	l.until(10*time.Second, "the paste in its box", func() bool { return l.box(slot).Draft != "" })
	settle := time.NewTimer(l.agent.Settle())
	<-settle.C
	if err := l.tmux.Keys(l.t.Context(), p.ID, "Enter"); err != nil {
		l.t.Fatal(err)
	}
	l.until(30*time.Second, "proof of a turn", func() bool { return l.status(slot).TurnBegan.After(before.Add(-20 * time.Millisecond)) })
}

func (l *lab) becomes(slot int, within time.Duration, want agent.State) time.Duration {
	l.t.Helper()
	return l.until(within, fmt.Sprintf("slot %d %v", slot, want), func() bool { return l.status(slot).State == want })
}

// dump shows what a failed test saw.
func (l *lab) dump() {
	for _, p := range l.tmux.List().Panes {
		if p.Cell == "" {
			continue
		}
		l.t.Logf("pane %+v\nstatus %+v\nbox %+v", p, l.status(p.Slot), l.box(p.Slot))
		if screen, err := l.tmux.Capture(context.Background(), p.ID, 0); err == nil {
			l.t.Logf("%s", strings.TrimRight(strings.Join(screen.Rows, "\n"), "\n "))
		}
	}
	for i, r := range l.mock.Turns() {
		l.t.Logf("turn %d: %.300q", i, r.LastUser())
	}
	_ = filepath.WalkDir(filepath.Join(l.cell.WorkspaceHome, ".devcell", "agents"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".json") {
			data, _ := os.ReadFile(path)
			l.t.Logf("%s: %.600s", path, data)
		}
		return nil
	})
}

// launchOf reads the address and the password of an interface from a slot's
// launch record.
func (l *lab) launchOf(app string) (address, password string) {
	l.t.Helper()
	data, err := os.ReadFile(filepath.Join(l.cell.WorkspaceHome, ".devcell", "agents", app, "launch.json"))
	if err != nil {
		l.t.Fatal(err)
	}
	var record struct{ Address, Password string }
	if err := json.Unmarshal(data, &record); err != nil || record.Password == "" {
		l.t.Fatalf("%s, %v", data, err)
	}
	return record.Address, record.Password
}

func (l *lab) request(what string, match func(agenttest.Request) bool) agenttest.Request {
	l.t.Helper()
	return l.mock.Wait(l.t, 60*time.Second, what, match)
}

func (l *lab) toolRan() bool {
	_, err := os.Stat(filepath.Join(l.project, agenttest.ToolFile))
	return !errors.Is(err, os.ErrNotExist)
}

func TestRealAgentIsWhatItsDeclarationWasCheckedWith(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(agenttest.Bin(t, name), name)
			a, _ := agent.New(agent.Options{Runner: proc.New(), Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}}).Lookup(name)
			if p := a.Probe(t.Context(), program); p.Standing != agent.Checked || len(p.Missing)+len(p.Costs) > 0 || p.Fault != "" {
				t.Errorf("%s says of itself %+v", program, p)
			}
		})
	}
}

func TestRealAgentKeepsItsConversationAndGetsAFreshOverlay(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, name)
			l.prompts.AppendFlagInline = "OVERLAY-ONE speak plainly"
			l.open(0)
			message := "[shell_context]\n{\"command\":\"true\"}\n[/shell_context]\nremember the word ALPHA"
			l.deliver(0, message)
			first := l.request("the first message", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), "ALPHA") })
			if n := strings.Count(first.UserText(), "[shell_context]"); n != 1 {
				t.Errorf("the envelope arrived %d times: %q", n, first.UserText())
			}
			l.holdsOverlay(first)
			l.becomes(0, 10*time.Second, agent.Idle)

			// The server dies with every pane; the conversation does not. On each later
			// start the overlay is made anew, and reaches the wire as it is by then.
			session, before := l.status(0).Session, "OVERLAY-ONE"
			for _, overlay := range []string{"OVERLAY-TWO", "OVERLAY-THREE"} {
				l.killServer()
				l.until(10*time.Second, "no pane", func() bool { _, ok := l.pane(0); return !ok })
				l.prompts.AppendFlagInline = overlay + " speak in verse"
				l.open(0)
				l.deliver(0, "what was said before "+overlay)
				again := l.request("the message after the restart", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), overlay) })
				if !strings.Contains(again.UserText(), "ALPHA") {
					t.Errorf("the conversation was lost: %q", again.UserText())
				}
				l.holdsOverlay(again)
				// codex keeps what it was told first: the change comes behind it, and is
				// said on the Info tab.
				old, changed := strings.LastIndex(again.System, before), strings.LastIndex(again.System, overlay)
				if frozen := name == "codex"; frozen != (old >= 0) || changed < old {
					t.Errorf("the overlay before stands at %d, that of now at %d", old, changed)
				} else if said := strings.Contains(strings.Join(l.notes, "\n"), "the changed text rides in front of the next message"); said != frozen {
					t.Errorf("the notes of the launch are %q", l.notes)
				}
				if got := l.status(0).Session; got != session {
					t.Errorf("the session is %q now, was %q", got, session)
				}
				l.becomes(0, 10*time.Second, agent.Idle)
				before = overlay
			}
			// A start that changes nothing adds nothing.
			l.killServer()
			l.until(10*time.Second, "no pane", func() bool { _, ok := l.pane(0); return !ok })
			l.open(0)
			l.deliver(0, "and DELTA")
			last := l.request("the last message", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), "DELTA") })
			l.holdsOverlay(last)
			if n := strings.Count(last.System, "OVERLAY-THREE"); n != 1 {
				t.Errorf("the same overlay is on the wire %d times", n)
			}
		})
	}
}

// holdsOverlay fails the test unless the whole overlay as it is now, the context
// of the cell and the operator's prompts, is in a request's system text.
func (l *lab) holdsOverlay(r agenttest.Request) {
	l.t.Helper()
	prepared := l.config(0)
	want, err := cell.AssembleOverlayPrompt(prepared.Config, l.cell.Config, l.prompts)
	if err != nil {
		l.t.Fatal(err)
	}
	if want = strings.TrimSpace(want); want == "" || !strings.Contains(r.System, want) {
		l.t.Errorf("the overlay %q is not in the system text (%d bytes)", want, len(r.System))
	}
}

func TestRealAgentsQuestionIsWaitingAndNothingIsApproved(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, name)
			l.open(0)
			l.deliver(0, "please "+agenttest.WordTool)
			l.request("the message", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), agenttest.WordTool) })
			took := l.becomes(0, 5*time.Second, agent.Waiting)
			t.Logf("waiting after %s: %q", took, l.status(0).Question)
			// The registry tells that it waits, and a hook for what: two files.
			l.until(5*time.Second, "the question with what it would do", func() bool {
				return strings.Contains(l.status(0).Question, "touch "+agenttest.ToolFile)
			})
			if b := l.box(0); b.Ready || !b.Asking {
				t.Errorf("the box is %+v while a question is open", b)
			}
			if l.toolRan() {
				t.Fatal("the command ran unasked")
			}
			// Rejected by the agent's own key: no hook tells, and it is idle. Keys
			// that come with the question are not taken for an answer to it.
			p, _ := l.pane(0)
			var pressed time.Time
			l.until(10*time.Second, "not waiting", func() bool {
				if time.Since(pressed) > 2*time.Second {
					pressed = time.Now()
					if err := l.tmux.Keys(t.Context(), p.ID, "Escape"); err != nil {
						t.Fatal(err)
					}
				}
				s := l.status(0).State
				return s != agent.Waiting && s != agent.Working
			})
			took = time.Since(pressed)
			t.Logf("%v %s after the rejection", l.status(0).State, took)
			if l.toolRan() {
				t.Error("the rejected command ran")
			}
		})
	}
}

func TestRealAgentIsInterruptedByItsOwnKeys(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, name)
			l.open(0)
			l.deliver(0, "be "+agenttest.WordSlow)
			l.request("the message", func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), agenttest.WordSlow) })
			l.becomes(0, 5*time.Second, agent.Working)
			p, _ := l.pane(0)
			if err := l.agent.Interrupt(t.Context(), func(ctx context.Context, key string) error {
				return l.tmux.Keys(ctx, p.ID, key)
			}); err != nil {
				t.Fatal(err)
			}
			took := l.until(5*time.Second, "not working", func() bool { return l.status(0).State != agent.Working })
			t.Logf("%v %s after the interrupt", l.status(0).State, took)
			if p, ok := l.pane(0); !ok || p.Dead {
				t.Error("the interrupt ended the program")
			}
		})
	}
}
