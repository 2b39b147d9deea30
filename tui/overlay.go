package tui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// An overlay is a box over the screen that takes the keys until it is closed.
type overlay interface {
	// key returns what the user wants, and whether the box closes.
	key(m *Model, k tea.KeyMsg) (intents []intent, closed bool)
	// box draws it for a body of w by h cells.
	box(m *Model, w, h int) box
}

// A paster is an overlay that takes pasted text.
type paster interface {
	paste(m *Model, text string) []intent
}

// box is what an overlay looks like: lines that the frame cuts to its width.
type box struct {
	title string
	lines []string
	foot  string // the keys that work here
	width int    // of a line
	alarm bool
}

// confirm asks before something is lost. The answer is No until the user says
// otherwise; Enter takes what is chosen.
type confirm struct {
	title string
	lines []string
	verb  string // of Yes: "Stop"
	yes   intent
	no    intent // nil does nothing
	onYes bool
}

func (c *confirm) key(_ *Model, k tea.KeyMsg) ([]intent, bool) {
	switch k.String() {
	case "y", "Y":
		return []intent{c.yes}, true
	case "n", "N", "q":
		return []intent{c.no}, true
	case "esc", "ctrl+c":
		return nil, true
	case "left", "right", "h", "l", "tab", "shift+tab":
		c.onYes = !c.onYes
	case "enter":
		if c.onYes {
			return []intent{c.yes}, true
		}
		return []intent{c.no}, true
	}
	return nil, false
}

func (c *confirm) box(m *Model, w, h int) box {
	b := box{title: c.title, width: min(w-4, 76), alarm: true, foot: "y " + strings.ToLower(c.verb) + "   n no   enter what is chosen"}
	lines := c.lines
	var body []string
	for _, l := range lines {
		body = append(body, wrap(l, b.width)...)
	}
	if most := h - 5; len(body) > most && most > 1 { // the buttons must be in sight
		body = append(body[:most-1], plural(len(body)-most+1, "more line", "more lines"))
	}
	no, yes := " No ", " "+c.verb+" "
	if c.onYes {
		no, yes = "["+strings.TrimSpace(no)+"]", m.painter.paint(tSelected, "["+strings.TrimSpace(yes)+"]")
		no = " " + strings.Trim(no, "[]") + " "
	} else {
		no = m.painter.paint(tSelected, "[No]")
	}
	b.lines = append(body, "", no+"   "+yes)
	return b
}

// pager shows text to read, wrapped to its box.
type pager struct {
	title string
	lines []string
	hang  int  // where a line goes on that was wrapped
	top   int  // first row in sight
	end   bool // begin at the end

	rows    []string // the lines, wrapped to the width below
	wrapped int
}

func (p *pager) key(m *Model, k tea.KeyMsg) ([]intent, bool) {
	switch k.String() {
	case "esc", "q", "enter", "ctrl+c", "?", "f1":
		return nil, true
	case "y":
		return []intent{copyText{p.title, strings.Join(p.lines, "\n")}}, false
	}
	p.top = scrolled(m, k, p.top, len(p.rows))
	return nil, false
}

// scrolled is the first row in sight of a box of text after a key. Who draws the
// box keeps it among the rows.
func scrolled(m *Model, k tea.KeyMsg, top, rows int) int {
	page := max(1, m.height-8)
	switch k.String() {
	case "j", "down":
		return top + 1
	case "k", "up":
		return top - 1
	case "pgdown", " ", "ctrl+d", "J":
		return top + page
	case "pgup", "ctrl+u", "K":
		return top - page
	case "g", "home":
		return 0
	case "G", "end":
		return rows
	}
	return top
}

func (p *pager) box(m *Model, w, h int) box {
	b := box{title: p.title, width: min(w-4, 110), foot: "j k scroll   y copy   esc close"}
	room := max(1, h-2)
	if p.wrapped != b.width {
		p.rows, p.wrapped = nil, b.width
		for _, line := range p.lines {
			p.rows = append(p.rows, wrapHanging(line, b.width, p.hang)...)
		}
	}
	if p.end {
		p.top, p.end = len(p.rows), false
	}
	p.top = max(0, min(p.top, len(p.rows)-room))
	b.lines = p.rows[p.top:min(len(p.rows), p.top+room)]
	if len(b.lines) == 0 {
		b.lines = []string{"There is nothing here yet."}
	}
	return b
}

// drawOver puts a box on a frame of w by h cells.
func (m *Model) drawOver(frame []string, b box, w, h int) []string {
	p := m.painter
	inner := min(b.width, w-4)
	if inner < 1 {
		return frame
	}
	border := tFocus
	if b.alarm {
		border = tWaiting
	}
	edge := func(left, text, right string) string {
		text = p.fit(text, min(width(text), inner))
		return p.paint(border, left+p.horizontal) + text + p.paint(border, strings.Repeat(p.horizontal, max(0, inner+1-width(text)))+right)
	}
	lines := b.lines
	if most := h - 2; len(lines) > most {
		lines = lines[:max(0, most)]
	}
	rows := []string{edge(p.topLeft, p.paint(tTitle, " "+b.title+" "), p.topRight)}
	for _, l := range lines {
		if p.ascii {
			l = plain(l)
		}
		rows = append(rows, p.paint(border, p.vertical)+" "+p.fit(l, inner)+" "+p.paint(border, p.vertical))
	}
	foot := ""
	if b.foot != "" {
		foot = " " + b.foot + " "
	}
	rows = append(rows, edge(p.bottomLeft, p.paint(tDim, foot), p.bottomRight))
	left, top := (w-inner-4)/2, max(0, (len(frame)-len(rows))/2)
	for i, r := range rows {
		if top+i >= len(frame) {
			break
		}
		frame[top+i] = overwrite(frame[top+i], r, left, inner+4)
	}
	return frame
}
