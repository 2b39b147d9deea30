package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"cellmux/cell"
	"cellmux/cell/cfg"
	"cellmux/cell/state"
	"cellmux/engine"
	"cellmux/engine/agent"
	"cellmux/engine/tmux"
	"cellmux/shellctx/convo"
)

// DefaultWorkspace is the workspace of a cell that asks for none.
const DefaultWorkspace = "main"

// LockPatience is how long a call waits for another process that holds the
// database, before its error says so.
const LockPatience = state.BusyTimeout

// Options is what a Fleet joins. What is not said to be optional is required.
type Options struct {
	Store  *state.DB
	Server Server
	Opener Opener
	// Shown answers what a launch would get without executing anything.
	Shown    Opener
	Agents   *agent.Set
	Watcher  Watcher
	Projects Projects
	Engines  []engine.Engine
	// Workspaces is the directory that holds the workspaces' homes, ~/.devcell.
	Workspaces string
	// Home is the user's own home, in which agents of host cells keep their files.
	Home     string
	HostUser string
	// LookPath finds a program on the PATH that panes of host cells get.
	LookPath func(program string) (string, error)
	// Order names agents that are offered and looked for first.
	Order  []string
	Path   string // that PATH, for completion
	Getenv func(string) string
	// Prompts is the flag tier of the prompts of everything that this process
	// starts.
	Prompts cell.ResolveOpts
	// Offer is the directory in which cellmux was started: without a cell it is
	// offered as one. "" offers nothing.
	Offer string
	// Conversations hold the messages that wait for delivery; nil: none wait.
	Conversations Outbox
	// ForgetShell removes the shell log of a slot for good, or with slot WholeCell
	// that of a cell; nil: there are none.
	ForgetShell func(ctx context.Context, cell string, slot int) error
	// Outside lists the panes of the tmux server that the user stands in.
	Outside func(ctx context.Context) []Outside
	Git     Repository       // optional
	Commits Commits          // optional
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: none
}

// Fleet joins what exists with what is alive. It is safe for concurrent use.
type Fleet struct {
	o         Options
	snapshots hub[Snapshot]

	background background
	events     journal
	carriers   carriers
	work       works
	wake       chan struct{}
	listed     chan struct{} // closed after Run's first list
	listedOnce sync.Once

	building sync.Mutex // one build at a time: statuses' ages have one writer
	ages     ages

	mu      sync.Mutex // guards what follows
	git     map[string]string
	engines []Engine
	guests  map[Ref]Ref // slots whose agent stands in the conversation of another
}

// New returns a Fleet. Nothing is read or started before its first use.
func New(o Options) *Fleet {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f := &Fleet{
		o:      o,
		wake:   make(chan struct{}, 1),
		listed: make(chan struct{}),
		carriers: carriers{
			wake: make(chan struct{}, 1), known: map[string]Guest{}, failed: map[string]error{}, live: map[string]bool{},
		},
		ages: ages{},
		git:  map[string]string{},
	}
	for _, e := range o.Engines {
		f.engines = append(f.engines, Engine{Kind: string(e.Kind())})
	}
	return f
}

// Watch sends a snapshot at once and one after each change, until ctx ends; it
// needs Run for the changes. The channel holds one: a slow reader gets the
// newest, and misses others.
func (f *Fleet) Watch(ctx context.Context) <-chan Snapshot {
	if _, has := f.snapshots.newest(); !has {
		select {
		case <-f.listed:
			f.poke() // the first list failed
		default: // it comes
		}
	}
	return f.snapshots.watch(ctx)
}

// Refresh asks everything anew and returns the list. It fails only when the
// database gives no answer.
func (f *Fleet) Refresh(ctx context.Context) (Snapshot, error) {
	snap, err := f.build(ctx, f.o.Server.Refresh(ctx), wholeLook)
	if err == nil {
		var cells []string
		for _, c := range snap.Cells {
			if !c.Offered && !c.Archived {
				cells = append(cells, c.Name)
			}
		}
		f.readGitLater(cells...)
		f.carriers.ask()
	}
	return snap, err
}

// poke asks Run for a new list.
func (f *Fleet) poke() {
	select {
	case f.wake <- struct{}{}:
	default: // one is asked for already
	}
}

// How long build may read the agents' sources: not at all, taking what the
// watcher last saw, or as long as they need.
const (
	noLook    = time.Duration(0)
	wholeLook = time.Duration(-1)
)

// build reads everything, publishes the list and returns it.
func (f *Fleet) build(ctx context.Context, list tmux.List, look time.Duration) (Snapshot, error) {
	f.building.Lock()
	defer f.building.Unlock()
	in, err := f.read(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	return f.publish(ctx, in, list, look), nil
}

// read reads what the database and the projects' files tell.
func (f *Fleet) read(ctx context.Context) (in listing, err error) {
	if in.cells, err = f.o.Store.Cells(ctx); err != nil {
		return in, err
	}
	if in.slots, err = f.o.Store.Slots(ctx); err != nil {
		return in, err
	}
	if in.queued, err = f.queued(ctx); err != nil {
		return in, err
	}
	in.project = make(map[string]project, len(in.cells))
	for _, c := range in.cells {
		found := f.lookAt(ctx, c)
		found.told = f.configWith(c, found.config)
		found.commits = f.commitsOn(found.told)
		in.project[c.Name] = found
	}
	return in, nil
}

// publish joins what was read with the panes and what the agents say, publishes
// the list and returns it. f.building is held.
func (f *Fleet) publish(ctx context.Context, in listing, list tmux.List, look time.Duration) Snapshot {
	cells, slots := in.cells, in.slots
	in.panes, in.taken = list, f.o.Now()
	f.o.Watcher.Observe(f.observed(in))
	if look != noLook {
		f.readAgents(ctx, look)
	}
	in.active = make(map[Ref]agent.Status, len(slots))
	for _, s := range slots {
		ref := Ref{s.Cell, s.Number}
		in.active[ref] = f.o.Watcher.Status(ref.String())
	}
	in.slots, in.guests = f.followAgents(ctx, slots, in.active)
	if f.o.Outside != nil {
		in.outside = f.o.Outside(ctx)
	}
	in.offered = f.offered(ctx, cells)
	in.carried = make(map[string]Guest, len(cells))
	for _, c := range cells {
		in.carried[c.Name] = f.carriers.of(c.Name)
	}
	f.mu.Lock()
	in.git, in.engines = copied(f.git), append([]Engine(nil), f.engines...)
	f.guests = in.guests
	f.mu.Unlock()
	snap := join(in, f.ages)
	snap.Work = f.work.list()
	f.snapshots.publish(snap)
	return snap
}

func (f *Fleet) readAgents(ctx context.Context, look time.Duration) {
	if look > 0 {
		limited, cancel := context.WithTimeout(ctx, look)
		defer cancel()
		ctx = limited
	}
	f.o.Watcher.Read(ctx)
}

func copied[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// queued counts the messages that wait for delivery, by slot.
func (f *Fleet) queued(ctx context.Context) (map[Ref]int, error) {
	out := map[Ref]int{}
	if f.o.Conversations == nil {
		return out, nil
	}
	open, err := f.o.Conversations.Open(ctx)
	if err != nil {
		return nil, err
	}
	for _, entry := range open {
		if entry.Delivery == convo.Queued {
			out[Ref{entry.Cell, entry.Slot}]++
		}
	}
	return out, nil
}

// observed are the slots that have a pane, as the watcher wants them.
func (f *Fleet) observed(in listing) []agent.Slot {
	panes := panesBySlot(in.panes)
	var out []agent.Slot
	for _, s := range in.slots {
		if pane, alive := panes[Ref{s.Cell, s.Number}]; alive {
			out = append(out, f.watched(in.project[s.Cell].told, s, pane))
		}
	}
	return out
}

// engineCell is what an engine needs to know of a cell.
func (f *Fleet) engineCell(ctx context.Context, c state.Cell) engine.Cell {
	config, _, _ := f.o.Projects.Load(ctx, c.ProjectDir)
	return f.engineCellWith(c, config)
}

func (f *Fleet) engineCellWith(c state.Cell, config cfg.CellConfig) engine.Cell {
	return engine.Cell{
		Name: c.Name, Workspace: c.Workspace, WorkspaceHome: f.workspaceHome(c.Workspace),
		ProjectDir: c.ProjectDir, Kind: engine.Kind(c.Engine), Config: config,
	}
}

func (f *Fleet) workspaceHome(workspace string) string {
	return filepath.Join(f.o.Workspaces, workspace)
}

// configOf is a cell's part of what its slots' programs are told.
func (f *Fleet) configOf(ctx context.Context, c state.Cell) cfg.Config {
	config, _, _ := f.o.Projects.Load(ctx, c.ProjectDir)
	return f.configWith(c, config)
}

func (f *Fleet) configWith(c state.Cell, config cfg.CellConfig) cfg.Config {
	out := cfg.Config{
		Workspace: c.Workspace, WorkspaceHome: f.workspaceHome(c.Workspace), Cell: c.Name,
		ProjectDir: c.ProjectDir, Engine: c.Engine, HostUser: f.o.HostUser,
	}
	for _, e := range f.o.Engines {
		if string(e.Kind()) == c.Engine {
			out.Guest = e.Guest(f.engineCellWith(c, config))
		}
	}
	return out
}

// cellAndSlot reads a slot with its cell; what is missing is ErrNotFound.
func (f *Fleet) cellAndSlot(ctx context.Context, r Ref) (state.Cell, state.Slot, error) {
	c, err := f.cell(ctx, r.Cell)
	if err != nil {
		return state.Cell{}, state.Slot{}, err
	}
	s, err := f.o.Store.Slot(ctx, r.Cell, r.Slot)
	if errors.Is(err, state.ErrNoSlot) {
		return state.Cell{}, state.Slot{}, fmt.Errorf("slot %s: %w", r, ErrNotFound)
	}
	return c, s, err
}

func (f *Fleet) cell(ctx context.Context, name string) (state.Cell, error) {
	c, err := f.o.Store.Cell(ctx, name)
	if errors.Is(err, state.ErrNoCell) {
		return state.Cell{}, fmt.Errorf("cell %q: %w", name, ErrNotFound)
	}
	return c, err
}
