package tui

import (
	"context"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
)

// A tab is a way to look at the selected row.
type tab int

// The tabs, in their order on the screen.
const (
	previewTab tab = iota
	conversationTab
	diffTab
	infoTab
	tabCount
)

var tabNames = [tabCount]string{"Preview", "Conversation", "Diff", "Info"}

// tabs holds what the tabs beside the preview show.
type tabs struct {
	current    tab
	generation generation
	loading    bool
	err        error
	page       []convo.Entry // oldest first
	whole      bool          // page begins with the first message
	opened     map[int64]bool
	diff       string
	facts      []fleet.Fact
	up         int // lines scrolled up from the end (Conversation) or -down from the top

	lines    []string // drawn for linesFor
	linesFor int
	anchors  []int64 // of each line: the message that it is of
}

const pageSize = 100

func (m *Model) switchTab(step int) tea.Cmd {
	t := &m.tabs
	t.current = (t.current + tab(step) + tabCount) % tabCount
	t.up = 0
	if m.focus == inTypeIn {
		m.focus = inList
	}
	return tea.Batch(m.loadTab(), m.capture())
}

// loadTab asks for what the current tab shows of the selection.
func (m *Model) loadTab() tea.Cmd {
	t := &m.tabs
	t.generation++
	g, current := t.generation, t.current
	if current == previewTab {
		return nil
	}
	row, ok := m.list.current()
	cell, slot := m.list.target()
	if !ok || cell == nil || cell.Offered {
		t.page, t.diff, t.facts, t.lines, t.loading, t.err = nil, "", nil, nil, false, nil
		return nil
	}
	t.loading = true
	switch current {
	case conversationTab:
		if slot == nil {
			t.page, t.lines, t.loading = nil, nil, false
			return nil
		}
		return m.loadPage(slot.Ref, 0, g)
	case diffTab:
		return m.call(quickly, func(ctx context.Context) tea.Msg {
			diff, err := m.ports.Details.Diff(ctx, cell.Name)
			return tabLoaded{generation: g, tab: diffTab, diff: diff, err: err}
		})
	}
	ref := row.id.ref()
	return m.call(quickly, func(ctx context.Context) tea.Msg {
		facts, err := m.ports.Details.Info(ctx, ref)
		return tabLoaded{generation: g, tab: infoTab, facts: facts, err: err}
	})
}

func (m *Model) loadPage(ref fleet.Ref, before int64, g generation) tea.Cmd {
	return m.call(quickly, func(ctx context.Context) tea.Msg {
		page, err := m.ports.Conversation.Page(ctx, ref, before, pageSize)
		return tabLoaded{generation: g, tab: conversationTab, page: page, older: before > 0, err: err}
	})
}

// forget empties the tabs: the selection has moved.
func (t *tabs) forget() {
	t.generation++
	t.loading = t.current != previewTab
	t.page, t.diff, t.facts, t.lines, t.err, t.up = nil, "", nil, nil, nil, 0
}

func (t *tabs) loaded(m *Model, l tabLoaded) {
	if l.generation != t.generation || l.tab != t.current {
		return
	}
	t.loading, t.err, t.lines = false, l.err, nil
	if l.err != nil {
		return
	}
	switch l.tab {
	case conversationTab:
		page := slices.Clone(l.page)
		slices.SortFunc(page, func(a, b convo.Entry) int { return int(a.Seq - b.Seq) })
		if l.older {
			t.whole = len(page) < pageSize
			t.page = append(page, t.page...)
			return
		}
		t.page, t.whole = page, len(page) < pageSize
	case diffTab:
		t.diff = l.diff
	case infoTab:
		t.facts = l.facts
	}
}

// moreOfTab asks for older messages when the view has reached the oldest one.
func (m *Model) moreOfTab() tea.Cmd {
	t := &m.tabs
	if t.current != conversationTab || t.whole || t.loading || len(t.page) == 0 || t.up < len(t.lines)-m.layout().preview.h {
		return nil
	}
	_, slot := m.list.target()
	if slot == nil {
		return nil
	}
	t.loading = true
	return m.loadPage(slot.Ref, t.page[0].Seq, t.generation)
}

// conversationGrew reloads what shows a conversation.
func (m *Model) conversationGrew(string) tea.Cmd {
	if m.tabs.current == conversationTab {
		return m.loadTab()
	}
	return nil
}

// scroll moves the view by n lines, down when positive.
func (t *tabs) scroll(n, h int) {
	t.up = min(max(0, t.up-n), max(0, len(t.lines)-h))
}

// tabLines are at most h rows of w cells of the current tab.
func (m *Model) tabLines(w, h int) []string {
	t := &m.tabs
	switch {
	case t.err != nil:
		return []string{"This could not be read:", "  " + clean(sentence(t.err))}
	case t.current == conversationTab && len(t.page) == 0:
		if t.loading {
			return []string{"Reading the conversation …"}
		}
		return []string{"Nothing has been said here yet.", "", "  " + m.keys.show("message") + "  writes a message", "  " + m.keys.show("shell") + "  runs a command that the agent will know of"}
	case t.current == diffTab && t.diff == "":
		if t.loading {
			return []string{"Reading the changes …"}
		}
		return []string{"There are no uncommitted changes."}
	case t.current == infoTab && len(t.facts) == 0:
		if t.loading {
			return nil
		}
		return []string{"Nothing is known of this row."}
	}
	if t.lines == nil || t.linesFor != w {
		t.linesFor = w
		switch t.current {
		case conversationTab:
			t.lines, t.anchors = m.conversationLines(t.page, w)
		case diffTab:
			t.lines = m.diffLines(t.diff, w)
		case infoTab:
			t.lines = m.factLines(t.facts, w)
		}
		if t.current != conversationTab {
			t.up = max(0, len(t.lines)-h) // begin at the top
		}
	}
	t.up = min(t.up, max(0, len(t.lines)-h))
	end := len(t.lines) - t.up
	return t.lines[max(0, end-h):end]
}

// diffLines colour a unified diff by its first column.
func (m *Model) diffLines(diff string, w int) []string {
	p := m.painter
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(diff, "\n"), "\n") {
		text := p.fit(clean(strings.ReplaceAll(line, "\t", "    ")), w)
		if p.ascii {
			text = plain(text)
		}
		t := tText
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
			t = tTitle
		case strings.HasPrefix(line, "@@"):
			t = tFocus
		case strings.HasPrefix(line, "+"):
			t = tAdded
		case strings.HasPrefix(line, "-"):
			t = tRemoved
		}
		lines = append(lines, p.paint(t, text))
	}
	return lines
}

func (m *Model) factLines(facts []fleet.Fact, w int) []string {
	label := 0
	for _, f := range facts {
		label = max(label, min(width(f.Label), 20))
	}
	var lines []string
	for _, f := range facts {
		name := m.painter.paint(tDim, m.painter.fit(clean(f.Label), label)) + "  "
		for i, value := range wrap(clean(f.Value), w-label-2) {
			if i > 0 {
				name = spaces(label + 2)
			}
			lines = append(lines, name+value)
		}
	}
	return lines
}

// fold opens or closes the newest folded record in sight.
func (t *tabs) fold() {
	if t.opened == nil {
		t.opened = map[int64]bool{}
	}
	end := min(len(t.anchors), max(0, len(t.lines)-t.up))
	for i := end - 1; i >= 0; i-- {
		if seq := t.anchors[i]; seq > 0 {
			t.opened[seq] = !t.opened[seq]
			t.lines = nil
			return
		}
	}
}

// unconfirmed is the newest message of the page of which nobody knows whether
// the agent took it.
func (t *tabs) unconfirmed() *convo.Entry {
	for i := len(t.page) - 1; i >= 0; i-- {
		if t.page[i].Delivery == convo.Unconfirmed {
			return &t.page[i]
		}
	}
	return nil
}

// repeatUnconfirmed asks before it sends a message a second time.
func (m *Model) repeatUnconfirmed() tea.Cmd {
	e := m.tabs.unconfirmed()
	ref := fleet.Ref{Cell: e.Cell, Slot: e.Slot}
	text := e.Message.Text()
	m.overlay = &confirm{
		title: "Send it again?", verb: "Send again", yes: sendText{[]fleet.Ref{ref}, text},
		lines: []string{"The agent may have taken it already: look at the preview first.", "", "  " + clean(firstLine(text))},
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
