package tui

import (
	"cellmux/engine/fleet"
)

// off says why a binding does nothing now, as a short sentence; "" means that
// it works. Help, palette and footer show the same sentence.
func (m *Model) off(name string) string {
	cell, slot := m.list.target()
	row, selected := m.list.current()
	outside := selected && row.id.kind == outsideRow
	switch name {
	case "attach":
		if !selected {
			return "nothing is selected"
		}
	case "type-in":
		return m.offPane(slot, outside)
	case "message", "review", "commit":
		switch {
		case name == "commit" && cell != nil && cell.CommitsOnHost:
		case outside:
			return "this pane is not cellmux's"
		case slot == nil && len(m.list.marked()) == 0:
			return "no pane is selected"
		case slot != nil && slot.Agent == "shell" && (name != "message" || len(m.list.marked()) == 0):
			return "this is a shell and takes no messages; " + m.keys.show("shell") + " runs a command in its cell"
		}
	case "shell", "agent", "shell-pane", "new-like", "pin":
		switch {
		case outside:
			return "this pane is not cellmux's"
		case cell == nil:
			return "no cell is selected"
		case cell.Offered && name != "agent" && name != "shell-pane":
			return "open the cell first (" + m.keys.show("attach") + ")"
		}
	case "restart", "fresh", "stop", "interrupt":
		switch {
		case outside:
			return "this pane is not cellmux's"
		case slot == nil:
			return "no pane is selected"
		case name == "interrupt" && !slot.Status.Live():
			return "its pane does not run"
		case name == "stop" && slot.Status == fleet.Stopped:
			return "it is stopped already"
		}
	case "delete", "rename", "archive":
		switch {
		case outside:
			return "this pane is not cellmux's"
		case cell == nil:
			return "nothing is selected"
		case cell.Offered:
			return "the cell does not exist yet"
		}
	case "trust":
		switch {
		case cell == nil:
			return "no cell is selected"
		case cell.Approval == "":
			return "nothing of its project file waits for approval"
		}
	case "bulk":
		if len(m.list.marked()) == 0 {
			return "no row is marked (" + m.keys.show("mark") + ")"
		}
	case "next-waiting", "previous-waiting":
		if m.count(fleet.Waiting) == 0 {
			return "no pane waits"
		}
	case "last":
		if m.list.previous.kind == noRow {
			return "no other pane was used yet"
		}
	case "logs":
		if m.ports.Journal == nil {
			return "there is no log to read"
		}
	case "jobs":
		if m.ports.Jobs == nil {
			return "background processes are not kept here"
		}
	case "editor":
		if m.ports.Editor == nil {
			return "no editor is set ($EDITOR)"
		}
	case "log-open", "log-again", "log-copy":
		if len(m.log.entries) == 0 {
			return "no command has run here"
		}
	case "log-cancel":
		if m.log.running() == nil {
			return "no command runs here"
		}
	case "cancel-work":
		if len(m.snapshot.Work) == 0 {
			return "no long work runs"
		}
	case "suspend":
		if _, err := m.device.Suspend(); err != nil {
			return sentence(err)
		}
	case "answers":
		if slot == nil {
			return "no pane is selected"
		}
	case "older", "unfold":
		if m.tabs.current != conversationTab {
			return "only the Conversation tab has records"
		}
	case "find":
		if m.tabs.current != conversationTab {
			return "only the Conversation tab is searched"
		}
	case "decide":
		if m.tabs.current != conversationTab || len(m.tabs.open()) == 0 {
			return "the fate of no message here is open"
		}
	}
	return ""
}

func (m *Model) offPane(slot *fleet.Slot, outside bool) string {
	switch {
	case outside:
		return "" // asks first
	case slot == nil:
		return "no pane is selected"
	case slot.Pane == "":
		return "it has no pane (" + m.keys.show("restart") + ": restart)"
	case slot.Status == fleet.Dead:
		return "its program has ended (" + m.keys.show("restart") + ": restart)"
	}
	return ""
}

// count is how many panes have a status; archived ones do not count.
func (m *Model) count(s fleet.Status) (n int) {
	for i := range m.snapshot.Cells {
		c := &m.snapshot.Cells[i]
		for j := range c.Slots {
			if c.Slots[j].Status == s && !c.Slots[j].Archived && !c.Archived {
				n++
			}
		}
	}
	return n
}
