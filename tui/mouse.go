package tui

import tea "github.com/charmbracelet/bubbletea"

// mouseMoved: the wheel scrolls what is under it, a click selects, a second
// click on the selected row attaches.
func (m *Model) mouseMoved(e tea.MouseMsg) tea.Cmd {
	if e.Action != tea.MouseActionPress || m.overlay != nil || m.focus == inTypeIn {
		return nil
	}
	a := m.layout()
	wheel := map[tea.MouseButton]int{tea.MouseButtonWheelUp: -3, tea.MouseButtonWheelDown: 3}[e.Button]
	switch {
	case a.tooSmall:
	case wheel != 0 && a.preview.holds(e.X, e.Y):
		return m.scrollPreview(wheel)
	case wheel != 0 && a.list.holds(e.X, e.Y):
		m.list.move(wheel / 3)
	case e.Button != tea.MouseButtonLeft:
	case a.list.holds(e.X, e.Y):
		i := m.list.top + e.Y - a.list.y
		if i >= len(m.list.rows) || m.list.rows[i].id.kind == headRow {
			return nil
		}
		if m.list.rows[i].id == m.list.selected && m.focus == inList {
			return m.performAll(m.enter())
		}
		m.list.selected = m.list.rows[i].id
		if m.focus != inComposer {
			m.focus = inList
		}
	case a.preview.h > 0 && e.Y == a.preview.y-1 && e.X >= a.preview.x:
		return m.clickTab(e.X - a.preview.x)
	case a.preview.holds(e.X, e.Y):
		m.focus = inPreview
	case a.log.holds(e.X, e.Y):
		if e.Y >= a.log.y+a.log.h-a.composer {
			if m.off("message") == "" {
				m.compose("")
			}
			return nil
		}
		m.focus = inLog
	}
	return nil
}

// clickTab chooses the tab whose name is in a column of the title.
func (m *Model) clickTab(x int) tea.Cmd {
	at := 1 + len("[2]")
	for i := range tabCount {
		if i > 0 {
			at += 2
		}
		at++
		if x >= at && x < at+len(tabNames[i]) {
			return m.switchTab(int(i - m.tabs.current))
		}
		at += len(tabNames[i])
	}
	return nil
}
