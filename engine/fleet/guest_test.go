package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"cellmux/cell/lock"
	"cellmux/cell/state"
	"cellmux/engine/docker"
	"cellmux/engine/tmux"
	"cellmux/shellctx/convo"

	"cellmux/engine"
	"cellmux/engine/enginetest"
)

// guestEngine is a fake that can tell drift and rest, and fail.
type guestEngine struct {
	*enginetest.Fake

	mu     sync.Mutex
	drift  []string
	silent error           // what Instances answers
	paused map[string]bool // by cell
	rested chan string     // cells that were taken down
	slow   chan struct{}   // DownIfIdle takes until it is closed

	removed   []string // cells
	removeErr error
}

func (g *guestEngine) Remove(_ context.Context, c engine.Cell) error {
	if g.removeErr == nil {
		g.removed = append(g.removed, c.Name)
	}
	return g.removeErr
}

func (g *guestEngine) Drift(_ context.Context, _ engine.Cell, i engine.Instance) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !i.Running {
		return nil, errors.New("it does not run")
	}
	return g.drift, nil
}

func (g *guestEngine) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

func (g *guestEngine) Instances(ctx context.Context) ([]engine.Instance, error) {
	all, err := g.Fake.Instances(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range all {
		if g.paused[all[i].Cell] {
			all[i].Running, all[i].Paused, all[i].Detail = false, true, "Up 2 hours (Paused)"
		}
	}
	return all, errors.Join(err, g.silent)
}

func (g *guestEngine) DownIfIdle(ctx context.Context, c engine.Cell) (bool, error) {
	g.rested <- c.Name
	g.mu.Lock()
	slow := g.slow
	g.mu.Unlock()
	if slow != nil {
		<-slow
	}
	return true, g.Down(ctx, c)
}

// taken are the cells that were taken down so far.
func (g *guestEngine) taken() (cells []string) {
	for len(g.rested) > 0 {
		cells = append(cells, <-g.rested)
	}
	return cells
}

func guestWorld(t *testing.T) (*world, *guestEngine, string) {
	t.Helper()
	g := &guestEngine{Fake: enginetest.NewFake(), paused: map[string]bool{}, rested: make(chan string, 100)}
	w := newWorld(t, func(o *Options) { o.Engines = append(o.Engines, g) })
	name, err := w.NewCell(t.Context(), NewCell{ProjectDir: w.project, Engine: "docker"})
	if err != nil {
		t.Fatal(err)
	}
	return w, g, name
}

// What a guest has installed is not on the host's PATH.
func TestAGuestsAgentNeedsNoProgramOnTheHost(t *testing.T) {
	w, _, cell := guestWorld(t)
	if _, err := w.Open(t.Context(), cell, "codex"); err != nil {
		t.Errorf("Open: %v", err)
	}
	choices, err := w.Agents(t.Context(), cell)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range choices {
		if !c.Found {
			t.Errorf("%s is not offered: %s", c.Name, c.Reason)
		}
	}
}

// An image of ours holds the agents that its modules name.
func TestFirstAgentOfAGuestIsOneThatItsImageHolds(t *testing.T) {
	w, _, cell := guestWorld(t)
	w.files.config.Cell.Modules = []string{"go", "codex"}
	ref, err := w.Open(t.Context(), cell, "")
	if err != nil {
		t.Fatal(err)
	}
	if s := w.slot(t, ref); s.Agent != "codex" {
		t.Errorf("%s was opened", s.Agent)
	}
	if _, err := w.Open(t.Context(), cell, "claude"); err == nil || !strings.Contains(err.Error(), "holds codex and not claude") {
		t.Errorf("an agent that is not in it: %v", err)
	}
	if _, err := w.Open(t.Context(), cell, "shell"); err != nil {
		t.Errorf("a shell is in every image: %v", err)
	}
	w.files.config.Cell.Image = "somebody/else:1" // what that holds nobody knows
	if _, err := w.Open(t.Context(), cell, "claude"); err != nil {
		t.Errorf("an image of somebody else's: %v", err)
	}
}

// auto weighs by the agent that the first pane will run: the one that is said,
// that of the project's file, else the first that is found.
func TestAutoWeighsByTheAgentOfTheFirstPane(t *testing.T) {
	for _, c := range []struct {
		said, file, want string
		order            []string
	}{
		{"", "", "docker", nil},
		{"codex", "", "docker", nil},
		{"shell", "", "host", nil},
		{"shell", "claude", "host", nil},
		{"", "claude --model x", "docker", nil},
		{"", "make watch", "host", nil},
		{"", "", "docker", []string{"shell"}}, // a shell is what one gets without an agent, and no agent
	} {
		w, _, _ := guestWorld(t)
		w.o.Order, w.files.config.Cell.DefaultCommand = c.order, c.file
		name, err := w.NewCell(t.Context(), NewCell{ProjectDir: w.project, Engine: "auto", Agent: c.said})
		if err != nil {
			t.Fatal(err)
		}
		made, err := w.cell(t.Context(), name)
		if err != nil || made.Engine != c.want || !strings.HasPrefix(made.EngineReason, "auto: ") {
			t.Errorf("%+v: %s (%s), %v", c, made.Engine, made.EngineReason, err)
		}
	}
	// Without a daemon the same cell is the host's, and the reason says why.
	w, g, _ := guestWorld(t)
	g.Answer = engine.Availability{Reason: "docker is not running"}
	name, err := w.NewCell(t.Context(), NewCell{ProjectDir: w.project, Engine: "auto"})
	if err != nil {
		t.Fatal(err)
	}
	if made, _ := w.cell(t.Context(), name); made.Engine != "host" || !strings.Contains(made.EngineReason, "docker is not running") {
		t.Errorf("without a daemon: %s (%s)", made.Engine, made.EngineReason)
	}
}

// Ending a pane ends its client alone: what ran inside is ended, too, and the
// guest rests after its last pane.
func TestStopReachesIntoTheGuest(t *testing.T) {
	w, g, cell := guestWorld(t)
	first, second := w.shell(t, cell), w.shell(t, cell)
	if err := w.Stop(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if taken := g.taken(); !slices.Equal(w.opener.ended, []Ref{first}) || taken != nil {
		t.Errorf("ended %v, rested %q under a pane", w.opener.ended, taken)
	}
	if err := w.Stop(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if taken := g.taken(); !slices.Equal(w.opener.ended, []Ref{first, second}) || !slices.Equal(taken, []string{cell}) {
		t.Errorf("ended %v, rested %q", w.opener.ended, taken)
	}
}

func TestInfoSaysWhatWaitsForARestart(t *testing.T) {
	w, g, cell := guestWorld(t)
	g.drift = []string{"memory: 4g, now 8g"}
	up(t, w, g, cell)
	facts, err := w.Info(t.Context(), Ref{Cell: cell, Slot: WholeCell})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(facts, Fact{"Restart to apply", "memory: 4g, now 8g"}) {
		t.Errorf("the facts are %v", facts)
	}
}

// up makes a cell's guest run, as a pane's opening does.
func up(t *testing.T, w *world, g *guestEngine, cell string) {
	t.Helper()
	c, err := w.cell(t.Context(), cell)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Up(t.Context(), w.engineCell(t.Context(), c), nil); err != nil {
		t.Fatal(err)
	}
}

// shell opens a shell in a cell.
func (w *world) shell(t *testing.T, cell string) Ref {
	t.Helper()
	ref, err := w.Open(t.Context(), cell, "shell")
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// running runs the fleet until the test ends.
func (w *world) running(t *testing.T) <-chan Snapshot {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return w.Watch(ctx)
}

func (w *world) die(r Ref) {
	w.server.set(func(l *tmux.List) {
		for i := range l.Panes {
			if l.Panes[i].Cell == r.Cell && l.Panes[i].Slot == r.Slot {
				l.Panes[i].Dead = true
			}
		}
	})
}

func guestIs(want GuestState) func(Snapshot) bool {
	return func(s Snapshot) bool { return s.Cells[0].Guest.State == want }
}

// A guest goes down when its last pane has ended by itself, and never under a
// pane that somebody is in.
func TestGuestGoesDownWhenItsLastPaneEndsByItself(t *testing.T) {
	w, g, cell := guestWorld(t)
	first, second := w.shell(t, cell), w.shell(t, cell)
	up(t, w, g, cell)
	lists := w.running(t)
	waitFor(t, lists, guestIs(GuestUp))
	w.die(first)
	waitFor(t, lists, func(s Snapshot) bool { return s.Cells[0].Slots[0].Status == Dead })
	if taken := g.taken(); taken != nil {
		t.Errorf("%q went down under a pane", taken)
	}
	w.die(second)
	if got := <-g.rested; got != cell {
		t.Errorf("%q went down", got)
	}
	waitFor(t, lists, guestIs(GuestMissing)) // the fake keeps nothing of what is down
	if taken := g.taken(); taken != nil {
		t.Errorf("%q went down once more", taken)
	}
}

// A guest that Stop takes down is told to be down, although it was up when the
// pane went.
func TestListSeesTheGuestThatStopTookDown(t *testing.T) {
	w, g, cell := guestWorld(t)
	ref := w.shell(t, cell)
	up(t, w, g, cell)
	slow := make(chan struct{})
	g.set(func() { g.slow = slow })
	lists := w.running(t)
	waitFor(t, lists, guestIs(GuestUp))
	stopped := make(chan error)
	go func() { stopped <- w.Stop(t.Context(), ref) }()
	<-g.rested
	w.server.set(func(*tmux.List) {}) // the pane is gone, the guest is not yet
	waitFor(t, lists, func(s Snapshot) bool { return s.Cells[0].Slots[0].Pane == "" && s.Cells[0].Guest.State == GuestUp })
	close(slow)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	waitFor(t, lists, guestIs(GuestMissing))
}

// What ran on without a pane while no cellmux looked goes down, too, but not
// before tmux has said that there is no pane.
func TestGuestThatWasLeftWithoutPanesGoesDownWithTheFirstList(t *testing.T) {
	w, g, cell := guestWorld(t)
	if _, err := w.Open(t.Context(), cell, "shell"); err != nil {
		t.Fatal(err)
	}
	up(t, w, g, cell)
	w.server.set(func(l *tmux.List) { l.Known, l.Err = false, "no answer" })
	lists := w.running(t)
	waitFor(t, lists, func(s Snapshot) bool { return s.Server != "" })
	w.Probe(t.Context()) // something else that changes the list
	if taken := g.taken(); taken != nil {
		t.Fatalf("%q went down without an answer from tmux", taken)
	}
	w.server.set(func(l *tmux.List) { l.Known, l.Panes = true, nil })
	if got := <-g.rested; got != cell {
		t.Errorf("%q went down", got)
	}
}

func TestGuestStaysUp(t *testing.T) {
	for what, change := range map[string]func(t *testing.T, w *world, cell string){
		"since the user wants it to": func(_ *testing.T, w *world, _ string) { w.files.config.Cell.Background = true },
		"since a pane is on its way": func(t *testing.T, w *world, cell string) {
			held, err := lock.Try(w.restLock(cell))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(held.Release)
		},
		"since another cellmux has opened a pane": func(_ *testing.T, w *world, cell string) {
			w.server.set(func(l *tmux.List) { l.Panes = append(l.Panes, tmux.Pane{ID: "%77", Cell: cell, Slot: 7}) })
		},
		"since tmux gives no answer": func(_ *testing.T, w *world, _ string) { w.server.set(func(l *tmux.List) { l.Known = false }) },
	} {
		t.Run(what, func(t *testing.T) {
			w, g, cell := guestWorld(t)
			up(t, w, g, cell)
			change(t, w, cell)
			if err := w.rest(t.Context(), cell); err != nil {
				t.Fatal(err)
			}
			if taken := g.taken(); taken != nil {
				t.Errorf("%q went down", taken)
			}
		})
	}
}

// Two openings of one cell wait for each other, and rest for none.
func TestOpeningHoldsTheGuest(t *testing.T) {
	w, _, cell := guestWorld(t)
	c, err := w.cell(t.Context(), cell)
	if err != nil {
		t.Fatal(err)
	}
	release, err := w.holdGuest(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Open(ctx, cell, "shell"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second opening: %v", err)
	}
	release()
	if _, err := w.Open(t.Context(), cell, "shell"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestListTellsTheStateOfAGuest(t *testing.T) {
	w, g, cell := guestWorld(t)
	if _, err := w.Open(t.Context(), cell, "shell"); err != nil {
		t.Fatal(err)
	}
	look := func() Guest {
		t.Helper()
		if err := w.readGuests(t.Context()); err != nil {
			t.Fatal(err)
		}
		snap, err := w.Refresh(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return snap.Cells[0].Guest
	}
	check := func(what string, state GuestState, word, trouble, restart string) {
		t.Helper()
		got := look()
		if got.State != state || got.Word != word || !strings.Contains(got.Trouble, trouble) || (trouble == "") != (got.Trouble == "") || got.Restart != restart {
			t.Errorf("%s: %+v", what, got)
		}
	}
	check("not made", GuestMissing, "", "", "")
	up(t, w, g, cell)
	check("running", GuestUp, "", "", "")
	g.set(func() { g.drift = []string{"memory: 4g, now 8g", "ports: none, now 80"} })
	check("changed", GuestUp, "", "", "memory: 4g, now 8g; ports: none, now 80")
	g.set(func() { g.paused[cell] = true })
	check("paused", GuestPaused, "paused", "the next pane lets it go on", "")
	for _, c := range []struct {
		err  error
		word string
	}{
		{docker.ErrNoDaemon, "no docker"}, {docker.ErrNotInstalled, "no docker"}, {docker.ErrNoAnswer, "no answer"}, {docker.ErrRemote, "remote"},
	} {
		g.set(func() { g.silent = fmt.Errorf("list the containers: %w: do this next", c.err) })
		check(c.word, GuestUnknown, c.word, "do this next", "")
	}
	g.set(func() { g.silent, g.paused = nil, map[string]bool{} })
	if err := g.Down(t.Context(), engine.Cell{Name: cell}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		word string
	}{
		{docker.ErrDiskFull, "disk full"}, {docker.ErrNoImage, "no image"}, {docker.ErrPortTaken, "port taken"}, {errors.New("else"), "failed"},
	} {
		w.opener.err = fmt.Errorf("make cell %s ready: %w: do this next", cell, c.err)
		if _, err := w.Open(t.Context(), cell, "shell"); err == nil {
			t.Fatal("opened")
		}
		check(c.word, GuestMissing, c.word, "do this next", "")
	}
	w.opener.err = nil
	if _, err := w.Open(t.Context(), cell, "shell"); err != nil {
		t.Fatal(err)
	}
	check("once it opened", GuestMissing, "", "", "")
}

// What has changed takes effect with the restart of the only pane; others would
// lose theirs.
func TestRestartAppliesWhatHasChangedUnlessSomebodyElseIsIn(t *testing.T) {
	w, g, cell := guestWorld(t)
	ref := w.shell(t, cell)
	up(t, w, g, cell)
	if err := w.Restart(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if taken := g.taken(); taken != nil {
		t.Errorf("nothing has changed and %q went down", taken)
	}
	g.drift = []string{"memory: 4g, now 8g"}
	if err := w.readGuests(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := w.Open(t.Context(), cell, "shell")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Restart(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if taken := g.taken(); taken != nil {
		t.Errorf("%q went down under another pane", taken)
	}
	w.die(other)
	if err := w.Restart(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if taken := g.taken(); !slices.Equal(taken, []string{cell}) {
		t.Errorf("%q went down", taken)
	}
}

// A turn without a pane needs no program on the host either.
func TestTurnOfAGuestsAgentNeedsNoProgramOnTheHost(t *testing.T) {
	w, _, cell := guestWorld(t)
	s, err := w.db.CreateSlot(t.Context(), state.Slot{Cell: cell, Agent: "codex"})
	if err != nil {
		t.Fatal(err)
	}
	turns := NewTurns(nil, nil, w.o.Agents)
	turns.Of(w.Fleet)
	held, err := lock.Try(w.slotLock(Ref{cell, s.Number})) // ends the turn right after the look for its program
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	_, err = turns.Run(t.Context(), convo.Target{Session: s.SessionID, Cell: cell, Slot: s.Number, Agent: "codex"}, "hello", func(string) {})
	if !errors.Is(err, convo.ErrRefused) || !strings.Contains(err.Error(), "being started") {
		t.Errorf("the turn: %v", err)
	}
}
