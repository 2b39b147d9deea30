package tui

import (
	"cellmux/shellctx/run"
)

// prompt says where the text goes and what becomes of it.
func (m *Model) prompt() (text string, t token) {
	c := &m.composer
	read := readComposed(c.field.text)
	if !read.Shell {
		if len(c.refs) > 1 {
			return "m " + plural(len(c.refs), "pane", "panes") + " > ", tWaiting
		}
		text, t = "m "+m.refName(c.ref)+" > ", tFocus
		return text, t
	}
	where := clean(c.where)
	if where == "" {
		where = "…"
		if m.painter.ascii {
			where = "..."
		}
	}
	switch c.mode(read) {
	case run.Private:
		return "!! " + where + " $ ", tRemote
	case run.Ask:
		return "!? " + where + " $ [ask] ", tWaiting
	}
	return "! " + where + " $ ", tFocus
}

// composerLines are the rows of the composer, at most h of w cells, and the
// cell in which the cursor stands.
func (m *Model) composerLines(w, h int) (lines []string, column, row int) {
	p := m.painter
	c := &m.composer
	prompt, t := m.prompt()
	read := readComposed(c.field.text)
	indent := min(width(prompt), w/2)
	prompt = p.fit(prompt, indent)
	rows, column, row := c.field.view(w-indent, read.marks)
	if c.field.cursor < read.marks { // on a mark: show it where the text begins
		column, row = 0, 0
	}
	top := 0
	if row >= h {
		top = row - h + 1
	}
	rows = rows[top:min(len(rows), top+h)]
	for i, r := range rows {
		if p.ascii {
			r = plain(r)
		}
		head := spaces(indent)
		if i == 0 {
			head = p.paint(t, prompt)
		}
		if i == row-top {
			r = p.cursorIn(r, column)
		}
		lines = append(lines, head+r)
	}
	return lines, indent + column, row - top
}

// cursorIn shows the cursor's cell in reverse, for terminals that are slow to
// move theirs.
func (p *painter) cursorIn(r string, column int) string {
	before, at, after := cutCells(r, column)
	return before + p.paint(tSelected, at) + after
}
