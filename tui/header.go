package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cellmux/engine/fleet"
)

// header is the first row: how many panes are in which state, the engines, and
// the time.
func (m *Model) header(w int) string {
	p := m.painter
	var parts []string
	if w >= 80 {
		parts = append(parts, p.paint(tTitle, "cellmux"))
	}
	for _, s := range counted {
		n := m.count(s)
		if n == 0 && (s != fleet.Running && s != fleet.Waiting || w < 60) {
			continue
		}
		glyph, t := p.status(s)
		word := s.String()
		if s == fleet.Waiting && n > 0 {
			word = "WAITING"
		}
		if w < 80 {
			word = ""
			if s == fleet.Waiting && n > 0 {
				word = "WAIT"
			}
		}
		if n == 0 {
			t = tDim
		}
		parts = append(parts, p.paint(t, strings.TrimRight(glyph+" "+strconv.Itoa(n)+" "+word, " ")))
	}
	left := " " + strings.Join(parts, "  ")
	clock := time.Now().Local().Format("15:04") + " "
	room := w - width(left) - width(clock) - 2
	middle := m.headerMiddle(room)
	return p.fit(left, w-width(middle)-width(clock)-2) + middle + "  " + p.paint(tDim, clock)
}

// headerMiddle is the most important of long work, tmux's silence and engines
// that fits.
func (m *Model) headerMiddle(room int) string {
	p := m.painter
	room -= 2
	if len(m.snapshot.Work) > 0 {
		text := m.workText(m.snapshot.Work[0])
		return p.paint(tFocus, p.fit(text, min(room, width(text))))
	}
	if m.serverSilent(time.Now()) {
		text := "tmux gives no answer"
		return p.paint(tDead, p.fit(text, min(room, width(text))))
	}
	var shown []string
	used := 0
	for _, e := range m.snapshot.Engines {
		text, t := e.Kind+" ok", tDim
		switch {
		case !e.Probed:
			text = e.Kind + " " + p.ellipsis
		case !e.Usable:
			text = e.Kind + " -"
		case e.Detail != "":
			text = e.Kind + " " + clean(e.Detail)
		}
		if used += width(text) + 2; used > room {
			break
		}
		shown = append(shown, p.paint(t, text))
	}
	if len(shown) == 0 {
		text := plural(len(m.snapshot.Cells), "cell", "cells")
		if width(text) > room || !m.known {
			return ""
		}
		return p.paint(tDim, text)
	}
	return strings.Join(shown, "  ")
}

// silenceShown is how long tmux may take before the screen says so: at the start
// it has not been asked yet.
const silenceShown = 2 * time.Second

func (m *Model) serverSilent(now time.Time) bool {
	return !m.silent.IsZero() && now.Sub(m.silent) >= silenceShown
}

// workText is a long piece of work: what, and how far.
func (m *Model) workText(w fleet.Work) string {
	text := clean(w.What)
	switch {
	case w.Total > 0:
		text += fmt.Sprintf("  %d%%", w.Done*100/w.Total)
	case w.Done > 0:
		text += fmt.Sprintf("  %d %s", w.Done, w.Unit)
	}
	return text
}

// workNote is all of it: the step, the amount, since when, and how to end it.
func (m *Model) workNote(w fleet.Work, now time.Time) string {
	text := clean(w.What)
	if w.Step != "" {
		text += ": " + clean(w.Step)
	}
	if w.Total > 0 {
		text += fmt.Sprintf("  %d of %d %s", w.Done, w.Total, w.Unit)
	} else if w.Done > 0 {
		text += fmt.Sprintf("  %d %s", w.Done, w.Unit)
	}
	return text + "  for " + age(now.Sub(w.Started)) + "  (" + m.keys.show("cancel-work") + " ends it)"
}

// footerKeys are the bindings that work here and now, as many as fit.
func (m *Model) footerKeys(w int) string {
	p := m.painter
	var parts []string
	used := 1
	show := func(b *binding, word string) bool {
		n := width(b.showFirst()) + 1 + width(word) + 2
		if used+n > w {
			return false
		}
		used += n
		parts = append(parts, p.paint(tKey, b.showFirst())+" "+p.paint(tDim, word))
		return true
	}
	help := m.keys.byName["help"]
	if m.focus != inComposer && m.focus != inTypeIn {
		used += width(help.showFirst()) + 7
	}
	for _, where := range m.footerPlaces() {
		for i := range m.keys.table {
			b := &m.keys.table[i]
			if b.place != where || b.footer == "" || len(b.keys) == 0 || b.name == "help" || m.off(b.name) != "" {
				continue
			}
			word := b.footer
			if b.name == "attach" {
				word = m.enterWord()
			}
			if !show(b, word) {
				break
			}
		}
	}
	if m.focus != inComposer && m.focus != inTypeIn {
		parts = append(parts, p.paint(tKey, help.showFirst())+" "+p.paint(tDim, "help"))
	}
	return p.fit(" "+strings.Join(parts, "  "), w)
}

func (b *binding) showFirst() string {
	if len(b.keys) == 0 {
		return ""
	}
	return showKey(b.keys[0])
}

func (m *Model) footerPlaces() []place {
	switch m.focus {
	case inComposer, inTypeIn:
		return []place{m.focus}
	case inLog:
		return []place{inLog, anywhere}
	}
	return []place{inList, anywhere}
}

// enterWord is what Enter does on the selected row.
func (m *Model) enterWord() string {
	r, ok := m.list.current()
	cell, slot := m.list.target()
	switch {
	case !ok:
		return "attach"
	case r.outside != nil:
		return "switch to it"
	case cell.Offered && slot == nil, slot == nil:
		return "open"
	case slot.Pane == "":
		return "restart"
	}
	return "attach"
}

// noteLife is how long a message stands that no key has taken away; what went
// wrong stands until a key is pressed.
const noteLife = 15 * time.Second

// noteRows is the most that a message may take of the screen.
const noteRows = 6

// footer is the rows below the body: the keys and the message line. A message
// that does not fit in one row takes the place of the keys, and then of the last
// rows of the body, until a key is pressed: half a sentence has no next step.
func (m *Model) footer(w int) []string {
	right := m.footerRight()
	text, t := m.message()
	if !m.list.filter.open && text == m.noteNow() && text != "" {
		if rows := wrap(text, w-2); width(text) > w-1-width(right) && len(rows) > 1 {
			if most := min(noteRows, m.height/2); len(rows) > most {
				rows = append(rows[:most-1], strings.Join(rows[most-1:], " "))
			}
			for i := range rows {
				rows[i] = m.painter.paint(t, m.painter.fit(" "+rows[i], w))
			}
			return rows
		}
	}
	return []string{m.footerKeys(w), m.footerNote(w, text, t, right)}
}

// footerRight is what stands at the end of the message line.
func (m *Model) footerRight() string {
	if m.pressed != "" {
		return showKey(m.pressed) + "- "
	}
	if left := time.Until(m.undo); left > 0 {
		return "undo: " + m.keys.show("undo") + " (" + age(left+time.Second-1) + ") "
	}
	return ""
}

// footerNote is the last row: the filter's field, a message, or who waits; and
// at its right what can be undone.
func (m *Model) footerNote(w int, text string, t token, right string) string {
	p := m.painter
	room := w - width(right)
	if m.list.filter.open {
		rows, column, row := m.list.filter.field.view(room-4, 0)
		return p.fit(" "+p.paint(tFocus, "/")+" "+p.cursorIn(rows[row], column), room) + p.paint(tDim, right)
	}
	return p.paint(t, p.fit(" "+text, room)) + p.paint(tDim, right)
}

// message is what the message line says now.
func (m *Model) message() (string, token) {
	text, t := m.noteNow(), tText
	if m.note.alarm {
		t = tDead
	}
	if text == "" {
		text, t = m.standing(time.Now())
		if m.painter.ascii {
			text = plain(text)
		}
	}
	return text, t
}

// noteNow is the message that still stands, "" when none does.
func (m *Model) noteNow() string {
	if !m.note.alarm && time.Since(m.note.at) > noteLife {
		return ""
	}
	if m.painter.ascii {
		return plain(m.note.text)
	}
	return m.note.text
}

// standing is what the message line says when nothing happened.
func (m *Model) standing(now time.Time) (string, token) {
	if m.serverSilent(now) {
		return clean(m.snapshot.Server), tDead
	}
	if len(m.snapshot.Work) > 0 {
		return m.workNote(m.snapshot.Work[0], now), tFocus
	}
	if cell, _ := m.list.target(); cell != nil {
		switch {
		case cell.Problem != "":
			return clean(cell.Problem), tDead
		case cell.Approval != "":
			return clean(cell.Approval) + "  (:trust)", tWaiting
		case cell.Guest.Trouble != "":
			return upperFirst(clean(cell.Guest.Trouble)), tDead
		case cell.Guest.Restart != "":
			return m.restartNote(cell), tWaiting
		}
	}
	if r, ok := m.list.current(); ok && r.outside != nil {
		return "This pane is in your own tmux; back from it with your own tmux keys. It is never stopped or resized from here.", tDim
	}
	var oldest *fleet.Slot
	for i := range m.snapshot.Cells {
		c := &m.snapshot.Cells[i]
		for j := range c.Slots {
			s := &c.Slots[j]
			if s.Status == fleet.Waiting && !s.Archived && (oldest == nil || s.Since.Before(oldest.Since)) {
				oldest = s
			}
		}
	}
	if oldest == nil {
		return "", tText
	}
	text := m.slotName(oldest) + " waits"
	if !oldest.Since.IsZero() {
		text = m.slotName(oldest) + " has waited " + age(now.Sub(oldest.Since))
	}
	if oldest.Question != "" {
		text += ": " + clean(oldest.Question)
	}
	return text, tWaiting
}
