package tui

import (
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
)

// act does what a binding says. What is local happens here; the rest becomes an
// intent.
func (m *Model) act(name, key string) tea.Cmd {
	if command, ok := m.actOnList(name, key); ok {
		return command
	}
	if command, ok := m.actOnParts(name); ok {
		return command
	}
	cell, slot := m.list.target()
	switch name {
	case "attach":
		return m.performAll(m.enter())
	case "type-in":
		return m.startTyping()
	case "message":
		m.compose("")
		return m.composer.asksWhere(m)
	case "shell":
		m.compose("!")
		return m.composer.asksWhere(m)
	case "agent":
		return m.approved(cell, showAgents{cell.Name})
	case "shell-pane":
		return m.approved(cell, openPane{cell: cell.Name, agent: "shell"})
	case "new":
		m.overlay = newCellForm(m, nil)
	case "new-like":
		m.overlay = newCellForm(m, cell)
	case "restart":
		return m.risky(slot, "Restart", "restarts", restartPane{slot.Ref})
	case "fresh":
		return m.perform(openPane{cell: cell.Name, agent: slot.Agent})
	case "stop":
		return m.risky(slot, "Stop", "stops", stopPanes{[]fleet.Ref{slot.Ref}})
	case "delete":
		return m.deleteSelected()
	case "undo":
		return m.perform(undoLast{})
	case "rename":
		m.overlay = m.renameForm()
	case "pin":
		return m.perform(pinCell{cell.Name, !cell.Pinned})
	case "archive":
		return m.archiveSelected()
	case "interrupt":
		return m.perform(interruptPane{slot.Ref})
	case "trust":
		return m.perform(showApproval{cell: cell.Name})
	case "review":
		return m.perform(reviewWork{slot.Ref})
	case "commit":
		if cell.CommitsOnHost {
			return m.perform(showProposal{cell: cell.Name})
		}
		return m.perform(sendText{[]fleet.Ref{slot.Ref}, "Commit your work: one commit for each thing you did, with a message that says why."})
	case "answers":
		return m.perform(toggleAsks{slot.Ref})
	case "jobs":
		return m.perform(listJobs{})
	case "bulk":
		m.overlay = m.bulkMenu()
	case "sort":
		m.overlay = sortMenu(m)
	case "group":
		m.overlay = groupMenu(m)
	case "copy":
		m.overlay = m.copyMenu()
	case "search":
		m.overlay = newSearch("Search conversations", "")
	case "logs":
		return m.perform(readLog{})
	case "events":
		return m.perform(readEvents{})
	case "cancel-work":
		return m.cancelWorkMenu()
	case "palette":
		m.overlay = newPalette(m)
	case "help":
		m.overlay = newHelp(m)
	case "mouse":
		m.mouse = !m.mouse
		m.say("The mouse belongs to " + map[bool]string{true: "cellmux.", false: "the terminal: select and copy as you like."}[m.mouse])
		return m.rearm()
	case "redraw":
		return tea.ClearScreen
	case "refresh":
		m.list.order = nil
		m.say("Reading everything again …")
		return m.perform(refreshAll{})
	case "suspend":
		return m.perform(suspendNow{})
	case "back":
		return m.back()
	case "interrupt-key":
		return m.interruptPressed()
	case "quit":
		return m.quit()
	}
	return nil
}

// actOnList moves in the list. ok tells whether the binding was one of these.
func (m *Model) actOnList(name, key string) (command tea.Cmd, ok bool) {
	l := &m.list
	switch name {
	case "down":
		l.move(1)
	case "up":
		l.move(-1)
	case "half-down":
		l.move(max(1, m.layout().list.h/2))
	case "half-up":
		l.move(-max(1, m.layout().list.h/2))
	case "top":
		l.first()
	case "bottom":
		l.last()
	case "next-cell":
		l.moveCell(1)
	case "previous-cell":
		l.moveCell(-1)
	case "collapse":
		l.collapse()
	case "expand":
		l.expand()
	case "jump":
		if number, err := strconv.Atoi(key); err == nil && !l.jump(number) {
			m.say("There is no cell " + key + ".")
		}
	case "last":
		l.wanted = l.previous
		l.rebuild()
		l.use(l.selected)
	case "next-waiting":
		l.nextWaiting(1)
	case "previous-waiting":
		l.nextWaiting(-1)
	case "mark":
		l.mark()
	case "range":
		l.startRange()
	case "filter":
		l.filter.open, l.filter.from = true, l.selected
		m.focus = inList
	case "show-archived":
		l.archived = !l.archived
		l.rebuild()
	default:
		return nil, false
	}
	return nil, true
}

// actOnParts moves between and inside the parts of the screen.
func (m *Model) actOnParts(name string) (command tea.Cmd, ok bool) {
	page := max(1, m.layout().preview.h-1)
	switch name {
	case "preview-down":
		return m.scrollPreview(1), true
	case "preview-up":
		return m.scrollPreview(-1), true
	case "preview-half-down":
		return m.scrollPreview(max(1, page/2)), true
	case "preview-half-up":
		return m.scrollPreview(-max(1, page/2)), true
	case "preview-top":
		return m.scrollPreview(-maxHistory), true
	case "preview-bottom":
		return m.scrollPreview(maxHistory), true
	case "scroll-down":
		return m.scrollPreview(page), true
	case "scroll-up":
		return m.scrollPreview(-page), true
	case "next-tab":
		return m.switchTab(1), true
	case "previous-tab":
		return m.switchTab(-1), true
	case "show-preview":
		return m.switchTab(int(previewTab - m.tabs.current)), true
	case "show-conversation":
		return m.switchTab(int(conversationTab - m.tabs.current)), true
	case "show-diff":
		return m.switchTab(int(diffTab - m.tabs.current)), true
	case "show-info":
		return m.switchTab(int(infoTab - m.tabs.current)), true
	case "next-focus":
		m.cycleFocus(1)
	case "previous-focus":
		m.cycleFocus(-1)
	case "zoom-in":
		m.zoomed = true
	case "zoom-out":
		m.zoomed = false
	case "older":
		m.fold()
	case "unfold":
		m.openRecord()
	case "find":
		return m.findHere(), true
	case "decide":
		m.overlay = m.decisionMenu()
	case "log-down", "log-up", "log-bottom", "log-open", "log-cancel", "log-again", "log-copy":
		return m.actOnLog(name), true
	case "send", "newline", "complete", "older-line", "newer-line", "history", "ask", "in-pane", "editor", "leave", "discard":
		return m.composer.act(m, name), true
	default:
		return nil, false
	}
	return nil, true
}

// back is one step back: it never quits and never cancels work.
func (m *Model) back() tea.Cmd {
	switch {
	case m.list.unmark():
	case m.focus != inList:
		m.focus = inList
	case m.zoomed:
		m.zoomed = false
	case m.list.filter.active():
		m.list.filter.clear()
		m.list.rebuild()
	case m.preview.up > 0:
		return m.scrollPreview(maxHistory)
	default:
		m.note = note{}
	}
	return nil
}

// interruptPressed is ctrl-c: it cancels what has the focus; from the list, with
// no command running, the second press quits.
func (m *Model) interruptPressed() tea.Cmd {
	if live := m.log.running(); live != nil && m.focus == inLog {
		return m.perform(cancelLine{live.id})
	}
	if m.focus != inList {
		return m.back()
	}
	if n := len(m.log.live); n > 0 {
		m.say(plural(n, "command still runs", "commands still run") + ": " + m.keys.show("next-focus") + " to the log and " + m.keys.show("log-cancel") + " cancels; " + m.keys.show("quit") + " quits.")
		return nil
	}
	now := time.Now()
	if now.Sub(m.interrupted) < 2*time.Second {
		return m.quit()
	}
	m.interrupted = now
	m.say("Once more quits. Panes keep running.")
	return nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// quit says what stays queued and asks when commands still run.
func (m *Model) quit() tea.Cmd {
	if n := len(m.log.live); n > 0 {
		d := &confirm{title: "Quit", yes: quitNow{}, verb: "Cancel and quit"}
		d.lines = append(d.lines, plural(n, "command still runs.", "commands still run."), "Quitting cancels it and keeps what it printed.")
		for _, live := range m.log.live {
			d.lines = append(d.lines, "  ! "+clean(live.line))
		}
		m.overlay = d
		return nil
	}
	return m.perform(quitNow{})
}

// Farewell is what to say after the screen is gone: what stays queued.
func (m *Model) Farewell() string {
	queued := 0
	for i := range m.snapshot.Cells {
		for _, s := range m.snapshot.Cells[i].Slots {
			queued += s.Queued
		}
	}
	if queued == 0 {
		return ""
	}
	return plural(queued, "message stays queued; it is", "messages stay queued; they are") + " delivered when cellmux runs again and the agent is ready."
}

func (m *Model) cycleFocus(step int) {
	order := []place{inList, inPreview, inLog}
	at := 0
	for i, p := range order {
		if p == m.focus {
			at = i
		}
	}
	m.focus = order[(at+step+len(order))%len(order)]
}
