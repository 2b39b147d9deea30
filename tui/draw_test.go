package tui

import (
	"errors"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
)

// frameCount counts the frames that it is given.
type frameCount struct{ shown, repainted int }

func (c *frameCount) Show(string) { c.shown++ }
func (c *frameCount) Repaint()    { c.repainted++ }

func TestWhatChangesNothingMakesNoFrame(t *testing.T) {
	m, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	frames, more := &frameCount{}, false
	d := drawn{Model: m, frames: frames, more: func() bool { return more }}
	made := func(message tea.Msg) int {
		before := frames.shown
		next, _ := d.Update(message)
		d = next.(drawn)
		if d.View() != "" {
			t.Fatal("Bubble Tea got something to draw")
		}
		return frames.shown - before
	}
	screen := func(text string) captured {
		m.preview.pane, m.preview.inFlight = "%1", 1
		return captured{generation: m.preview.generation, screen: fleet.Screen{Rows: []string{text}}, started: time.Now()}
	}
	stale := screen("old")
	stale.generation--
	for _, step := range []struct {
		what    string
		message tea.Msg
		want    int
	}{
		{"the size", tea.WindowSizeMsg{Width: 100, Height: 30}, 0}, // there is no list
		{"a list that is late", listLate{}, 1},
		{"a first look at the pane", screen("one"), 1},
		{"a look that shows the same", screen("one"), 0},
		{"the time for another look", captureDue{m.preview.generation}, 0},
		{"a look that comes too late", stale, 0},
		{"a look that shows something else", screen("two"), 1},
		{"a key", tea.KeyMsg{Type: tea.KeyDown}, 1},
		{"the clock", clockTicked{m.clock}, 1},
	} {
		if got := made(step.message); got != step.want {
			t.Errorf("%s made %d frames, want %d", step.what, got, step.want)
		}
	}
	if frames.repainted != 1 {
		t.Errorf("one resize was drawn anew %d times", frames.repainted)
	}
	more = true
	if got := made(tea.KeyMsg{Type: tea.KeyDown}); got != 0 {
		t.Errorf("a key before another made %d frames", got)
	}
	more = false
	if got := made(tea.KeyMsg{Type: tea.KeyDown}); got != 1 {
		t.Errorf("the last key made %d frames", got)
	}
}

// Nothing but the clock draws at rest: it must come when the message line's text
// has had its time.
func TestAMessageGoesByItself(t *testing.T) {
	m, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := m.clock
	m.Update(foregroundReady{err: errors.New("no such pane")})
	if m.clock == before {
		t.Error("a message set no clock")
	}
}
