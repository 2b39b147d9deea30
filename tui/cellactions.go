package tui

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
)

// enter is what Enter means on the selected row.
func (m *Model) enter() []intent {
	row, ok := m.list.current()
	if !ok {
		return nil
	}
	cell, slot := m.list.target()
	switch {
	case row.id.kind == outsideRow:
		return []intent{attachToPane{row.outside.Pane}}
	case cell.Offered && slot == nil:
		return []intent{m.whenApproved(cell, openCell{*cell})}
	case slot == nil:
		return []intent{m.whenApproved(cell, openPane{cell: cell.Name})}
	case slot.Pane == "" && slot.Status == fleet.Unknown:
		return []intent{sayText{"The pane's state is unknown: no answer yet."}}
	case slot.Pane == "":
		return []intent{restartPane{slot.Ref}}
	}
	return []intent{attachTo{slot.Ref}}
}

// whenApproved puts the approval of a project's file in front of an intent that
// would let it act; each cell is asked once.
func (m *Model) whenApproved(cell *fleet.Cell, i intent) intent {
	if cell.Approval == "" || m.asked[cell.Name] {
		return i
	}
	m.asked[cell.Name] = true
	return showApproval{cell: cell.Name, then: i}
}

func (m *Model) approved(cell *fleet.Cell, i intent) tea.Cmd {
	if cell.Offered {
		return m.perform(m.whenApproved(cell, openCell{*cell}))
	}
	return m.perform(m.whenApproved(cell, i))
}

// risky asks when a pane is running or waiting, and names what would be lost;
// it acts at once otherwise.
func (m *Model) risky(slot *fleet.Slot, verb, does string, i intent) tea.Cmd {
	loss := m.loss(slot)
	if loss == "" {
		return m.perform(i)
	}
	m.overlay = &confirm{
		title: verb + " " + m.slotName(slot) + "?",
		lines: []string{loss, "The conversation is kept."},
		verb:  verb, yes: i,
	}
	return nil
}

// loss is what ending a pane would cost, as a sentence; "" is nothing.
func (m *Model) loss(s *fleet.Slot) string {
	switch s.Status {
	case fleet.Running:
		if s.Detail != "" {
			return fmt.Sprintf("%s is at work: %s. That is cut off.", s.Agent, clean(s.Detail))
		}
		return s.Agent + " is at work. That is cut off."
	case fleet.Waiting:
		if s.Question != "" {
			return fmt.Sprintf("%s waits for your answer: %s", s.Agent, clean(s.Question))
		}
		return s.Agent + " waits for your answer."
	case fleet.Unknown:
		if s.Pane != "" {
			return "What it does now is unknown."
		}
	}
	return ""
}

// slotName is how dialogs and messages call a slot.
func (m *Model) slotName(s *fleet.Slot) string {
	name := s.Agent
	if s.Title != "" {
		name = clean(s.Title)
	}
	return name + " in " + s.Ref.Cell
}

func (m *Model) refName(r fleet.Ref) string {
	if r.Slot < 0 {
		return r.Cell
	}
	if _, s := m.list.find(r); s != nil {
		return m.slotName(s)
	}
	return r.String()
}

func (m *Model) deleteSelected() tea.Cmd {
	row, _ := m.list.current()
	if row.id.kind == slotRow {
		return m.risky(row.slot, "Delete", "deletes", deleteRefs{[]fleet.Ref{row.slot.Ref}})
	}
	return m.deleteAll([]fleet.Ref{row.id.ref()}, "cell "+row.cell.Name)
}

// deleteAll asks when anything in refs runs or waits.
func (m *Model) deleteAll(refs []fleet.Ref, what string) tea.Cmd {
	losses := m.losses(refs)
	if len(losses) == 0 {
		return m.perform(deleteRefs{refs})
	}
	m.overlay = &confirm{
		title: "Delete " + what + "?", verb: "Delete", yes: deleteRefs{refs},
		lines: append(losses, "It goes to the trash: "+m.keys.show("undo")+" brings it back. The project's files stay."),
	}
	return nil
}

// losses names what ending refs would cost, a line each.
func (m *Model) losses(refs []fleet.Ref) []string {
	var lines []string
	for _, r := range refs {
		cell, slot := m.list.find(r)
		switch {
		case slot != nil:
			if l := m.loss(slot); l != "" {
				lines = append(lines, r.Cell+": "+l)
			}
		case cell != nil && r.Slot < 0:
			for i := range cell.Slots {
				if l := m.loss(&cell.Slots[i]); l != "" {
					lines = append(lines, l)
				}
			}
			if cell.Git != "" && cell.Git != "clean" {
				lines = append(lines, "The project has uncommitted or unpushed work ("+clean(cell.Git)+"); it stays where it is.")
			}
		}
	}
	return lines
}

func (m *Model) archiveSelected() tea.Cmd {
	row, _ := m.list.current()
	archived := row.cell.Archived
	if row.slot != nil {
		archived = row.slot.Archived
	}
	return m.perform(archiveRefs{[]fleet.Ref{row.id.ref()}, !archived})
}

func (m *Model) approvalCame(a approvalShown) tea.Cmd {
	if a.err != nil {
		m.warn(a.err)
		return nil
	}
	if len(a.approval.Acts) == 0 {
		if a.then == nil {
			m.say("Nothing of its project file waits for approval.")
			return nil
		}
		return m.perform(a.then)
	}
	d := &confirm{
		title: "Approve " + clean(a.approval.File) + "?", verb: "Approve",
		yes: trustCell{a.approval.Cell, a.approval.Hash, a.then}, no: a.then,
		lines: []string{"A project's file is untrusted until you approve it. It would:"},
	}
	for _, act := range a.approval.Acts {
		d.lines = append(d.lines, "  "+clean(act))
	}
	if a.then != nil {
		d.lines = append(d.lines, "", "No opens the cell without all this.")
	}
	m.overlay = d
	return nil
}

func (m *Model) cancelWorkMenu() tea.Cmd {
	if len(m.snapshot.Work) == 1 {
		w := m.snapshot.Work[0]
		m.overlay = &confirm{title: "Cancel?", lines: []string{clean(w.What)}, verb: "Cancel it", yes: cancelWork{w.ID}}
		return nil
	}
	p := &picker{title: "Cancel which work?"}
	for _, w := range m.snapshot.Work {
		p.items = append(p.items, item{label: clean(w.What), detail: clean(w.Step), intents: []intent{cancelWork{w.ID}}})
	}
	m.overlay = p
	return nil
}
