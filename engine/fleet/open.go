package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cellmux/cell/state"
	"cellmux/engine"
	"cellmux/engine/tmux"
)

// validWorkspace keeps a workspace's home below the directory of workspaces: its
// name may come from a project's file.
var validWorkspace = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// NewCell makes a cell and returns its name. Nothing is started.
func (f *Fleet) NewCell(ctx context.Context, n NewCell) (string, error) {
	dir, err := realDir(n.ProjectDir)
	if err != nil {
		return "", fmt.Errorf("make a cell: %w", err)
	}
	config, _, _ := f.o.Projects.Load(ctx, dir)
	chosen, err := engine.Select(ctx, engine.Choice{
		EngineFlag: n.Engine, OSFlag: n.OS, ConfigEngine: config.Cell.Engine, ConfigOS: config.Cell.OS,
		Agent: cmp.Or(n.Agent, config.Cell.DefaultCommand, f.firstAgent()),
	}, f.probe)
	if err != nil {
		return "", fmt.Errorf("make a cell of %s: %w", dir, err)
	}
	workspace := DefaultWorkspace
	for _, w := range []string{config.Cell.Workspace, n.Workspace} {
		if w != "" {
			workspace = w
		}
	}
	if !validWorkspace.MatchString(workspace) {
		return "", fmt.Errorf("make a cell of %s: the workspace name %q must be of a-z, 0-9 and dashes", dir, workspace)
	}
	made, err := f.o.Store.CreateCell(ctx, state.Cell{
		Name: n.Name, Title: n.Title, Workspace: workspace, ProjectDir: dir,
		Engine: string(chosen.Kind), EngineReason: chosen.Reason,
	})
	if err != nil {
		return "", f.did("make a cell of "+dir, err)
	}
	return made.Name, f.did("make the cell "+made.Name, nil)
}

// firstAgent is what the first pane of a cell runs when nobody says it: the first
// agent that is found here, else the first one, which a guest may have.
func (f *Fleet) firstAgent() string {
	first := ""
	for _, name := range f.agentNames() {
		if a, _ := f.o.Agents.Lookup(name); !a.TakesMessages() {
			continue
		}
		if _, err := f.find(name); err == nil {
			return name
		}
		first = cmp.Or(first, name)
	}
	return first
}

// probe asks an engine whether it can carry a cell here.
func (f *Fleet) probe(ctx context.Context, kind engine.Kind) engine.Availability {
	for _, e := range f.o.Engines {
		if e.Kind() == kind {
			return e.Probe(ctx)
		}
	}
	return engine.Availability{Reason: "this cellmux has no such engine"}
}

// Open opens a new slot with an agent and returns it; agent "" is the cell's
// default command, else the first agent found, else a shell. The offered cell
// is made first. On failure no slot is left behind.
func (f *Fleet) Open(ctx context.Context, cell, agent string) (Ref, error) {
	c, err := f.cell(ctx, cell)
	if errors.Is(err, ErrNotFound) {
		c, err = f.takeOffer(ctx, cell, err)
	}
	if err != nil {
		return Ref{}, err
	}
	name, program, err := f.pick(ctx, c, agent)
	if err != nil {
		return Ref{}, err
	}
	release, err := f.holdGuest(ctx, c)
	if err != nil {
		return Ref{}, err
	}
	defer release()
	s, err := f.o.Store.CreateSlot(ctx, state.Slot{Cell: c.Name, Agent: name})
	if err != nil {
		return Ref{}, err
	}
	ref := Ref{Cell: c.Name, Slot: s.Number}
	var notes []string
	if agent == "" && name == shellAgent {
		notes = f.howToGetAnAgent()
	}
	if err := f.start(ctx, c, s, program, notes...); err != nil {
		// The caller may have given up; what it asked for must still go away.
		cleanup := context.WithoutCancel(ctx)
		return Ref{}, f.did(fmt.Sprintf("open %s in %s", name, c.Name), errors.Join(err, f.o.Store.DeleteSlot(cleanup, ref.Cell, ref.Slot)))
	}
	return ref, f.did(fmt.Sprintf("open %s in %s", name, ref), nil)
}

// shellAgent is what is opened where no agent was found.
const shellAgent = "shell"

// howToGetAnAgent is what stands beside a shell that was opened for want of an
// agent.
func (f *Fleet) howToGetAnAgent() []string {
	for _, name := range f.agentNames() {
		a, _ := f.o.Agents.Lookup(name)
		if a.TakesMessages() && a.Install() != "" {
			return []string{fmt.Sprintf("No agent was found on PATH. To get %s: %s", a.Title(), a.Install())}
		}
	}
	return nil
}

// takeOffer makes the offered cell when that is what was named.
func (f *Fleet) takeOffer(ctx context.Context, name string, notFound error) (state.Cell, error) {
	cells, err := f.o.Store.Cells(ctx)
	if err != nil {
		return state.Cell{}, err
	}
	offer := f.offered(ctx, cells)
	if offer == nil || offer.Name != name {
		return state.Cell{}, notFound
	}
	made, err := f.NewCell(ctx, NewCell{ProjectDir: offer.ProjectDir})
	if err != nil {
		return state.Cell{}, err
	}
	return f.cell(ctx, made)
}

// pick says which agent runs in a new slot, and where its program is.
func (f *Fleet) pick(ctx context.Context, c state.Cell, agent string) (name, program string, err error) {
	if agent == "" {
		config, _, _ := f.o.Projects.Load(ctx, c.ProjectDir)
		agent = config.Cell.DefaultCommand
	}
	for _, candidate := range f.agentNames() {
		if agent != "" && agent != candidate {
			continue
		}
		path, err := f.findFor(ctx, c, candidate)
		switch {
		case err == nil:
			return candidate, path, nil
		case agent != "":
			return "", "", fmt.Errorf("open %s in %s: %w", agent, c.Name, err)
		}
	}
	if agent == "" {
		return "", "", errors.New("no agent and no shell was found on PATH")
	}
	return "", "", fmt.Errorf("open %s in %s: no agent has that name; the agents are %s, and config.toml declares others ([agents.custom.NAME])",
		agent, c.Name, strings.Join(f.agentNames(), ", "))
}

// agentNames are the agents in the order in which they are offered; the shell
// stays last unless it is named.
func (f *Fleet) agentNames() []string {
	var names []string
	for _, name := range append(slices.Clone(f.o.Order), f.o.Agents.Names()...) {
		if _, known := f.o.Agents.Lookup(name); known && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// findFor is find for a cell. What a guest has installed is known inside alone:
// there every agent counts as found, by its own name, unless the image is ours and
// its modules name others.
func (f *Fleet) findFor(ctx context.Context, c state.Cell, name string) (string, error) {
	a, known := f.o.Agents.Lookup(name)
	if !known || c.Engine == string(engine.Host) {
		return f.find(name)
	}
	config, _, _ := f.o.Projects.Load(ctx, c.ProjectDir)
	if !a.TakesMessages() || config.Cell.Image != "" {
		return "", nil
	}
	held := slices.DeleteFunc(slices.Clone(config.Cell.Modules), func(module string) bool {
		other, known := f.o.Agents.Lookup(module)
		return !known || !other.TakesMessages()
	})
	if len(held) > 0 && !slices.Contains(held, name) {
		return "", fmt.Errorf("the image of %s holds %s and not %s: add it to [cell] modules, then cellmux image build %s", c.Name, strings.Join(held, ", "), name, c.Name)
	}
	return "", nil
}

// find looks for an agent's program; its error says how to get it. A shell with
// no program of its own is what the user's SHELL says.
func (f *Fleet) find(name string) (string, error) {
	a, known := f.o.Agents.Lookup(name)
	if !known {
		return "", fmt.Errorf("no agent is called %q; the agents are %s", name, strings.Join(f.o.Agents.Names(), ", "))
	}
	if path, found := a.Find(f.o.LookPath); found {
		return path, nil
	}
	if !a.TakesMessages() {
		return "", nil
	}
	if how := a.Install(); how != "" {
		return "", fmt.Errorf("%s was not found on PATH; install it with: %s", a.Title(), how)
	}
	return "", fmt.Errorf("%s was not found on PATH", a.Title())
}

// Agents are the choices of the agent menu, in the order in which they are
// offered: the first that is found is what Open takes for "".
func (f *Fleet) Agents(ctx context.Context, cell string) ([]AgentChoice, error) {
	var out []AgentChoice
	c, err := f.cell(ctx, cell)
	if err != nil {
		c = state.Cell{Engine: string(engine.Host)} // the offered one, or none yet
	}
	for _, name := range f.agentNames() {
		choice := AgentChoice{Name: name, Found: true}
		if _, err := f.findFor(ctx, c, name); err != nil {
			choice.Found, choice.Reason = false, err.Error()
		}
		out = append(out, choice)
	}
	return out, nil
}

// start starts the program of a slot that nothing runs in, in a pane. notes are
// kept beside those of the launch.
func (f *Fleet) start(ctx context.Context, c state.Cell, s state.Slot, program string, notes ...string) error {
	held, err := f.hold(ctx, Ref{s.Cell, s.Number})
	if err != nil {
		return err
	}
	defer held.Release()
	return f.startHeld(ctx, c, s, program, notes...)
}

// startHeld is start for a caller that holds the slot.
func (f *Fleet) startHeld(ctx context.Context, c state.Cell, s state.Slot, program string, notes ...string) error {
	if problem := f.lookAt(ctx, c).problem; problem != "" {
		return errors.New(problem)
	}
	s, err := f.resumable(ctx, c, s)
	if err != nil {
		return err
	}
	trusted, _, err := f.o.Store.DirectoryTrust(ctx, c.ProjectDir)
	if err != nil {
		return err
	}
	working, progress, done := f.work.begin(ctx, c.Name, "making "+c.Name+" ready", f.o.Now(), f.poke)
	opened, err := f.o.Opener.Open(working, engine.OpenRequest{
		Cell: f.engineCell(ctx, c), Slot: s.Number, Agent: s.Agent, BoundID: s.AgentSession, Program: program,
		Review: s.Review, Trusted: trusted, Prompts: f.o.Prompts, Progress: progress,
	})
	done()
	f.carriers.ready(c.Name, err)
	if err != nil {
		return err
	}
	// The pane is open: what is not kept of it is missing from the Info tab.
	if err := f.o.Store.SetNotes(ctx, s.Cell, s.Number, append(slices.Clone(opened.Notes), notes...)); err != nil {
		f.o.Log.Warn("the notes of a launch were not kept", "slot", Ref{s.Cell, s.Number}.String(), "error", err.Error())
	}
	if opened.Plan.Session != "" && opened.Plan.Session != s.SessionID {
		return f.o.Store.SetAgentSession(ctx, s.Cell, s.Number, opened.Plan.Session)
	}
	return nil
}

// Restart starts a slot's program again, in its conversation. What still runs
// in the slot is ended first, but for what another process has started while
// this one waited for it.
func (f *Fleet) Restart(ctx context.Context, r Ref) error {
	return f.did("restart "+r.String(), f.restart(ctx, r))
}

// Resume starts a slot's program in its conversation where nothing runs, and
// leaves what runs as it is. started says which.
func (f *Fleet) Resume(ctx context.Context, r Ref) (started bool, err error) {
	started, err = f.again(ctx, r, func(tmux.Pane) bool { return false })
	if !started && err == nil {
		return false, nil
	}
	return started, f.did("resume "+r.String(), err)
}

func (f *Fleet) restart(ctx context.Context, r Ref) error {
	before, wasLive, err := f.live(ctx, r)
	if err != nil {
		return fmt.Errorf("restart %s: %w; nothing was changed", r, err)
	}
	_, err = f.again(ctx, r, func(p tmux.Pane) bool { return wasLive && p.ID == before.ID })
	return err
}

// again starts a slot's program, one process at a time. A live pane is ended
// first where end says so, else nothing is started.
func (f *Fleet) again(ctx context.Context, r Ref, end func(tmux.Pane) bool) (started bool, err error) {
	c, s, err := f.cellAndSlot(ctx, r)
	if err != nil {
		return false, err
	}
	path, err := f.findFor(ctx, c, s.Agent)
	if err != nil {
		return false, fmt.Errorf("restart %s: %w", r, err)
	}
	if problem := f.lookAt(ctx, c).problem; problem != "" {
		return false, fmt.Errorf("restart %s: %s", r, problem)
	}
	held, err := f.hold(ctx, r)
	if err != nil {
		return false, err
	}
	defer held.Release()
	pane, live, err := f.live(ctx, r)
	if err != nil {
		return false, fmt.Errorf("restart %s: %w; nothing was changed", r, err)
	}
	if live && !end(pane) {
		return false, nil
	}
	release, err := f.holdGuest(ctx, c)
	if err != nil {
		return false, err
	}
	defer release()
	if err := f.endPanes(ctx, r); err != nil {
		return false, err
	}
	if f.carriers.of(c.Name).Restart != "" {
		// What has changed takes effect when the guest comes up; others may be in it.
		if err := f.restNow(ctx, c); err != nil {
			return false, err
		}
	}
	// Its conversation may be another by now.
	if c, s, err = f.cellAndSlot(ctx, r); err != nil {
		return false, err
	}
	if err := f.startHeld(ctx, c, s, path); err != nil {
		return false, err
	}
	return true, f.o.Store.SetStopped(ctx, r.Cell, r.Slot, false)
}

// endPanes ends the panes of a slot, or of a whole cell. Without an answer from
// tmux nothing is ended and nothing may be concluded.
func (f *Fleet) endPanes(ctx context.Context, r Ref) error {
	list := f.o.Server.Refresh(ctx)
	if !list.Known {
		return fmt.Errorf("end what runs in %s: tmux is %w (%s); nothing was changed", r, ErrUnavailable, list.Err)
	}
	for _, p := range panesOf(list, r) {
		if err := f.o.Server.Kill(ctx, p.ID); err != nil {
			return fmt.Errorf("end what runs in %s: %w", r, err)
		}
	}
	if r.Slot == WholeCell {
		return nil // its guest goes down whole
	}
	c, err := f.cell(ctx, r.Cell)
	if err != nil {
		return err
	}
	return f.o.Opener.End(ctx, f.engineCell(ctx, c), r.Slot)
}

func isLive(p tmux.Pane) bool { return !p.Dead }

func panesOf(list tmux.List, r Ref) []tmux.Pane {
	var out []tmux.Pane
	for _, p := range list.Panes {
		if p.Cell == r.Cell && p.Cell != "" && p.Slot >= 0 && (r.Slot == WholeCell || p.Slot == r.Slot) {
			out = append(out, p)
		}
	}
	return out
}
