package tui_test

import (
	"fmt"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
	"cellmux/tui"
	"cellmux/tui/tuitest"
)

// large is a list of 100 cells with 5 panes each.
func large(now time.Time) fleet.Snapshot {
	var s fleet.Snapshot
	for i := range 100 {
		c := fleet.Cell{Name: fmt.Sprintf("cell-%d", i), Title: fmt.Sprintf("cell-%d", i), Engine: "host", Git: "+1-1"}
		for j := range 5 {
			c.Slots = append(c.Slots, fleet.Slot{
				Ref: fleet.Ref{Cell: c.Name, Slot: j}, Agent: "claude", Status: fleet.Running,
				Detail: "running make test", Since: now, Pane: fmt.Sprintf("%%%d", i*5+j),
			})
		}
		s.Cells = append(s.Cells, c)
	}
	return s
}

// BenchmarkKeyToFrame is a press of j and the frame after it, with 500 panes.
func BenchmarkKeyToFrame(b *testing.B) {
	f := tuitest.NewFleet(large)
	f.Begin()
	m, err := tui.New(b.Context(), tui.Options{Ports: f.Ports(), Getenv: func(name string) string {
		return map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8"}[name]
	}})
	if err != nil {
		b.Fatal(err)
	}
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 36})
	m.Update(m.Heard(<-f.Watch(b.Context())))
	down, up := tuitest.Key("j"), tuitest.Key("k")
	b.ResetTimer()
	for i := range b.N {
		if i/400%2 == 0 {
			m.Update(down)
		} else {
			m.Update(up)
		}
		_ = m.View()
	}
}
