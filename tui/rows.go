package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cellmux/engine/fleet"
)

// A painter draws with a theme's styles and glyphs.
type painter struct {
	*styles
	*glyphs
}

// A segment is a part of a row that already has its exact width.
type segment struct {
	token token
	text  string
}

// join paints segments side by side; in a selected row everything is reverse,
// so that it reads in every theme.
func (p *painter) join(selected bool, segments ...segment) string {
	out := ""
	for _, s := range segments {
		if p.ascii {
			s.text = plain(s.text)
		}
		if selected {
			out += s.text
		} else {
			out += p.paint(s.token, s.text)
		}
	}
	if selected {
		return p.paint(tSelected, out)
	}
	return out
}

// A rowView is all that a row's picture depends on, so that a picture can be
// kept until one of these changes.
type rowView struct {
	kind                         rowKind
	width                        int
	selected, marked, folded     bool
	number                       int
	name, engine, git, age, text string
	status                       fleet.Status
	pinned, archived, offered    bool
	problem                      bool
}

// columns of the list, by width.
type columns struct{ engine, git, age int }

func columnsFor(w int) columns {
	switch {
	case w >= 44:
		return columns{engine: 8, git: 10, age: 4}
	case w >= 36:
		return columns{engine: 7, git: 0, age: 4}
	}
	return columns{age: 4}
}

func (p *painter) status(s fleet.Status) (string, token) {
	switch s {
	case fleet.Waiting:
		return p.waiting, tWaiting
	case fleet.Failed:
		return p.failed, tDead
	case fleet.Running:
		return p.running, tRunning
	case fleet.Idle:
		return p.idle, tIdle
	case fleet.Dead:
		return p.dead, tDead
	case fleet.Stopped:
		return p.stopped, tIdle
	}
	return p.unknown, tDim
}

// head is the line of column names.
func (p *painter) head(w int) string {
	c := columnsFor(w)
	name := w - 5 - c.engine - c.git - c.age - gaps(c)
	text := "     " + p.fit("NAME", name)
	if c.engine > 0 {
		text += " " + p.fit("ENGINE", c.engine)
	}
	if c.git > 0 {
		text += " " + p.fit("GIT", c.git)
	}
	return p.paint(tDim, p.fit(text+" "+p.fitRight("AGE", c.age), w))
}

func gaps(c columns) int {
	n := 1
	if c.engine > 0 {
		n++
	}
	if c.git > 0 {
		n++
	}
	return n
}

// row draws a row of exactly v.width cells.
func (p *painter) row(v rowView) string {
	cursor := " "
	switch {
	case v.marked:
		cursor = p.marked
	case v.selected:
		cursor = p.selected
	}
	switch v.kind {
	case cellRow:
		return p.cellRow(v, cursor)
	case slotRow, outsideRow:
		return p.slotRow(v, cursor)
	}
	return p.join(false, segment{tDim, p.fit(" "+v.name+" ", v.width)})
}

func (p *painter) cellRow(v rowView, cursor string) string {
	c := columnsFor(v.width)
	fold := p.open
	if v.folded {
		fold = p.closed
	}
	if v.offered {
		fold = "+"
	}
	number := "  "
	if v.number > 0 && v.number < 10 {
		number = strconv.Itoa(v.number) + " "
	}
	nameToken, gitToken := tTitle, tDim
	if v.archived || v.offered {
		nameToken = tDim
	}
	if v.problem {
		nameToken = tDead
	}
	room := v.width - 5 - c.engine - c.git - c.age - gaps(c)
	segments := []segment{
		{tMarked, cursor}, {tDim, fold + " "}, {tKey, number}, {tText, ""}, {nameToken, p.fit(v.name, room)}, {tText, " "},
	}
	if c.engine > 0 {
		segments = append(segments, segment{engineToken(v.engine), p.fit(v.engine, c.engine)}, segment{tText, " "})
	}
	if c.git > 0 {
		segments = append(segments, segment{gitToken, p.fit(v.git, c.git)}, segment{tText, " "})
	}
	age := v.age
	if v.archived {
		age = p.glyphs.archived
	} else if v.pinned {
		age = p.pinned
	}
	segments = append(segments, segment{tDim, p.fitRight(age, c.age)})
	used := 5 + room + 1 + c.engine + c.git + c.age + gaps(c) - 1
	if used < v.width {
		segments = append(segments, segment{tText, spaces(v.width - used)})
	}
	return p.join(v.selected, segments...)
}

// guestSign says behind an engine's name how the cell's guest is, in a way that a
// narrow column may cut.
func guestSign(s fleet.GuestState) string {
	switch s {
	case fleet.GuestDown, fleet.GuestMissing:
		return " -"
	case fleet.GuestPaused:
		return " ="
	case fleet.GuestUnknown:
		return " ?"
	}
	return ""
}

func engineToken(engine string) token {
	if engine == string("host") || engine == "" || strings.HasSuffix(engine, " -") {
		return tDim
	}
	return tRemote
}

func (p *painter) slotRow(v rowView, cursor string) string {
	glyph, t := p.status(v.status)
	if v.archived {
		glyph, t = p.glyphs.archived, tDim
	}
	const ageWidth = 4
	nameWidth := 9
	if v.width < 44 {
		nameWidth = 7
	}
	textToken := tDim
	switch v.status {
	case fleet.Waiting, fleet.Failed, fleet.Dead:
		textToken = t
	case fleet.Running:
		textToken = tText
	}
	if v.kind == outsideRow {
		glyph, t, textToken = p.idle, tDim, tDim
	}
	room := v.width - 5 - 2 - nameWidth - 1 - 1 - ageWidth
	return p.join(v.selected,
		segment{tMarked, cursor}, segment{tText, "    "}, segment{t, p.fit(glyph, 1) + " "},
		segment{t, p.fit(v.name, nameWidth)}, segment{tText, " "},
		segment{textToken, p.fit(v.text, room)}, segment{tText, " "},
		segment{tDim, p.fitRight(v.age, ageWidth)})
}

// view is what a row of the list shows now.
func (m *Model) rowView(r row, w int, now time.Time) rowView {
	v := rowView{kind: r.id.kind, width: w, selected: r.id == m.list.selected, marked: m.list.marks[r.id], number: r.number}
	switch r.id.kind {
	case cellRow:
		c := r.cell
		v.name, v.engine, v.git = clean(c.Title), c.Engine+guestSign(c.Guest.State), clean(c.Git)
		if v.name == "" {
			v.name = c.Name
		}
		v.pinned, v.archived, v.offered, v.problem = c.Pinned, c.Archived, c.Offered, c.Problem != ""
		v.folded = m.list.collapsed[c.Name] && len(c.Slots) > 0
		switch {
		case c.Problem != "":
			v.git = "problem"
		case c.Approval != "":
			v.git = "approve?"
		case c.Offered:
			v.git = "not yet"
		case c.Guest.Word != "":
			v.git, v.problem = clean(c.Guest.Word), true
		case c.Guest.Restart != "":
			v.git = "restart?"
		}
		if since := cellSince(c); !since.IsZero() {
			v.age = age(now.Sub(since))
		}
	case slotRow:
		s := r.slot
		v.name, v.status, v.archived = s.Agent, s.Status, s.Archived
		if s.Title != "" {
			v.name = clean(s.Title)
		}
		v.text = clean(m.slotText(s))
		if !s.Since.IsZero() {
			v.age = age(now.Sub(s.Since))
		}
	case outsideRow:
		o := r.outside
		v.name, v.text = clean(o.Command), clean(o.Path)
		if o.Title != "" && o.Title != o.Command {
			v.text = clean(o.Title + "  " + o.Path)
		}
		if !o.Activity.IsZero() {
			v.age = age(now.Sub(o.Activity))
		}
	case headRow:
		v.name = clean(r.label)
	}
	return v
}

func cellSince(c *fleet.Cell) (since time.Time) {
	for i := range c.Slots {
		if s := c.Slots[i].Since; s.After(since) {
			since = s
		}
	}
	return since
}

// slotText is the sentence of a slot's row: what it asks, does, or how it ended.
func (m *Model) slotText(s *fleet.Slot) string {
	if doing := m.busy[s.Ref]; doing != "" {
		return doing
	}
	text := s.Detail
	switch s.Status {
	case fleet.Waiting:
		if s.Question != "" {
			text = s.Question
		} else if text == "" {
			text = "waits for you"
		}
	case fleet.Dead:
		text = fmt.Sprintf("exited %d  (%s: restart)", s.ExitStatus, m.keys.show("restart"))
	case fleet.Stopped:
		text = fmt.Sprintf("stopped  (%s: restart)", m.keys.show("restart"))
	case fleet.Unknown:
		if text == "" {
			text = "no answer yet"
		}
	}
	if s.Queued > 0 {
		text = fmt.Sprintf("%d queued  %s", s.Queued, text)
	}
	return text
}

// age shows a duration in at most four cells.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	case d < 1000*24*time.Hour:
		return strconv.Itoa(int(d.Hours()/24)) + "d"
	}
	return "old"
}
