package tui

import (
	"context"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
)

// send stores a message for each slot; what became of each comes back.
func (m *Model) send(i sendText) tea.Cmd {
	var commands []tea.Cmd
	for _, ref := range i.refs {
		commands = append(commands, m.call(slowly, func(ctx context.Context) tea.Msg {
			entry, err := m.ports.Conversation.Send(ctx, ref, i.text)
			return sent{ref, entry, i.text, err}
		}))
	}
	return tea.Batch(commands...)
}

func (m *Model) messageSent(s sent) tea.Cmd {
	if s.err != nil {
		// The text must not be lost: it becomes the pane's draft again.
		key := draftKey{s.ref, false}
		if m.composer.drafts[key] == "" {
			m.composer.drafts[key] = s.text
		}
		m.warn(s.err)
		return nil
	}
	m.say("Message to " + m.refName(s.ref) + ": " + deliveryText(s.entry) + ".")
	return m.conversationGrew("")
}

func deliveryText(e convo.Entry) string {
	text := string(e.Delivery)
	if e.Delivery == convo.Unconfirmed {
		text = "unconfirmed (perhaps submitted; only you repeat it)"
	}
	if e.Reason != "" {
		text += ", " + strings.TrimSuffix(e.Reason, ".")
	}
	return text
}

// openForLine opens a shell pane and, as soon as it is there, types the line
// into it and attaches.
func (m *Model) openForLine(i openPane) tea.Cmd {
	m.say("Opening a pane for " + clean(firstLine(i.line)) + " …")
	return m.work(fleet.Ref{Cell: i.cell, Slot: fleet.WholeCell}, slowly, func(ctx context.Context) done {
		ref, err := m.ports.Fleet.Open(ctx, i.cell, i.agent)
		return done{err: err, choose: &ref, then: lineForPane{ref, i.line}}
	})
}

// lineForPane waits for ref's pane.
type lineForPane struct {
	ref  fleet.Ref
	line string
}

// attachWanted types a waiting line when its pane is there.
func (m *Model) attachWanted() tea.Cmd {
	w := m.lineWaits
	if w == nil {
		return nil
	}
	_, slot := m.list.find(w.ref)
	if slot == nil || slot.Pane == "" {
		return nil
	}
	m.lineWaits = nil
	pane := slot.Pane
	keys := []string{}
	for _, r := range w.line {
		keys = append(keys, literal(r))
	}
	m.list.use(idOf(w.ref))
	return m.call(quickly, func(ctx context.Context) tea.Msg {
		if err := m.ports.Panes.Type(ctx, pane, append(keys, "Enter")); err != nil {
			return foregroundReady{err: err}
		}
		a, err := m.ports.Panes.Attach(m.ctx, pane)
		return foregroundReady{attachment: a, err: err}
	})
}
