package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cellmux/cell/cfg"
	"cellmux/cell/state"
	"cellmux/engine"
	"cellmux/engine/agent"
	"cellmux/engine/host"
	"cellmux/engine/tmux"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
)

// world is a fleet on a real database, with a terminal server and agents that
// the test holds in its hands.
type world struct {
	*Fleet
	db      *state.DB
	server  *server
	opener  *opener
	watcher *watcher
	project string // a directory named "api"
	files   *projects
	now     time.Time
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	dir := t.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	db, _, err := state.Open(t.Context(), filepath.Join(dir, "state", "cellmux.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	w := &world{
		db:      db,
		server:  &server{list: tmux.List{Known: true}, changes: make(chan struct{}, 1)},
		watcher: &watcher{status: map[string]agent.Status{}, changes: make(chan struct{}, 1)},
		files:   &projects{},
		project: mkdir(t, dir, "api"),
		now:     time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
	}
	w.opener = &opener{server: w.server}
	o := Options{
		Store: db, Server: w.server, Opener: w.opener, Shown: w.opener, Watcher: w.watcher, Projects: w.files,
		Getenv:     func(string) string { return "" },
		Agents:     agent.New(agent.Options{}),
		Engines:    []engine.Engine{host.New(host.Options{Home: dir, Hostname: "box"})},
		Workspaces: filepath.Join(dir, ".devcell"), Home: dir, HostUser: "ada",
		LookPath: func(program string) (string, error) {
			if program == "claude" || program == "bash" {
				return "/usr/bin/" + program, nil
			}
			return "", errors.New("not found")
		},
		Now: func() time.Time { return w.now },
	}
	for _, c := range change {
		c(&o)
	}
	w.Fleet = New(o)
	return w
}

// cellWith makes a cell of the project with slots of the given agents.
func (w *world) cellWith(t *testing.T, agents ...string) string {
	t.Helper()
	name, err := w.NewCell(t.Context(), NewCell{ProjectDir: w.project})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range agents {
		if _, err := w.db.CreateSlot(t.Context(), state.Slot{Cell: name, Agent: a}); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

func (w *world) slot(t *testing.T, r Ref) Slot {
	t.Helper()
	snap, err := w.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range snap.Cells {
		for _, s := range c.Slots {
			if s.Ref == r {
				return s
			}
		}
	}
	t.Fatalf("%s is not in the list", r)
	return Slot{}
}

// server stands in for tmux.
type server struct {
	mu      sync.Mutex
	list    tmux.List
	next    int
	killed  []string
	pressed []string
	changes chan struct{}
	killErr error
}

func (s *server) List() tmux.List {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.list
	l.Panes = append([]tmux.Pane(nil), l.Panes...)
	return l
}
func (s *server) Refresh(context.Context) tmux.List { return s.List() }
func (s *server) Changes() <-chan struct{}          { return s.changes }

// set changes the list and tells.
func (s *server) set(change func(*tmux.List)) {
	s.mu.Lock()
	change(&s.list)
	s.mu.Unlock()
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

func (s *server) Open(_ context.Context, p engine.PaneSpec) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, old := range s.list.Panes {
		if old.Cell == p.Cell && old.Slot == p.Slot {
			if !old.Dead {
				return "", errors.New("the slot has a live pane")
			}
			s.list.Panes = append(s.list.Panes[:i], s.list.Panes[i+1:]...)
			break
		}
	}
	s.next++
	id := fmt.Sprintf("%%%d", s.next)
	s.list.Panes = append(s.list.Panes, tmux.Pane{ID: id, Cell: p.Cell, Slot: p.Slot, Agent: p.Agent})
	return id, nil
}

func (s *server) Keys(_ context.Context, pane string, keys ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pressed = append(s.pressed, keys...)
	return nil
}

func (s *server) Kill(_ context.Context, pane string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killErr != nil {
		return s.killErr
	}
	s.killed = append(s.killed, pane)
	for i, p := range s.list.Panes {
		if p.ID == pane {
			s.list.Panes = append(s.list.Panes[:i], s.list.Panes[i+1:]...)
			break
		}
	}
	return nil
}

// opener opens panes on the server without an engine.
type opener struct {
	ended     []Ref // whose guest was asked to end them
	leftovers []engine.Leftover
	server    *server
	err       error
	requests  []engine.OpenRequest
}

func (o *opener) Open(ctx context.Context, r engine.OpenRequest) (engine.Opened, error) {
	o.requests = append(o.requests, r)
	if o.err != nil {
		return engine.Opened{}, o.err
	}
	pane, err := o.server.Open(ctx, engine.PaneSpec{Cell: r.Cell.Name, Slot: r.Slot, Agent: r.Agent})
	return engine.Opened{Pane: pane, Notes: []string{"a note"}}, err
}

func (o *opener) EndLeftovers(context.Context) ([]engine.Leftover, error) {
	return o.leftovers, o.err
}

func (o *opener) End(_ context.Context, c engine.Cell, slot int) error {
	o.ended = append(o.ended, Ref{Cell: c.Name, Slot: slot})
	return nil
}

func (o *opener) Environment(context.Context, engine.OpenRequest) (engine.Environment, error) {
	return engine.Environment{}, nil
}

// watcher says of each slot what the test says.
type watcher struct {
	mu       sync.Mutex
	status   map[string]agent.Status
	observed []agent.Slot
	changes  chan struct{}
	direct   agent.Direct
}

func (w *watcher) Direct(string) (agent.Direct, bool) {
	return w.direct, w.direct != nil
}

func (w *watcher) Observe(slots []agent.Slot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.observed = slots
}
func (w *watcher) Read(context.Context) {}
func (w *watcher) Status(key string) agent.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status[key]
}
func (w *watcher) Changes() <-chan struct{} { return w.changes }
func (w *watcher) set(key string, s agent.Status) {
	w.mu.Lock()
	w.status[key] = s
	w.mu.Unlock()
	select {
	case w.changes <- struct{}{}:
	default:
	}
}

// projects are the project files, as the test says.
type projects struct {
	config            cfg.CellConfig
	problem, approval string
	approved          []string
}

func (p *projects) Load(context.Context, string) (cfg.CellConfig, string, string) {
	return p.config, p.problem, p.approval
}
func (p *projects) Approval(_ context.Context, cell, dir string) (Approval, error) {
	return Approval{Cell: cell, File: filepath.Join(dir, "devcell.toml"), Hash: "abc"}, nil
}
func (p *projects) Approve(_ context.Context, dir, hash string) error {
	p.approved = append(p.approved, dir+" "+hash)
	return nil
}
func (p *projects) ApproveFile(path, hash string) error  { return nil }
func (p *projects) Revoke(context.Context, string) error { return nil }

// outbox are conversations that note what they are told.
type outbox struct {
	open []convo.Entry
	told chan string
}

func (o *outbox) Open(context.Context) ([]convo.Entry, error) { return o.open, nil }
func (o *outbox) Ready(convo.Target)                          { o.told <- "ready" }
func (o *outbox) Forget(_ context.Context, session string) error {
	o.told <- "forget " + session
	return nil
}
func (o *outbox) Append(_ context.Context, t convo.Target, messages ...protocol.ChatMessage) ([]convo.Entry, error) {
	for _, m := range messages {
		o.told <- "append " + t.Cell + " " + string(m.Role) + " " + m.Text()
	}
	return nil, nil
}
func (o *outbox) Answered(_ context.Context, t convo.Target, ended time.Time, answers ...protocol.ChatMessage) error {
	told := "answered"
	for _, m := range answers {
		told += " " + t.Cell + " at " + ended.UTC().Format("15:04") + ": " + string(m.Role) + " " + m.Text()
	}
	o.told <- told
	return nil
}
