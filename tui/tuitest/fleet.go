package tuitest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
	"cellmux/tui"
)

// Fleet is a world behind every port. Its zero value is not usable: see
// NewFleet. It is safe for concurrent use.
type Fleet struct {
	mu        sync.Mutex
	build     func(now time.Time) fleet.Snapshot
	snapshot  fleet.Snapshot
	watchers  []chan fleet.Snapshot
	grown     []chan string
	calls     []string
	undone    []undo
	failures  map[string]error
	stalled   map[string]chan struct{}
	screens   map[string][]string
	panes     int
	agents    []fleet.AgentChoice
	approval  map[string]fleet.Approval
	diffs     map[string]string
	proposals map[string]fleet.Proposal
	shell     shellState
	entries   map[fleet.Ref][]convo.Entry
	delivery  convo.Delivery
	reason    string
	attached  func(pane string)
	asks      map[fleet.Ref]bool
	contact   fleet.FirstContact
	withAll   bool
	text      string
}

type undo struct {
	what  string
	state fleet.Snapshot
}

// NewFleet makes a world whose first list is made by build when it begins.
func NewFleet(build func(now time.Time) fleet.Snapshot) *Fleet {
	return &Fleet{
		build: build, failures: map[string]error{}, stalled: map[string]chan struct{}{}, screens: map[string][]string{},
		approval: map[string]fleet.Approval{}, diffs: map[string]string{}, proposals: map[string]fleet.Proposal{}, entries: map[fleet.Ref][]convo.Entry{},
		shell: newShellState(), asks: map[fleet.Ref]bool{}, delivery: convo.Submitted, panes: 100,
		agents: []fleet.AgentChoice{
			{Name: "claude", Found: true},
			{Name: "codex", Reason: "codex is not on PATH: npm install -g @openai/codex"},
			{Name: "shell", Found: true},
		},
	}
}

// Begin makes the first list. Run calls it inside the bubble.
func (f *Fleet) Begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snapshot = f.build(time.Now())
	f.snapshot.Taken = time.Now()
}

// Ports are what the screen is given.
func (f *Fleet) Ports() tui.Ports {
	p := tui.Ports{Fleet: f, Details: f, Panes: f, Shell: f, Conversation: f}
	if f.withAll {
		p.Journal, p.Jobs, p.Clipboard, p.Editor = journal{}, f, f, f
	}
	return p
}

// WithOptionalPorts supplies those too that may be nil.
func (f *Fleet) WithOptionalPorts() *Fleet {
	f.withAll = true
	return f
}

// Change edits the list as the world does, and tells those who watch.
func (f *Fleet) Change(edit func(*fleet.Snapshot)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.change(edit)
}

func (f *Fleet) change(edit func(*fleet.Snapshot)) {
	next := clone(f.snapshot)
	edit(&next)
	next.Taken = time.Now()
	f.snapshot = next
	for _, w := range f.watchers {
		select {
		case <-w:
		default:
		}
		w <- clone(next)
	}
}

func clone(s fleet.Snapshot) fleet.Snapshot {
	s.Cells = slices.Clone(s.Cells)
	for i := range s.Cells {
		s.Cells[i].Slots = slices.Clone(s.Cells[i].Slots)
	}
	s.Outside = slices.Clone(s.Outside)
	s.Engines = slices.Clone(s.Engines)
	s.Work = slices.Clone(s.Work)
	return s
}

// Fail makes a method return an error until it is called with nil.
func (f *Fleet) Fail(method string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures[method] = err
}

// Stall makes calls of a method hang until the returned function is called.
func (f *Fleet) Stall(method string) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gate := make(chan struct{})
	f.stalled[method] = gate
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.stalled, method)
		close(gate)
	}
}

// Screen sets what a pane shows.
func (f *Fleet) Screen(pane string, rows ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.screens[pane] = rows
}

// Calls are the calls that change something or ask for it, in order.
func (f *Fleet) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Forget empties Calls.
func (f *Fleet) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = nil
}

// called notes a call, waits where the method is stalled, and says how it ends.
func (f *Fleet) called(ctx context.Context, method string, arguments ...any) error {
	f.mu.Lock()
	line := method
	for _, a := range arguments {
		line += fmt.Sprintf(" %v", a)
	}
	f.calls = append(f.calls, line)
	gate, err := f.stalled[method], f.failures[method]
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// Watch implements tui.Fleet.
func (f *Fleet) Watch(ctx context.Context) <-chan fleet.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan fleet.Snapshot, 1)
	c <- clone(f.snapshot)
	f.watchers = append(f.watchers, c)
	return c
}

// Refresh implements tui.Fleet.
func (f *Fleet) Refresh(ctx context.Context) (fleet.Snapshot, error) {
	if err := f.called(ctx, "Refresh"); err != nil {
		return fleet.Snapshot{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return clone(f.snapshot), nil
}

// NewCell implements tui.Fleet.
func (f *Fleet) NewCell(ctx context.Context, n fleet.NewCell) (string, error) {
	if err := f.called(ctx, "NewCell", n.ProjectDir, n.Name, n.Workspace, n.Engine); err != nil {
		return "", err
	}
	name := n.Name
	if name == "" {
		name = n.ProjectDir[strings.LastIndexByte(n.ProjectDir, '/')+1:]
	}
	f.Change(func(s *fleet.Snapshot) {
		s.Cells = slices.DeleteFunc(s.Cells, func(c fleet.Cell) bool { return c.Name == name && c.Offered })
		engine := n.Engine
		if engine == "" {
			engine = "host"
		}
		s.Cells = append(s.Cells, fleet.Cell{Name: name, Title: name, Workspace: n.Workspace, ProjectDir: n.ProjectDir, Engine: engine, Created: time.Now()})
	})
	return name, nil
}

// Open implements tui.Fleet.
func (f *Fleet) Open(ctx context.Context, cell, agent string) (fleet.Ref, error) {
	if err := f.called(ctx, "Open", cell, agent); err != nil {
		return fleet.Ref{}, err
	}
	if agent == "" {
		agent = "claude"
	}
	ref := fleet.Ref{Cell: cell}
	f.Change(func(s *fleet.Snapshot) {
		for i := range s.Cells {
			if c := &s.Cells[i]; c.Name == cell {
				for _, other := range c.Slots {
					ref.Slot = max(ref.Slot, other.Ref.Slot+1)
				}
				f.panes++
				c.Slots = append(c.Slots, fleet.Slot{Ref: ref, Agent: agent, Status: fleet.Idle, Since: time.Now(), Pane: fmt.Sprintf("%%%d", f.panes), SessionID: "sid-" + ref.String()})
			}
		}
	})
	return ref, nil
}

// SetFirstContact sets what agents would ask on a first start in any cell.
func (f *Fleet) SetFirstContact(c fleet.FirstContact) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.contact = c
}

// FirstContact implements tui.Fleet; it is asked quietly before every opening.
func (f *Fleet) FirstContact(ctx context.Context, cell, agent string) (fleet.FirstContact, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.contact, ctx.Err()
}

// AnswerFirstContact implements tui.Fleet.
func (f *Fleet) AnswerFirstContact(ctx context.Context, directory string, trusted bool) error {
	if err := f.called(ctx, "AnswerFirstContact", directory, trusted); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.contact = fleet.FirstContact{}
	return nil
}

func (f *Fleet) slot(r fleet.Ref, edit func(*fleet.Slot)) {
	f.Change(func(s *fleet.Snapshot) {
		for i := range s.Cells {
			for j := range s.Cells[i].Slots {
				if s.Cells[i].Slots[j].Ref == r {
					edit(&s.Cells[i].Slots[j])
				}
			}
		}
	})
}

// Set changes a slot as the world does.
func (f *Fleet) Set(r fleet.Ref, edit func(*fleet.Slot)) { f.slot(r, edit) }

// Restart implements tui.Fleet.
func (f *Fleet) Restart(ctx context.Context, r fleet.Ref) error {
	if err := f.called(ctx, "Restart", r); err != nil {
		return err
	}
	f.mu.Lock()
	f.panes++
	pane := fmt.Sprintf("%%%d", f.panes)
	f.mu.Unlock()
	f.slot(r, func(s *fleet.Slot) { s.Pane, s.Status, s.Since, s.ExitStatus = pane, fleet.Idle, time.Now(), 0 })
	return nil
}

// Stop implements tui.Fleet.
func (f *Fleet) Stop(ctx context.Context, r fleet.Ref) error {
	if err := f.called(ctx, "Stop", r); err != nil {
		return err
	}
	f.remember("stop " + r.String())
	f.slot(r, func(s *fleet.Slot) { s.Pane, s.Status, s.Since = "", fleet.Stopped, time.Now() })
	return nil
}

func (f *Fleet) remember(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.undone = append(f.undone, undo{what, clone(f.snapshot)})
}

// Delete implements tui.Fleet.
func (f *Fleet) Delete(ctx context.Context, r fleet.Ref) error {
	if err := f.called(ctx, "Delete", r); err != nil {
		return err
	}
	f.remember("delete " + r.String())
	f.Change(func(s *fleet.Snapshot) {
		if r.Slot < 0 {
			s.Cells = slices.DeleteFunc(s.Cells, func(c fleet.Cell) bool { return c.Name == r.Cell })
			return
		}
		for i := range s.Cells {
			s.Cells[i].Slots = slices.DeleteFunc(s.Cells[i].Slots, func(x fleet.Slot) bool { return x.Ref == r })
		}
	})
	return nil
}

// Undo implements tui.Fleet.
func (f *Fleet) Undo(ctx context.Context) (string, error) {
	if err := f.called(ctx, "Undo"); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.undone) == 0 {
		return "", fmt.Errorf("there is nothing to undo")
	}
	last := f.undone[len(f.undone)-1]
	f.undone = f.undone[:len(f.undone)-1]
	f.change(func(s *fleet.Snapshot) { *s = last.state })
	return last.what, nil
}

// Rename implements tui.Fleet.
func (f *Fleet) Rename(ctx context.Context, r fleet.Ref, title string) error {
	if err := f.called(ctx, "Rename", r, title); err != nil {
		return err
	}
	if r.Slot >= 0 {
		f.slot(r, func(s *fleet.Slot) { s.Title = title })
		return nil
	}
	f.cell(r.Cell, func(c *fleet.Cell) { c.Title = title })
	return nil
}

func (f *Fleet) cell(name string, edit func(*fleet.Cell)) {
	f.Change(func(s *fleet.Snapshot) {
		for i := range s.Cells {
			if s.Cells[i].Name == name {
				edit(&s.Cells[i])
			}
		}
	})
}

// Pin implements tui.Fleet.
func (f *Fleet) Pin(ctx context.Context, cell string, pinned bool) error {
	err := f.called(ctx, "Pin", cell, pinned)
	if err == nil {
		f.cell(cell, func(c *fleet.Cell) { c.Pinned = pinned })
	}
	return err
}

// Archive implements tui.Fleet.
func (f *Fleet) Archive(ctx context.Context, r fleet.Ref, archived bool) error {
	if err := f.called(ctx, "Archive", r, archived); err != nil {
		return err
	}
	f.remember("archive " + r.String())
	if r.Slot >= 0 {
		f.slot(r, func(s *fleet.Slot) { s.Archived = archived })
	} else {
		f.cell(r.Cell, func(c *fleet.Cell) { c.Archived = archived })
	}
	return nil
}

// Interrupt implements tui.Fleet.
func (f *Fleet) Interrupt(ctx context.Context, r fleet.Ref) error {
	return f.called(ctx, "Interrupt", r)
}

// Trust implements tui.Fleet.
func (f *Fleet) Trust(ctx context.Context, cell, hash string) error {
	err := f.called(ctx, "Trust", cell, hash)
	if err == nil {
		f.cell(cell, func(c *fleet.Cell) { c.Approval = "" })
	}
	return err
}

// Propose sets what a commit of a cell's work would be, and that it is made on
// the host.
func (f *Fleet) Propose(cell string, p fleet.Proposal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proposals[cell] = p
	f.change(func(s *fleet.Snapshot) {
		for i := range s.Cells {
			if s.Cells[i].Name == cell {
				s.Cells[i].CommitsOnHost = true
			}
		}
	})
}

// Proposal implements tui.Fleet.
func (f *Fleet) Proposal(ctx context.Context, cell string) (fleet.Proposal, error) {
	err := f.called(ctx, "Proposal", cell)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.proposals[cell], err
}

// Commit implements tui.Fleet.
func (f *Fleet) Commit(ctx context.Context, cell string, shown fleet.Proposal, message string) (string, error) {
	return "0123456789abcdef0123456789abcdef01234567", f.called(ctx, "Commit", cell, shown.Tree, message)
}

// Agents implements tui.Fleet.
func (f *Fleet) Agents(ctx context.Context, cell string) ([]fleet.AgentChoice, error) {
	return f.agents, f.called(ctx, "Agents", cell)
}

// CancelWork implements tui.Fleet.
func (f *Fleet) CancelWork(ctx context.Context, id string) error {
	return f.called(ctx, "CancelWork", id)
}

// Capture implements tui.Panes.
func (f *Fleet) Capture(ctx context.Context, pane string, offset int) (fleet.Screen, error) {
	f.mu.Lock()
	gate, err := f.stalled["Capture"], f.failures["Capture"]
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return fleet.Screen{}, ctx.Err()
		}
	}
	if err != nil {
		return fleet.Screen{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	rows := f.screens[pane]
	if rows == nil {
		rows = []string{"this is pane " + pane}
	}
	return fleet.Screen{Pane: pane, Rows: slices.Clone(rows), Width: 120, Height: 36, Taken: time.Now()}, nil
}

// OnAttach says what a pane does while the terminal is lent to it.
func (f *Fleet) OnAttach(do func(pane string)) { f.attached = do }

// Attach implements tui.Panes.
func (f *Fleet) Attach(ctx context.Context, pane string) (fleet.Attachment, error) {
	if err := f.called(ctx, "Attach", pane); err != nil {
		return nil, err
	}
	return attachment{func() error {
		if f.attached != nil {
			f.attached(pane)
		}
		return nil
	}}, nil
}

type attachment struct{ run func() error }

func (a attachment) Run() error        { return a.run() }
func (attachment) SetStdin(io.Reader)  {}
func (attachment) SetStdout(io.Writer) {}
func (attachment) SetStderr(io.Writer) {}

// Type implements tui.Panes.
func (f *Fleet) Type(ctx context.Context, pane string, keys []string) error {
	return f.called(ctx, "Type", pane, strings.Join(keys, " "))
}

// Named keeps a text for a test that fills the world with it.
func (f *Fleet) Named(text string) *Fleet {
	f.text = text
	return f
}

// Text is what Named was given.
func (f *Fleet) Text() string { return f.text }
