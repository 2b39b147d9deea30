package tui

import "cellmux/engine/fleet"

// move goes n selectable rows down, or up, and stops at the ends.
func (l *list) move(n int) {
	i := l.index()
	if i < 0 {
		l.selectFirst()
		return
	}
	step := 1
	if n < 0 {
		step, n = -1, -n
	}
	for j := i + step; n > 0 && j >= 0 && j < len(l.rows); j += step {
		if l.rows[j].id.kind != headRow {
			l.selected = l.rows[j].id
			n--
		}
	}
}

func (l *list) first() {
	for _, r := range l.rows {
		if r.id.kind != headRow {
			l.selected = r.id
			return
		}
	}
}

func (l *list) last() {
	for i := len(l.rows) - 1; i >= 0; i-- {
		if l.rows[i].id.kind != headRow {
			l.selected = l.rows[i].id
			return
		}
	}
}

// moveCell goes to the next or previous cell row, or outside pane.
func (l *list) moveCell(step int) {
	for j := l.index() + step; j >= 0 && j < len(l.rows); j += step {
		if l.rows[j].id.kind == cellRow {
			l.selected = l.rows[j].id
			return
		}
	}
}

// jump selects the cell with a number and tells whether there is one.
func (l *list) jump(number int) bool {
	for _, r := range l.rows {
		if r.id.kind == cellRow && r.number == number {
			l.selected = r.id
			return true
		}
	}
	return false
}

// nextWaiting goes round to the next pane that waits, unfolding its cell.
func (l *list) nextWaiting(step int) bool {
	var waiting []rowID
	at := -1
	for _, c := range l.visibleCells() {
		if l.selected.kind == cellRow && l.selected.cell == c.Name {
			at = len(waiting)
			if step < 0 {
				at--
			}
		}
		for i := range c.Slots {
			s := &c.Slots[i]
			id := idOf(s.Ref)
			if s.Status == fleet.Waiting && (!s.Archived || l.archived) {
				waiting = append(waiting, id)
			}
			if l.selected == id {
				switch {
				case s.Status == fleet.Waiting && step > 0:
					at = len(waiting)
				case s.Status == fleet.Waiting:
					at = len(waiting) - 2
				case step > 0:
					at = len(waiting)
				default:
					at = len(waiting) - 1
				}
			}
		}
	}
	if len(waiting) == 0 {
		return false
	}
	next := waiting[((at%len(waiting))+len(waiting))%len(waiting)]
	delete(l.collapsed, next.cell)
	l.selected = next
	l.rebuild()
	return true
}

// collapse folds the selected cell; expand unfolds it.
func (l *list) collapse() {
	if l.selected.kind == cellRow || l.selected.kind == slotRow {
		l.collapsed[l.selected.cell] = true
		l.selected = rowID{kind: cellRow, cell: l.selected.cell}
		l.rebuild()
	}
}

func (l *list) expand() {
	if l.selected.kind == cellRow && l.collapsed[l.selected.cell] {
		delete(l.collapsed, l.selected.cell)
		l.rebuild()
	}
}

// mark marks the selected row, or takes the mark away, and moves on. A cell's
// mark stands for its panes.
func (l *list) mark() {
	if l.anchor.kind != noRow {
		l.endRange()
		return
	}
	if l.selected.kind == slotRow || l.selected.kind == cellRow {
		if l.marks[l.selected] {
			delete(l.marks, l.selected)
		} else {
			l.marks[l.selected] = true
		}
		l.move(1)
	}
}

// startRange begins a range at the selection, or ends the one that is open.
func (l *list) startRange() {
	if l.anchor.kind != noRow {
		l.endRange()
		return
	}
	l.anchor = l.selected
}

func (l *list) endRange() {
	for _, id := range l.ranged() {
		l.marks[id] = true
	}
	l.anchor = rowID{}
}

// ranged are the rows between the anchor and the selection.
func (l *list) ranged() []rowID {
	if l.anchor.kind == noRow {
		return nil
	}
	from, to := -1, l.index()
	for i, r := range l.rows {
		if r.id == l.anchor {
			from = i
		}
	}
	if from < 0 || to < 0 {
		return nil
	}
	if from > to {
		from, to = to, from
	}
	var ids []rowID
	for _, r := range l.rows[from : to+1] {
		if r.id.kind == slotRow || r.id.kind == cellRow {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// unmark takes every mark away and tells whether there was one.
func (l *list) unmark() bool {
	had := len(l.marks) > 0 || l.anchor.kind != noRow
	clear(l.marks)
	l.anchor = rowID{}
	return had
}

// forgetMarks drops marks of what no longer exists, so that a bulk action never
// names more than the user sees.
func (l *list) forgetMarks() {
	for id := range l.marks {
		if !l.has(id) {
			delete(l.marks, id)
		}
	}
	if l.anchor.kind != noRow && !l.has(l.anchor) {
		l.anchor = rowID{}
	}
}

// marked returns the slots that are marked, in the order of the list; a marked
// cell gives all its slots.
func (l *list) marked() []fleet.Ref {
	var refs []fleet.Ref
	ranged := map[rowID]bool{}
	for _, id := range l.ranged() {
		ranged[id] = true
	}
	seen := map[fleet.Ref]bool{}
	add := func(r fleet.Ref) {
		if !seen[r] {
			seen[r] = true
			refs = append(refs, r)
		}
	}
	for _, r := range l.rows {
		if !l.marks[r.id] && !ranged[r.id] {
			continue
		}
		switch r.id.kind {
		case slotRow:
			add(r.id.ref())
		case cellRow:
			for i := range r.cell.Slots {
				add(r.cell.Slots[i].Ref)
			}
		}
	}
	return refs
}

// scroll keeps the selection in a window of h rows.
func (l *list) scroll(h int) {
	i := max(l.index(), 0)
	if h <= 0 {
		return
	}
	if i > 0 && l.rows[i-1].id.kind == headRow {
		l.top = min(l.top, i-1)
	}
	l.top = min(l.top, i)
	l.top = max(l.top, i-h+1)
	l.top = max(0, min(l.top, len(l.rows)-h))
}
