package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// ageLag is how late an age of minutes may be.
const ageLag = 10 * time.Second

// tick wakes the screen for the next change of an age, the clock, a message's end
// or the undo offer, and not earlier: on the next second while something young is
// shown, else less often. Nothing else draws them anew.
func (m *Model) tick() tea.Cmd {
	now := time.Now()
	next := func(unit time.Duration) time.Duration { return now.Truncate(unit).Add(unit).Sub(now) }
	wait := next(time.Minute)
	switch youngest := m.list.youngest(now); {
	case youngest < time.Minute || now.Before(m.undo) || len(m.log.live) > 0 || len(m.snapshot.Work) > 0 ||
		!m.silent.IsZero() && now.Sub(m.silent) < silenceShown+time.Second:
		wait = next(time.Second)
	case youngest < time.Hour:
		wait = next(ageLag)
	}
	if left := noteLife - now.Sub(m.note.at); m.note.text != "" && !m.note.alarm && left >= 0 {
		wait = min(wait, left+time.Millisecond)
	}
	if m.blurred {
		wait = max(wait, next(time.Minute))
	}
	m.clock++
	g := m.clock
	return tea.Tick(wait, func(time.Time) tea.Msg { return clockTicked{g} })
}

func (m *Model) clockCame(c clockTicked) tea.Cmd {
	if c.clock != m.clock {
		return nil
	}
	return m.tick()
}
