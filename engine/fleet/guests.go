package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cellmux/cell/lock"
	"cellmux/cell/state"
	"cellmux/engine"
	"cellmux/engine/docker"
)

// GuestState tells whether what carries a cell, such as its container, is there.
type GuestState string

// The states. The zero value is a cell that needs no guest, or that nobody has
// looked at yet.
const (
	GuestUp      GuestState = "up"
	GuestDown    GuestState = "down"    // it is there and does not run
	GuestPaused  GuestState = "paused"  // stopped in its tracks
	GuestMissing GuestState = "missing" // not made yet, or removed
	GuestUnknown GuestState = "unknown" // its engine gives no answer
)

// Guest is the state of what carries a cell.
type Guest struct {
	State   GuestState
	Word    string // what is wrong, in a word or two: "no docker", "disk full"; "" nothing is
	Trouble string // the same as a sentence, with the next step
	Restart string // what of the configuration the guest does not have yet; "" nothing
}

// carriers keeps what is known of the cells' guests. Engines are asked once for
// all their cells, by one goroutine, on the way to nothing that a user waits for.
type carriers struct {
	wake chan struct{} // holds one

	mu     sync.Mutex
	known  map[string]Guest // by cell
	failed map[string]error // by cell: why its guest could not be made ready the last time
	live   map[string]bool  // cells that had a live pane when the list was last looked at
	looked bool             // at a list of tmux's
}

func (g *carriers) of(cell string) Guest {
	g.mu.Lock()
	defer g.mu.Unlock()
	guest := g.known[cell]
	if err := g.failed[cell]; err != nil && guest.Trouble == "" && guest.State != GuestUp {
		guest.Word, guest.Trouble = wordFor(err), oneSentence(err)
	}
	return guest
}

func (g *carriers) ask() {
	select {
	case g.wake <- struct{}{}:
	default: // somebody is about to look
	}
}

// ready notes whether a guest could be made ready.
func (g *carriers) ready(cell string, err error) {
	g.mu.Lock()
	if err == nil {
		delete(g.failed, cell)
	} else if !errors.Is(err, context.Canceled) {
		g.failed[cell] = err
	}
	g.mu.Unlock()
	g.ask()
}

// wordFor is what went wrong in a word or two, for a column of the list.
func wordFor(err error) string {
	for _, w := range []struct {
		err  error
		word string
	}{
		{docker.ErrNotInstalled, "no docker"}, {docker.ErrNoDaemon, "no docker"}, {docker.ErrNoAnswer, "no answer"},
		{docker.ErrRemote, "remote"}, {docker.ErrNoImage, "no image"}, {docker.ErrDiskFull, "disk full"},
		{docker.ErrPortTaken, "port taken"},
	} {
		if errors.Is(err, w.err) {
			return w.word
		}
	}
	return "failed"
}

func oneSentence(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// watchGuests looks at the guests whenever it is asked to, until ctx ends.
func (f *Fleet) watchGuests(ctx context.Context) {
	if !after(ctx, probesAfter) {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.carriers.wake:
		}
		if err := f.readGuests(ctx); err != nil && ctx.Err() == nil {
			f.o.Log.Warn("guests", "error", err.Error())
		}
	}
}

// readGuests asks each engine that has cells for all its guests.
func (f *Fleet) readGuests(ctx context.Context) error {
	cells, err := f.o.Store.Cells(ctx)
	if err != nil {
		return err
	}
	known := map[string]Guest{}
	for _, e := range f.o.Engines {
		of := slices.DeleteFunc(slices.Clone(cells), func(c state.Cell) bool { return c.Engine != string(e.Kind()) })
		if len(of) == 0 || !e.Guest(f.engineCell(ctx, of[0])).Isolated {
			continue
		}
		all, err := e.Instances(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		instances := make(map[string]engine.Instance, len(all))
		for _, i := range all {
			instances[i.Cell] = i
		}
		for _, c := range of {
			if err != nil {
				known[c.Name] = Guest{State: GuestUnknown, Word: wordFor(err), Trouble: oneSentence(err)}
				continue
			}
			i, there := instances[c.Name]
			known[c.Name] = f.guest(ctx, e, c, i, there)
		}
	}
	f.carriers.mu.Lock()
	changed := !sameGuests(f.carriers.known, known)
	f.carriers.known = known
	f.carriers.mu.Unlock()
	if changed {
		f.poke()
	}
	return nil
}

func sameGuests(a, b map[string]Guest) bool {
	if len(a) != len(b) {
		return false
	}
	for name, guest := range a {
		if other, has := b[name]; !has || other != guest {
			return false
		}
	}
	return true
}

func (f *Fleet) guest(ctx context.Context, e engine.Engine, c state.Cell, i engine.Instance, there bool) Guest {
	guest := Guest{State: GuestDown}
	switch {
	case !there:
		return Guest{State: GuestMissing}
	case i.Running:
		guest.State = GuestUp
	case i.Paused:
		guest.State = GuestPaused
		guest.Word = "paused"
		guest.Trouble = "its guest was paused from outside (" + i.Detail + "): the next pane lets it go on"
	}
	if drifter, can := e.(engine.Drifter); can && i.Running {
		changes, err := drifter.Drift(ctx, f.engineCell(ctx, c), i)
		if err != nil {
			guest.Word, guest.Trouble = wordFor(err), oneSentence(err)
		}
		guest.Restart = strings.Join(changes, "; ")
	}
	return guest
}

// guestFacts are a guest's lines of the Info tab, read now.
func (f *Fleet) guestFacts(ctx context.Context, c state.Cell) []Fact {
	if !f.configOf(ctx, c).Guest.Isolated {
		return nil
	}
	if err := f.readGuests(ctx); err != nil {
		return nil // the list says so
	}
	guest := f.carriers.of(c.Name)
	words := map[GuestState]string{
		GuestUp: "up", GuestDown: "stopped; the next pane starts it", GuestPaused: "paused",
		GuestMissing: "not there; the next pane makes it", GuestUnknown: "unknown",
	}
	facts := []Fact{{"Guest", join2(words[guest.State], guest.Trouble)}}
	if guest.Restart != "" {
		facts = append(facts, Fact{"Restart to apply", guest.Restart})
	}
	return facts
}

// settle looks at what a new list means for guests: they are read when panes came
// or went, and one whose last pane has ended by itself goes down. So does one that
// ran on without a pane, and without a cellmux, when the first list comes.
func (f *Fleet) settle(snap Snapshot) {
	if snap.Server != "" {
		return // nothing is concluded from a missing answer
	}
	live := map[string]bool{}
	var ended []string
	g := &f.carriers
	g.mu.Lock()
	first := !g.looked
	g.looked = true
	changed := first
	for _, c := range snap.Cells {
		if c.Offered {
			continue
		}
		if slices.ContainsFunc(c.Slots, func(s Slot) bool { return s.Pane != "" && s.Status != Dead }) {
			live[c.Name] = true
		}
		if live[c.Name] != g.live[c.Name] {
			changed = true
		}
		if !live[c.Name] && (first || g.live[c.Name]) {
			ended = append(ended, c.Name)
		}
	}
	g.live = live
	g.mu.Unlock()
	if changed {
		g.ask()
	}
	if len(ended) > 0 {
		f.background.start(func(ctx context.Context) {
			if first && !after(ctx, probesAfter) || f.readGuests(ctx) != nil {
				return
			}
			for _, cell := range ended {
				if f.carriers.of(cell).State == GuestUp {
					f.restQuietly(ctx, cell)
				}
			}
			g.ask()
		})
	}
}

// holdGuest keeps a cell's guest from being taken down for want of panes, by this or
// another cellmux, while a pane is on its way into it.
func (f *Fleet) holdGuest(ctx context.Context, c state.Cell) (release func(), err error) {
	if !f.configOf(ctx, c).Guest.Isolated {
		return func() {}, nil
	}
	held, err := lock.Wait(ctx, f.restLock(c.Name))
	if err != nil {
		return nil, fmt.Errorf("start something in cell %s: %w", c.Name, err)
	}
	return held.Release, nil
}

func (f *Fleet) restLock(cell string) string {
	return filepath.Join(filepath.Dir(f.o.Store.Path()), "locks", "guest-"+cell)
}

// rest takes a cell's guest down when its last pane has ended, nothing else runs
// in it, and nothing is on its way into it. [cell] background keeps it up.
func (f *Fleet) rest(ctx context.Context, name string) error {
	c, err := f.cell(ctx, name)
	if err != nil {
		return err
	}
	if f.configOf(ctx, c).Guest.Isolated {
		held, err := lock.Try(f.restLock(name))
		if errors.Is(err, lock.ErrHeld) {
			return nil // a pane is about to come
		}
		if err != nil {
			return err
		}
		defer held.Release()
	}
	return f.restNow(ctx, c)
}

// restQuietly is rest where nobody waits for it: a guest that idles harms nobody.
func (f *Fleet) restQuietly(ctx context.Context, cell string) {
	if err := f.rest(ctx, cell); err != nil && ctx.Err() == nil {
		f.o.Log.Warn("an idle guest stays up", "cell", cell, "error", err.Error())
	}
}

// restNow is rest for who holds the cell.
func (f *Fleet) restNow(ctx context.Context, c state.Cell) error {
	config, _, _ := f.o.Projects.Load(ctx, c.ProjectDir)
	if config.Cell.Background {
		return nil
	}
	for _, e := range f.o.Engines {
		idler, can := e.(engine.Idler)
		if !can || string(e.Kind()) != c.Engine {
			continue
		}
		list := f.o.Server.Refresh(ctx)
		live := slices.ContainsFunc(panesOf(list, Ref{Cell: c.Name, Slot: WholeCell}), isLive)
		if !list.Known || live {
			return nil
		}
		down, err := idler.DownIfIdle(ctx, f.engineCell(ctx, c))
		if down || err != nil {
			f.carriers.ask()
			return f.did("take the idle guest of "+c.Name+" down", err)
		}
		return nil
	}
	return nil
}
