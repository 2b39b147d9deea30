package tui

import (
	"strconv"
	"strings"
	"time"

	"cellmux/engine/fleet"
)

// View draws the screen from state alone: exactly height rows of width cells.
func (m *Model) View() string {
	if m.width <= 0 || m.height <= 0 {
		return ""
	}
	a := m.layout()
	if a.tooSmall {
		return strings.Join(m.tooSmall(), "\n")
	}
	rows := make([]string, 0, m.height)
	rows = append(rows, m.header(m.width))
	rows = append(rows, m.body(a)...)
	if m.overlay != nil {
		over := m.drawOver(rows[headerRows:], m.overlay.box(m, m.width, a.body.h), m.width, a.body.h)
		copy(rows[headerRows:], over)
	}
	footer := m.footer(m.width)
	rows = append(rows[:m.height-len(footer)], footer...)
	return strings.Join(rows, "\n")
}

func (m *Model) tooSmall() []string {
	text := "cellmux needs 40x12 cells; this is " + strconv.Itoa(m.width) + "x" + strconv.Itoa(m.height) + ". q quits."
	rows := wrap(text, m.width)
	for len(rows) < m.height {
		rows = append(rows, "")
	}
	rows = rows[:m.height]
	for i := range rows {
		rows[i] = m.painter.fit(rows[i], m.width)
	}
	return rows
}

// body draws the parts, each row exactly as wide as the screen.
func (m *Model) body(a areas) []string {
	var left, right []string
	if a.list.h > 0 {
		left = append(left, m.title(a.list.w, m.focus == inList, "[1] "+m.listTitle(), m.listSide()))
		if a.head {
			left = append(left, m.painter.head(a.list.w))
		}
		left = append(left, m.fill(m.listLines(a.list.w, a.list.h), a.list.w, a.list.h)...)
	}
	if a.preview.h > 0 {
		right = append(right, m.previewTitle(a.preview.w))
		right = append(right, m.inset(m.previewPart(a.preview.w-1, a.preview.h), a.preview)...)
	}
	if a.log.h > 0 {
		focused := m.focus == inLog || m.focus == inComposer
		right = append(right, m.title(a.log.w, focused, "[3] Shell log", m.logSide()))
		entries, prompt := a.log, a.log
		entries.h, prompt.h = a.log.h-a.composer, a.composer
		right = append(right, m.inset(m.logLines(entries.w-1, entries.h), entries)...)
		right = append(right, m.inset(m.promptLines(prompt.w-1, prompt.h), prompt)...)
	}
	if !a.columns {
		return append(left, right...)
	}
	rows := make([]string, len(left))
	for i := range left {
		rows[i] = m.besides(left[i], right[i], a.list.w, i)
	}
	return rows
}

// besides puts two parts in one row. The separator is put in its column by the
// terminal itself, so that a character which the terminal takes for wider than
// we do shifts nothing to its right.
func (m *Model) besides(left, right string, w, row int) string {
	p := m.painter
	at := ""
	if strings.ContainsFunc(left, func(r rune) bool { return r >= 0x80 }) {
		at = "\x1b[" + strconv.Itoa(w+1) + "G"
	}
	edge := p.vertical
	if row == 0 {
		edge = p.teeDown
	} else if strings.HasPrefix(right, m.lineStart()) {
		edge = p.teeRight
	}
	return left + at + p.paint(tDim, edge) + right
}

func (m *Model) lineStart() string { return m.painter.paint(tDim, m.painter.horizontal) }

// fill makes exactly h rows of exactly w cells.
func (m *Model) fill(lines []string, w, h int) []string {
	out := make([]string, 0, h)
	for _, l := range lines {
		if len(out) == h {
			break
		}
		if width(l) != w {
			l = m.painter.fit(l, w)
		}
		out = append(out, l)
	}
	for len(out) < h {
		out = append(out, spaces(w))
	}
	return out
}

// inset fills a part, one cell in from its left edge.
func (m *Model) inset(lines []string, r rect) []string {
	out := m.fill(lines, r.w-1, r.h)
	for i := range out {
		out[i] = " " + out[i]
	}
	return out
}

// title is the line over a part: its name at the left, more at the right.
func (m *Model) title(w int, focused bool, name, side string) string {
	p := m.painter
	t := tTitle
	if focused {
		t = tFocus
	}
	if p.ascii {
		name, side = plain(name), plain(side)
	}
	if width(name) > w-6 {
		name = p.fit(name, w-6)
	}
	if room := w - width(name) - 6; width(side) > room {
		side = p.fit(side, max(0, room))
	}
	fill := w - 1 - width(name) - 2
	end := ""
	if side != "" {
		fill -= width(side) + 3
		end = " " + p.paint(tDim, side) + " " + m.lineStart()
	}
	return m.lineStart() + p.paint(t, name) + " " + p.paint(tDim, strings.Repeat(p.horizontal, max(0, fill)+1)) + end
}

func (m *Model) listTitle() string {
	switch {
	case m.list.filter.active() || m.list.filter.open:
		return "Cells matching " + clean(m.list.filter.field.text)
	case m.list.archived:
		return "Cells, archived too"
	}
	return "Cells"
}

func (m *Model) listSide() string {
	side := "sort: " + m.list.sort
	if m.list.group != "" {
		side = "by " + m.list.group
	}
	if n := len(m.list.marked()); n > 0 {
		side = plural(n, "marked", "marked")
	}
	return side
}

func (m *Model) logSide() string {
	if c, s := m.list.target(); s != nil {
		return "in " + c.Engine + ":" + c.Name
	} else if c != nil {
		return c.Engine + ":" + c.Name
	}
	return ""
}

// previewTitle shows the tabs and whose they are; in type-in mode it shouts.
func (m *Model) previewTitle(w int) string {
	p := m.painter
	if m.focus == inTypeIn {
		text := " TYPE-IN: keys go to " + m.typeInName() + ". " + m.keys.show("stop-typing") + " leaves "
		if m.asking() {
			text = " TYPE-IN, AND IT ASKS: your next key answers " + m.typeInName() + ". " + m.keys.show("stop-typing") + " leaves "
		}
		return p.paint(tAlarm, p.fit(text, w))
	}
	name := "[2]"
	shown := p.paint(map[bool]token{true: tFocus, false: tTitle}[m.focus == inPreview], name)
	used := width(name)
	for i := range tabCount {
		label := tabNames[i]
		if w < 50 && i != m.tabs.current {
			label = label[:1]
		}
		t := tDim
		if i == m.tabs.current {
			t = tTitle
			if m.focus == inPreview {
				t = tFocus
			}
		}
		if i > 0 {
			shown += p.paint(tDim, " "+p.vertical)
			used += 2
		}
		shown += " " + p.paint(t, label)
		used += 1 + width(label)
	}
	side := m.previewSide()
	if p.ascii {
		side = plain(side)
	}
	room := w - used - 6
	if width(side) > room {
		side = p.fit(side, max(0, room))
	}
	end := ""
	fill := w - 1 - used - 2
	if side != "" {
		fill -= width(side) + 3
		end = " " + p.paint(tDim, side) + " " + m.lineStart()
	}
	return p.fit(m.lineStart()+shown+" "+p.paint(tDim, strings.Repeat(p.horizontal, max(0, fill)+1))+end, w)
}

func (m *Model) typeInName() string {
	if _, slot := m.list.target(); slot != nil {
		return m.slotName(slot)
	}
	return "the pane"
}

func (m *Model) previewSide() string {
	r, ok := m.list.current()
	if !ok {
		return ""
	}
	side := ""
	if m.preview.up > 0 && m.tabs.current == previewTab {
		side = strconv.Itoa(m.preview.up) + " up  "
	}
	if r.outside != nil {
		return side + clean(r.outside.Session+" "+r.outside.Pane)
	}
	cell, slot := m.list.target()
	if slot == nil {
		return side + cell.Name
	}
	glyph, _ := m.painter.status(slot.Status)
	return side + slot.Ref.String() + " " + glyph + " " + clean(slot.Agent)
}

func (m *Model) previewPart(w, h int) []string {
	if m.tabs.current == previewTab || m.focus == inTypeIn {
		return m.previewLines(w, h)
	}
	return m.tabLines(w, h)
}

// promptLines are the composer, or what would open it.
func (m *Model) promptLines(w, h int) []string {
	if m.focus == inComposer {
		lines, _, _ := m.composerLines(w, h)
		return lines
	}
	hint := m.keys.show("message") + " message   " + m.keys.show("shell") + " shell"
	if len(m.log.live) > 0 && m.focus == inLog {
		hint = m.keys.show("log-cancel") + " cancels   " + hint
	}
	if n := len(m.composer.drafts); n > 0 {
		hint += "   " + plural(n, "draft", "drafts") + " kept"
	}
	return []string{m.painter.paint(tDim, hint)}
}

// listLines draws the rows in sight, from pictures kept of earlier frames.
func (m *Model) listLines(w, h int) []string {
	m.list.scroll(h)
	if len(m.list.rows) == 0 {
		text := "No cells. " + m.keys.show("new") + " makes one."
		switch {
		case !m.known:
			text = "Reading the list …"
		case m.list.filter.active():
			text = "Nothing matches. esc shows everything."
		}
		if m.painter.ascii {
			text = plain(text)
		}
		return []string{" " + text}
	}
	if len(m.pictures) > 4096 {
		clear(m.pictures)
	}
	now := time.Now()
	ranged := map[rowID]bool{}
	for _, id := range m.list.ranged() {
		ranged[id] = true
	}
	var lines []string
	for _, r := range m.list.rows[m.list.top:min(len(m.list.rows), m.list.top+h)] {
		v := m.rowView(r, w, now)
		v.marked = v.marked || ranged[r.id]
		picture, ok := m.pictures[v]
		if !ok {
			picture = m.painter.row(v)
			m.pictures[v] = picture
		}
		lines = append(lines, picture)
	}
	return lines
}

// placeCursor tells the terminal where the user types, for input methods.
func (m *Model) placeCursor() {
	if m.focus != inComposer || m.overlay != nil {
		m.device.HideCursor()
		return
	}
	a := m.layout()
	if a.tooSmall || a.composer == 0 {
		m.device.HideCursor()
		return
	}
	_, column, row := m.composerLines(a.log.w-1, a.composer)
	m.device.SetCursor(a.log.x+1+column, a.log.y+a.log.h-a.composer+row)
}

// statuses that the header counts.
var counted = []fleet.Status{fleet.Running, fleet.Waiting, fleet.Failed, fleet.Idle, fleet.Dead}
