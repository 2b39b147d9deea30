package tui

import (
	"context"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
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
	talk       talk // the Conversation tab
	diff       string
	facts      []fleet.Fact
	up         int // lines scrolled up from the end

	lines    []string // as last drawn
	linesFor int      // the width they were drawn for; 0: what they show has changed
}

func (m *Model) switchTab(step int) tea.Cmd {
	t := &m.tabs
	t.current = (t.current + tab(step) + tabCount) % tabCount
	t.up, t.talk.apart = 0, false
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
		t.talk.page, t.diff, t.facts, t.lines, t.loading, t.err = nil, "", nil, nil, false, nil
		return nil
	}
	t.loading = true
	switch current {
	case conversationTab:
		if slot == nil {
			t.talk.page, t.lines, t.loading = nil, nil, false
			return nil
		}
		return m.loadTalk(slot.Ref, g)
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

// forget empties the tabs: the selection has moved.
func (t *tabs) forget() {
	t.generation++
	t.loading = t.current != previewTab
	t.talk.page, t.talk.apart, t.talk.marked = nil, false, 0
	t.diff, t.facts, t.lines, t.err, t.up = "", nil, nil, nil, 0
}

func (t *tabs) loaded(m *Model, l tabLoaded) {
	if l.generation != t.generation || l.tab != t.current {
		return
	}
	t.loading, t.err, t.linesFor = false, l.err, 0
	if l.err != nil {
		return
	}
	switch l.tab {
	case conversationTab:
		t.talk.loaded(l)
	case diffTab:
		t.diff = l.diff
	case infoTab:
		t.facts = l.facts
	}
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
	case t.current == conversationTab && len(t.talk.page) == 0:
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
			at := t.talk.anchor(t.up)
			t.lines = m.talkLines(w)
			t.up = t.talk.place(t.up, at, h)
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
		lines = append(lines, p.paint(diffToken(line), text))
	}
	return lines
}

// diffToken is the colour of a line of a unified diff, by its first column.
func diffToken(line string) token {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
		return tTitle
	case strings.HasPrefix(line, "@@"):
		return tFocus
	case strings.HasPrefix(line, "+"):
		return tAdded
	case strings.HasPrefix(line, "-"):
		return tRemoved
	}
	return tText
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
