package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// keysPressed takes one message of Bubble Tea apart into the keys that were
// pressed. tui/input gives one event at a time, but where it is not in use, or
// an input method commits several letters, a message may hold more.
func (m *Model) keysPressed(k tea.KeyMsg) tea.Cmd {
	if k.Type == tea.KeyRunes && !k.Paste && !k.Alt && len(k.Runes) > 1 {
		var commands []tea.Cmd
		for _, r := range k.Runes {
			commands = append(commands, m.keyPressed(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}))
		}
		return tea.Batch(commands...)
	}
	// Esc and a letter typed fast arrive as alt and the letter. Where nothing is
	// bound to that, they were two keys.
	if k.Alt && !m.wantsAlt(k) {
		second := k
		second.Alt = false
		return tea.Batch(m.keyPressed(tea.KeyMsg{Type: tea.KeyEsc}), m.keyPressed(second))
	}
	return m.keyPressed(k)
}

// wantsAlt tells whether alt and the key mean something where the focus is.
func (m *Model) wantsAlt(k tea.KeyMsg) bool {
	if m.focus == inTypeIn {
		return true
	}
	if m.keys.find(m.place(), k.String()) != nil && m.overlay == nil {
		return true
	}
	if m.focus == inComposer || m.list.filter.open || m.overlay != nil {
		var probe editor
		return probe.key(k)
	}
	return false
}

// place is where keys go; an overlay and the filter's field come before it.
func (m *Model) place() place { return m.focus }

func (m *Model) keyPressed(k tea.KeyMsg) tea.Cmd {
	m.note = note{} // it has been read, or what the key does says something newer
	if k.Paste {
		return m.pasted(string(k.Runes))
	}
	switch {
	case m.overlay != nil:
		intents, closed := m.overlay.key(m, k)
		if closed {
			m.overlay = nil
			m.giveUpSearch() // nobody sees what it would find
		}
		return m.performAll(intents)
	case m.list.filter.open:
		return m.filterKey(k)
	case m.focus == inTypeIn:
		return m.typeKey(k)
	}
	key := k.String()
	if m.pressed != "" {
		key, m.pressed = m.pressed+" "+key, ""
		if b := m.keys.find(m.place(), key); b != nil {
			return m.do(b, k)
		}
		key = k.String() // the first key meant nothing; this one may
	}
	if m.keys.begins(m.place(), key) {
		m.pressed = key
		return nil
	}
	if b := m.keys.find(m.place(), key); b != nil {
		return m.do(b, k)
	}
	if m.focus == inComposer {
		return m.composer.typed(m, k)
	}
	return nil
}

// do runs a binding, or says why it is off.
func (m *Model) do(b *binding, k tea.KeyMsg) tea.Cmd {
	if b.name != "interrupt-key" {
		m.interrupted = time.Time{}
	}
	if why := m.off(b.name); why != "" {
		m.say(showOr(b, m) + ": " + why)
		return nil
	}
	return m.act(b.name, k.String())
}

func showOr(b *binding, m *Model) string {
	if len(b.keys) > 0 {
		return showKey(b.keys[0])
	}
	return ":" + b.name
}

// pasted puts pasted text where it is wanted. From the list it goes into the
// composer, never to an agent.
func (m *Model) pasted(text string) tea.Cmd {
	switch {
	case m.overlay != nil:
		if p, ok := m.overlay.(paster); ok {
			return m.performAll(p.paste(m, text))
		}
		return nil
	case m.list.filter.open:
		m.list.filter.field.insert(text)
		m.list.filter.parse()
		m.list.rebuild()
		return nil
	case m.focus == inTypeIn:
		return m.typePaste(text)
	case m.focus != inComposer:
		if why := m.off("message"); why != "" {
			m.say("paste: " + why)
			return nil
		}
		m.compose("")
	}
	if len(m.composer.field.text)+len(text) > maxText {
		m.say("That is more than 1 MiB: put it into a file of the project and name the file.")
		return m.composer.asksWhere(m)
	}
	m.composer.field.insert(text)
	return m.composer.asksWhere(m)
}

func (m *Model) filterKey(k tea.KeyMsg) tea.Cmd {
	f := &m.list.filter
	switch k.String() {
	case "enter":
		f.open, f.from = false, rowID{}
	case "esc", "ctrl+c":
		f.clear()
		if f.from.kind != noRow {
			// Looking for something and giving up selects nothing else: the next
			// key must not act on what the filter happened to leave.
			m.list.selected = f.from
		}
	case "up":
		m.list.move(-1)
		f.from = rowID{}
	case "down":
		m.list.move(1)
		f.from = rowID{}
	default:
		before := m.list.selected
		f.field.key(k)
		f.parse()
		m.list.rebuild()
		if m.list.selected != before { // it was filtered away: the best guess is on top
			m.list.first()
		}
		return nil
	}
	m.list.rebuild()
	return nil
}
