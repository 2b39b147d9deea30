package tui

import (
	"context"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
)

// typeIn sends keys to the selected pane while the list stays visible. Keys go
// out in order: one call at a time, with everything typed meanwhile in the next.
type typeIn struct {
	pane    string
	waiting []string
	sending bool
}

func (m *Model) startTyping() tea.Cmd {
	row, _ := m.list.current()
	pane := m.previewPane()
	start := func() {
		m.focus = inTypeIn
		m.typeIn = typeIn{pane: pane}
		m.tabs.current = previewTab
		m.preview.up, m.preview.offset = 0, 0
		m.list.use(row.id)
	}
	if row.outside != nil {
		m.overlay = &confirm{
			title: "Type into a pane that is not cellmux's?", verb: "Type in", yes: runFunction{start},
			lines: []string{clean(row.outside.Command) + " in your tmux session " + clean(row.outside.Session) + ".", "Every key goes to it until " + m.keys.show("stop-typing") + "."},
		}
		return nil
	}
	start()
	return m.capture()
}

// runFunction is a local intent of a dialog.
type runFunction struct{ function func() }

// typeKey forwards a key; only the keys that leave are ours.
func (m *Model) typeKey(k tea.KeyMsg) tea.Cmd {
	if b := m.keys.find(inTypeIn, k.String()); b != nil {
		m.focus = inList
		m.say("Keys are yours again.")
		return m.capture()
	}
	if m.previewPane() != m.typeIn.pane {
		m.focus = inList
		m.say("The pane is gone: keys are yours again.")
		return nil
	}
	if name := tmuxKey(k); name != "" {
		m.typeIn.waiting = append(m.typeIn.waiting, name)
	}
	return m.typeNext()
}

// typePaste sends pasted text as keys; a line break in it is a ctrl-j, which
// agents take for a new line and not for the end.
func (m *Model) typePaste(text string) tea.Cmd {
	for _, r := range sanitizeInput(text, true) {
		if r == '\n' {
			m.typeIn.waiting = append(m.typeIn.waiting, "C-j")
		} else {
			m.typeIn.waiting = append(m.typeIn.waiting, literal(r))
		}
	}
	return m.typeNext()
}

func (m *Model) typeNext() tea.Cmd {
	if m.typeIn.sending || len(m.typeIn.waiting) == 0 {
		return nil
	}
	keys := m.typeIn.waiting
	m.typeIn.waiting = nil
	m.typeIn.sending = true
	return m.perform(typeKeys{m.typeIn.pane, keys})
}

// typed ends one call.
type typed struct{ err error }

func (m *Model) typeNow(i typeKeys) tea.Cmd {
	return m.call(quickly, func(ctx context.Context) tea.Msg {
		return typed{m.ports.Panes.Type(ctx, i.pane, i.keys)}
	})
}

func (m *Model) typedCame(t typed) tea.Cmd {
	m.typeIn.sending = false
	if t.err != nil {
		m.warn(t.err)
		m.typeIn.waiting = nil
		m.focus = inList
		return nil
	}
	m.preview.still = 0
	m.preview.generation++
	g := m.preview.generation
	return tea.Batch(m.typeNext(), tea.Tick(typeInEcho, func(time.Time) tea.Msg { return captureDue{g} }))
}

// asking tells whether the pane that is typed into asks a question: an Enter
// would approve it, so the frame says so.
func (m *Model) asking() bool {
	_, slot := m.list.target()
	return slot != nil && slot.Status == fleet.Waiting
}

var tmuxNames = map[string]string{
	"enter": "Enter", "tab": "Tab", "shift+tab": "BTab", "esc": "Escape", "backspace": "BSpace", "delete": "DC", "insert": "IC",
	"up": "Up", "down": "Down", "left": "Left", "right": "Right", "home": "Home", "end": "End", "pgup": "PPage", "pgdown": "NPage",
	" ": "Space", "ctrl+@": "C-Space", "ctrl+\\": `C-\`, "ctrl+]": "C-]", "ctrl+^": "C-^", "ctrl+_": "C-_",
}

// literal is a rune as send-keys names it.
func literal(r rune) string {
	if r == ' ' {
		return "Space"
	}
	return string(r)
}

// tmuxKey is a key as tmux(1) names it; "" when tmux has no name for it.
func tmuxKey(k tea.KeyMsg) string {
	name := k.String()
	prefix := ""
	if rest, ok := strings.CutPrefix(name, "alt+"); ok && rest != "" {
		prefix, name = "M-", rest
	}
	if n, ok := tmuxNames[name]; ok {
		return prefix + n
	}
	if k.Type == tea.KeyRunes && len(k.Runes) == 1 {
		return prefix + literal(k.Runes[0])
	}
	for {
		switch {
		case strings.HasPrefix(name, "ctrl+"):
			prefix, name = prefix+"C-", name[len("ctrl+"):]
		case strings.HasPrefix(name, "shift+"):
			prefix, name = prefix+"S-", name[len("shift+"):]
		default:
			if n, ok := tmuxNames[name]; ok {
				return prefix + n
			}
			if len(name) == 1 {
				return prefix + name
			}
			if len(name) > 1 && name[0] == 'f' {
				return prefix + "F" + name[1:]
			}
			return ""
		}
	}
}
