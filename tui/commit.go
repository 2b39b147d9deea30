package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"cellmux/cell/git"
	"cellmux/engine/fleet"
)

// proposed is the answer to showProposal.
type proposed struct {
	cell     string
	proposal fleet.Proposal
	again    bool
	err      error
}

// committed is the answer to commitWork.
type committed struct {
	cell, commit string
	err          error
}

func (m *Model) proposalCame(p proposed) {
	if errors.Is(p.err, git.ErrNothing) {
		m.say("There is nothing to commit in " + p.cell + ".")
		return
	}
	if p.err != nil {
		m.warn(p.err)
		return
	}
	m.note = note{}
	if p.again {
		p.proposal.Notes = append([]string{"The work has changed since it was shown: this is what it is now. Your message is kept."}, p.proposal.Notes...)
	}
	m.overlay = &proposalView{cell: p.cell, shown: p.proposal}
}

// proposalView shows what would be committed; the message is asked after it.
type proposalView struct {
	cell  string
	shown fleet.Proposal
	top   int

	width int // that lines were made for
	lines []diffLine
}

type diffLine struct {
	token token
	text  string
}

func (v *proposalView) title() string {
	s := v.shown
	return fmt.Sprintf("Commit %s of %s to %s: +%d -%d", plural(s.Files, "file", "files"), v.cell, clean(s.Branch), s.Added, s.Deleted)
}

func (v *proposalView) key(m *Model, k tea.KeyMsg) ([]intent, bool) {
	switch k.String() {
	case "esc", "q", "ctrl+c":
		return nil, true
	case "enter", "c":
		return []intent{runFunction{func() { m.overlay = v.ask(m) }}}, true
	}
	v.top = scrolled(m, k, v.top, len(v.lines))
	return nil, false
}

func (v *proposalView) box(m *Model, w, h int) box {
	b := box{title: v.title(), width: min(w-4, 110), foot: "j k scroll   enter write the message   esc do nothing"}
	v.wrap(b.width)
	room := max(1, h-2)
	v.top = max(0, min(v.top, len(v.lines)-room))
	for _, l := range v.lines[v.top:min(len(v.lines), v.top+room)] {
		b.lines = append(b.lines, m.painter.paint(l.token, l.text))
	}
	return b
}

// wrap makes lines of a width. Long ones are broken, never cut: what is
// committed must not hide beyond an edge.
func (v *proposalView) wrap(w int) {
	if v.width == w {
		return
	}
	v.width, v.lines = w, nil
	for _, note := range v.shown.Notes {
		for _, l := range wrap(clean(note), w) {
			v.lines = append(v.lines, diffLine{tWaiting, l})
		}
	}
	for line := range strings.SplitSeq(strings.TrimRight(v.shown.Diff, "\n"), "\n") {
		t := diffToken(line)
		text := clean(strings.ReplaceAll(line, "\t", "    "))
		for l := range strings.SplitSeq(ansi.Hardwrap(text, w, true), "\n") {
			v.lines = append(v.lines, diffLine{t, l})
		}
	}
}

// ask is the last step: Enter with a message commits what was shown.
func (v *proposalView) ask(m *Model) *form {
	f := &form{title: v.title(), fields: []field{{label: "Message", hint: "enter commits exactly what was shown; no hook runs"}}}
	f.fields[0].editor.set(m.drafts[v.cell])
	f.submit = func(values []string) (intent, string) {
		if values[0] == "" {
			return nil, "A commit needs a message: what was done, and why."
		}
		return commitWork{cell: v.cell, message: values[0], shown: v.shown}, ""
	}
	return f
}

func (m *Model) commitNow(i commitWork) tea.Cmd {
	m.drafts[i.cell] = i.message
	m.say("Committing the work of " + i.cell + " …")
	return m.call(slowly, func(ctx context.Context) tea.Msg {
		commit, err := m.ports.Fleet.Commit(ctx, i.cell, i.shown, i.message)
		return committed{i.cell, commit, err}
	})
}

// commitCame says what became of it. Work that has changed is shown anew; the
// message is kept for it.
func (m *Model) commitCame(c committed) tea.Cmd {
	switch {
	case errors.Is(c.err, git.ErrChanged) && m.overlay == nil:
		return m.perform(showProposal{c.cell, true})
	case c.err != nil:
		m.warn(c.err)
		return nil
	}
	delete(m.drafts, c.cell)
	m.say("Committed the work of " + c.cell + " as " + c.commit[:min(len(c.commit), 12)] + ".")
	return nil
}
