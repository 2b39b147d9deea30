package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// tick wakes the screen for the next change of an age, the clock or the undo
// offer, and not earlier: on the next second while something young is shown,
// else on the next minute.
func (m *Model) tick() tea.Cmd {
	now := time.Now()
	wait := now.Truncate(time.Minute).Add(time.Minute).Sub(now)
	if m.list.youngest(now) < time.Minute || now.Before(m.undo) || len(m.log.live) > 0 || len(m.snapshot.Work) > 0 ||
		!m.silent.IsZero() && now.Sub(m.silent) < silenceShown+time.Second {
		wait = now.Truncate(time.Second).Add(time.Second).Sub(now)
	}
	if m.blurred {
		wait = max(wait, now.Truncate(time.Minute).Add(time.Minute).Sub(now))
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
