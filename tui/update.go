package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
)

// Update routes a message to the part that it is for.
func (m *Model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	m.same = false
	said := m.note.at
	command := tea.Batch(m.route(message), m.follow())
	if m.note.at != said {
		command = tea.Batch(command, m.tick()) // it goes by itself
	}
	m.placeCursor()
	return m, command
}

func (m *Model) route(message tea.Msg) tea.Cmd {
	switch message := message.(type) {
	case tea.KeyMsg:
		return m.keysPressed(message)
	case tea.MouseMsg:
		return m.mouseMoved(message)
	case tea.WindowSizeMsg:
		return m.resized(message.Width, message.Height)
	case tea.FocusMsg:
		m.blurred = false
		return m.capture()
	case tea.BlurMsg:
		m.blurred = true
	case watching[fleet.Snapshot]:
		return listen(m, message)
	case heard[fleet.Snapshot]:
		return tea.Batch(m.snapshotCame(message.value), listen(m, watching[fleet.Snapshot](message.from)))
	case watching[string]:
		return listen(m, message)
	case heard[string]:
		return tea.Batch(m.conversationGrew(message.value), listen(m, watching[string](message.from)))
	case clockTicked:
		return m.clockCame(message)
	case done:
		return m.actionEnded(message)
	case stillActing:
		m.saySlow(message)
	case captured:
		return m.captureCame(message)
	case captureDue:
		m.same = true
		if message.generation == m.preview.generation {
			return m.captureAgain()
		}
	case rested:
		return m.selectionRested(message)
	case foregroundReady:
		return m.foreground(message)
	case foregroundEnded:
		return m.foregroundDone(message)
	case edited:
		m.composer.edited(m, message)
	case resumed:
		if message.err != nil {
			m.say(sentence(message.err))
		}
		return m.rearm()
	case tabLoaded:
		m.tabs.loaded(m, message)
	case refreshed:
		m.say("Up to date.")
		return m.snapshotCame(message.snapshot)
	case approvalShown:
		return m.approvalCame(message)
	case proposed:
		m.proposalCame(message)
	case committed:
		return m.commitCame(message)
	case agentsListed:
		m.agentsCame(message)
	case textRead:
		m.textCame(message)
	case jobsListed:
		m.jobsCame(message)
	case found:
		m.found(message)
	default:
		return m.routeShell(message)
	}
	return nil
}

// routeShell takes what belongs to `!` lines and messages.
func (m *Model) routeShell(message tea.Msg) tea.Cmd {
	switch message := message.(type) {
	case logLoaded:
		m.log.loaded(message)
	case lineStarted:
		return m.lineStarted(message)
	case outputCame:
		return m.outputCame(message)
	case lineEnded:
		return m.lineEnded(message)
	case typed:
		return m.typedCame(message)
	case whereAnswered:
		m.composer.whereCame(message)
	case completed:
		m.composer.completed(m, message)
	case sent:
		return m.messageSent(message)
	}
	return nil
}

// listen waits for the next value of a channel that the world fills.
func listen[T any](m *Model, from watching[T]) tea.Cmd {
	if from == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case value, ok := <-from:
			if !ok {
				return nil
			}
			return heard[T]{value, from}
		case <-m.ctx.Done():
			return nil
		}
	}
}

func (m *Model) snapshotCame(s fleet.Snapshot) tea.Cmd {
	before := m.targetStatus()
	s = harmless(s)
	var commands []tea.Cmd
	if !m.known {
		conversations := m.ports.Conversation.Changed
		commands = append(commands, func() tea.Msg { return watching[string](conversations(m.ctx)) })
	}
	m.snapshot, m.known = s, true
	if s.Server == "" {
		m.silent = time.Time{}
	} else if m.silent.IsZero() {
		m.silent = time.Now()
	}
	m.list.show(s)
	for ref := range m.busy {
		if _, slot := m.list.find(ref); slot == nil && ref.Slot >= 0 {
			delete(m.busy, ref)
		}
	}
	commands = append(commands, m.attachWanted(), m.tick())
	// A turn began or ended, or the pane came or went. Where the selection has
	// moved, follow asks.
	if after := m.targetStatus(); after != before && m.list.selected == m.followed {
		commands = append(commands, m.capture(), m.loadTab())
	}
	return tea.Batch(commands...)
}

// targetStatus is what decides whether the preview must be asked again.
func (m *Model) targetStatus() string {
	if _, slot := m.list.target(); slot != nil {
		return slot.Pane + slot.Status.String()
	}
	return ""
}

func (m *Model) resized(w, h int) tea.Cmd {
	if w == m.width && h == m.height {
		return nil
	}
	m.width, m.height = w, h
	clear(m.pictures)
	return m.loadTab()
}

// say shows a sentence in the message line until something else is said.
func (m *Model) say(text string) { m.note = note{text: clean(text), at: time.Now()} }

// warn shows what went wrong, so that it stands out.
func (m *Model) warn(err error) {
	m.note = note{text: clean(sentence(err)), at: time.Now(), alarm: true}
}

// note is the message line.
type note struct {
	text  string
	at    time.Time
	alarm bool
}

// sentence is an error as the user reads it.
func sentence(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// perform each intent and let the world know.
func (m *Model) performAll(intents []intent) tea.Cmd {
	var commands []tea.Cmd
	for _, i := range intents {
		commands = append(commands, m.perform(i))
	}
	return tea.Batch(commands...)
}
