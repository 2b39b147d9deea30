package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"cellmux/engine/fleet"
)

// How often the selected pane is looked at: ten times a second while it
// changes, less while it is still, at once when the selection moves. Nothing
// else is looked at.
const (
	previewFast = 100 * time.Millisecond
	previewSlow = time.Second
	typeInEcho  = 15 * time.Millisecond
	typeInFast  = 60 * time.Millisecond
	maxHistory  = 20000 // lines above the screen
	historyPage = 500
)

// preview is what the selected pane shows.
type preview struct {
	generation generation
	pane       string
	screen     fleet.Screen
	shown      bool // screen is of pane
	err        error
	up         int // lines scrolled up from the end
	offset     int // lines of history in screen
	still      int // captures in a row that changed nothing
	inFlight   int
	limit      int // of captures in flight; a server that hangs must not gather more
	again      bool
	rows       []string // screen, safe and cut to rowsFor
	rowsFor    rowsKey
}

type rowsKey struct {
	width      int
	generation generation
	taken      time.Time
	count      int
}

// follow loads what belongs to the selection when the selection has moved: the
// pane's screen at once, the rest when the selection rests, so that holding j
// down asks for what it passes by neither git nor the database.
func (m *Model) follow() tea.Cmd {
	if m.list.selected == m.followed {
		return nil
	}
	m.followed = m.list.selected
	m.preview.up, m.preview.offset = 0, 0
	m.tabs.forget()
	if m.shellRef() != m.log.ref {
		m.log.forget()
	}
	m.arrived++
	g := m.arrived
	return tea.Batch(m.capture(), tea.Tick(restAfter, func(time.Time) tea.Msg { return rested{g} }))
}

// restAfter is how long the selection stands before its log, its tab and its
// git state are read. It is below what is felt.
const restAfter = 40 * time.Millisecond

// rested says that the selection has not moved for restAfter.
type rested struct{ generation generation }

func (m *Model) selectionRested(r rested) tea.Cmd {
	if r.generation != m.arrived {
		return nil
	}
	commands := []tea.Cmd{m.loadTab(), m.loadLog()}
	if m.followed.kind == cellRow || m.followed.kind == slotRow {
		ref := m.followed.ref()
		commands = append(commands, m.call(quickly, func(ctx context.Context) tea.Msg {
			_ = m.ports.Details.Selected(ctx, ref) // its answer is a snapshot
			return nil
		}))
	}
	return tea.Batch(commands...)
}

// previewPane is the pane that the preview is of.
func (m *Model) previewPane() string {
	if r, ok := m.list.current(); ok && r.outside != nil {
		return r.outside.Pane
	}
	if _, slot := m.list.target(); slot != nil {
		return slot.Pane
	}
	return ""
}

// capture asks for the selected pane's screen now. Answers to earlier questions
// are dropped.
func (m *Model) capture() tea.Cmd {
	p := &m.preview
	pane := m.previewPane()
	if pane != p.pane {
		p.pane, p.shown, p.rows, p.err = pane, false, nil, nil
	}
	p.generation++
	p.still = 0
	if pane == "" || m.tabs.current != previewTab && m.focus != inTypeIn {
		return nil
	}
	return m.ask()
}

func (m *Model) ask() tea.Cmd {
	p := &m.preview
	if p.pane == "" { // the selection has moved to a row without one meanwhile
		p.again = false
		return nil
	}
	if p.inFlight >= p.limit {
		p.again = true
		return nil
	}
	p.inFlight++
	g, pane, offset, started := p.generation, p.pane, p.offset, time.Now()
	return m.call(quickly, func(ctx context.Context) tea.Msg {
		screen, err := m.ports.Panes.Capture(ctx, pane, offset)
		return captured{g, screen, offset, started, err}
	})
}

func (m *Model) captureCame(c captured) tea.Cmd {
	p := &m.preview
	p.inFlight--
	if c.generation != p.generation {
		m.same = true
		if p.again && p.inFlight == 0 {
			p.again = false
			return m.ask()
		}
		return nil
	}
	p.again = false
	failed := p.err != nil
	p.err = c.err
	if c.err == nil {
		if p.shown && p.screen.Width == c.screen.Width && slices.Equal(p.screen.Rows, c.screen.Rows) {
			p.still++
			m.same = !failed
		} else {
			p.still = 0
			p.screen, p.shown, p.rows = c.screen, true, nil
		}
	} else {
		p.still += 10
	}
	g := p.generation
	wait := m.captureInterval() - time.Since(c.started)
	return tea.Tick(max(wait, 0), func(time.Time) tea.Msg { return captureDue{g} })
}

func (m *Model) captureInterval() time.Duration {
	p := &m.preview
	switch {
	case m.focus == inTypeIn && p.still < 30:
		return typeInFast
	case p.still < 10 && !m.blurred:
		return previewFast
	case p.still < 20 && !m.blurred:
		return 250 * time.Millisecond
	}
	return previewSlow
}

// captureDue without a new generation: the pane is the same.
func (m *Model) captureAgain() tea.Cmd {
	if m.preview.pane == "" || m.tabs.current != previewTab && m.focus != inTypeIn {
		return nil
	}
	return m.ask()
}

// scrollPreview moves the view of the current tab by n lines, down when n is
// positive.
func (m *Model) scrollPreview(n int) tea.Cmd {
	if m.tabs.current != previewTab {
		m.tabs.scroll(n, m.layout().preview.h)
		return m.moreOfTab()
	}
	p := &m.preview
	h := m.layout().preview.h
	p.up = max(0, p.up-n)
	have := max(0, len(p.screen.Rows)-h)
	if p.up > have && p.offset < maxHistory && len(p.screen.Rows) >= p.offset {
		p.offset = min(maxHistory, max(p.offset, p.up)+historyPage)
		return m.capture()
	}
	p.up = min(p.up, have)
	if p.up == 0 && p.offset > 0 {
		p.offset = 0
		return m.capture()
	}
	return nil
}

// previewLines are h rows of w cells of the pane's screen.
func (m *Model) previewLines(w, h int) []string {
	p := &m.preview
	if !p.shown {
		return m.emptyPreview(w)
	}
	key := rowsKey{w, 0, p.screen.Taken, len(p.screen.Rows)}
	if p.rows == nil || p.rowsFor != key {
		rows := p.screen.Rows
		for len(rows) > 0 && strings.TrimSpace(ansi.Strip(rows[len(rows)-1])) == "" {
			rows = rows[:len(rows)-1]
		}
		p.rows = make([]string, len(rows))
		for i, r := range rows {
			p.rows[i] = m.guestRow(r, w)
		}
		p.rowsFor = key
	}
	end := len(p.rows) - min(p.up, max(0, len(p.rows)-h))
	return p.rows[max(0, end-h):end]
}

// guestRow makes a row that a guest wrote safe to draw, exactly w cells wide.
func (m *Model) guestRow(s string, w int) string {
	s = keepColours(s)
	if m.terminal.profile < colorprofile.TrueColor && strings.Contains(s, "\x1b[") {
		var b strings.Builder
		_, _ = (&colorprofile.Writer{Forward: &b, Profile: m.terminal.profile}).WriteString(s)
		s = b.String()
	}
	if m.painter.ascii {
		s = plain(s)
	}
	coloured := strings.Contains(s, "\x1b[")
	n := ansi.StringWidth(s)
	if n > w {
		s = ansi.Truncate(s, w, "")
		n = ansi.StringWidth(s)
	}
	if coloured {
		s += "\x1b[m"
	}
	return s + spaces(w-n)
}

// keepColours keeps printable text and SGR, and drops every other sequence and
// control character: a captured row must not move the cursor, ask the terminal
// or write to its clipboard.
func keepColours(s string) string {
	if isPlain(s) {
		return s
	}
	var out strings.Builder
	state := byte(0)
	for len(s) > 0 {
		sequence, w, n, next := ansi.DecodeSequence(s, state, nil)
		state, s = next, s[n:]
		switch {
		case w > 0:
			out.WriteString(clean(sequence))
		case isSGR(sequence):
			out.WriteString(sequence)
		case sequence == "\t":
			out.WriteByte(' ')
		}
	}
	return out.String()
}

func isSGR(sequence string) bool {
	if len(sequence) < 3 || sequence[0] != 0x1b || sequence[1] != '[' || sequence[len(sequence)-1] != 'm' {
		return false
	}
	for i := 2; i < len(sequence)-1; i++ {
		if c := sequence[i]; c < '0' || c > ';' { // digits, colon, semicolon
			return false
		}
	}
	return true
}

// emptyPreview says why there is nothing to see, and what to do.
func (m *Model) emptyPreview(w int) []string {
	r, ok := m.list.current()
	cell, slot := m.list.target()
	show := m.keys.show
	switch {
	case !m.known:
		return []string{"Reading the list …"}
	case m.preview.err != nil:
		return []string{"This pane gave no answer:", "  " + clean(sentence(m.preview.err))}
	case !ok && m.list.filter.active():
		return []string{"Nothing matches the filter."}
	case !ok:
		return []string{"There are no cells yet.", "", "  " + show("new") + "  makes one"}
	case r.outside != nil, slot != nil && slot.Pane != "":
		return nil
	case cell.Offered:
		lines := []string{clean(cell.ProjectDir) + " is not a cell yet.", "", "  " + show("attach") + "  opens it on the " + cell.Engine + " engine, with the first agent found"}
		if cell.Problem != "" {
			lines = append(lines, "", clean(cell.Problem))
		}
		return lines
	case slot == nil:
		lines := []string{cell.Name + " has no panes.", "", "  " + show("agent") + "  opens an agent", "  " + show("shell-pane") + "  opens a shell", "  " + show("shell") + "  runs a command in it"}
		return m.withTrouble(lines, cell, w)
	case slot.Status == fleet.Unknown:
		return []string{"The state of this pane is unknown.", clean(slot.Detail)}
	}
	lines := []string{slot.Agent + " has no pane now. Its conversation is kept.", "", "  " + show("restart") + "  restarts it where it was", "  " + show("fresh") + "  starts a fresh conversation"}
	if slot.Detail != "" {
		lines = append(lines, "", clean(slot.Detail))
	}
	return m.withTrouble(lines, cell, w)
}

// withTrouble adds what is wrong with a cell, in full: the message line cuts it.
func (m *Model) withTrouble(lines []string, cell *fleet.Cell, w int) []string {
	for _, trouble := range []string{cell.Problem, cell.Guest.Trouble, m.restartNote(cell)} {
		if trouble != "" {
			lines = append(append(lines, ""), wrap(upperFirst(clean(trouble)), w)...)
		}
	}
	return lines
}

// restartNote says which changes of a cell's configuration wait, and how they take
// effect; "" none do.
func (m *Model) restartNote(cell *fleet.Cell) string {
	if cell.Guest.Restart == "" {
		return ""
	}
	live := 0
	for i := range cell.Slots {
		if s := &cell.Slots[i]; s.Pane != "" && s.Status != fleet.Dead {
			live++
		}
	}
	how := m.keys.show("restart") + " on its pane"
	if live > 1 {
		how = "stop its other panes (" + m.keys.show("stop") + "), then " + how
	}
	return "Restart to apply: " + clean(cell.Guest.Restart) + "  (" + how + ")"
}
