package fleet

import (
	"context"
	"slices"
	"testing"

	"cellmux/engine"
	"cellmux/engine/enginetest"
)

// guestEngine is a fake that can tell drift and rest.
type guestEngine struct {
	*enginetest.Fake
	drift  []string
	rested []string
}

func (g *guestEngine) Drift(context.Context, engine.Cell) ([]string, error) { return g.drift, nil }

func (g *guestEngine) DownIfIdle(_ context.Context, c engine.Cell) (bool, error) {
	g.rested = append(g.rested, c.Name)
	return true, nil
}

func guestWorld(t *testing.T) (*world, *guestEngine, string) {
	t.Helper()
	g := &guestEngine{Fake: enginetest.NewFake()}
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

// Ending a pane ends its client alone: what ran inside is ended, too, and the
// guest rests after its last pane.
func TestStopReachesIntoTheGuest(t *testing.T) {
	w, g, cell := guestWorld(t)
	first, err := w.Open(t.Context(), cell, "shell")
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.Open(t.Context(), cell, "shell")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Stop(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.opener.ended, []Ref{first}) || len(g.rested) != 0 {
		t.Errorf("ended %v, rested %q under a pane", w.opener.ended, g.rested)
	}
	if err := w.Stop(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.opener.ended, []Ref{first, second}) || !slices.Equal(g.rested, []string{cell}) {
		t.Errorf("ended %v, rested %q", w.opener.ended, g.rested)
	}
}

func TestInfoSaysWhatWaitsForARestart(t *testing.T) {
	w, g, cell := guestWorld(t)
	g.drift = []string{"memory: 4g, now 8g"}
	facts, err := w.Info(t.Context(), Ref{Cell: cell, Slot: WholeCell})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(facts, Fact{"Restart to apply", "memory: 4g, now 8g"}) {
		t.Errorf("the facts are %v", facts)
	}
}
