package tui

import (
	"cmp"
	"slices"
	"time"

	"cellmux/engine/fleet"
)

// A rowID names a row for as long as what it shows exists: the selection, the
// marks and the drafts follow it, never an index.
type rowID struct {
	kind rowKind
	cell string
	slot int
	pane string // of an outside pane
}

type rowKind int

const (
	noRow rowKind = iota
	cellRow
	slotRow
	outsideRow
	headRow // a group's or a section's name; it cannot be selected
)

func (id rowID) ref() fleet.Ref {
	if id.kind == cellRow {
		return fleet.Ref{Cell: id.cell, Slot: fleet.WholeCell}
	}
	return fleet.Ref{Cell: id.cell, Slot: id.slot}
}

func idOf(r fleet.Ref) rowID {
	if r.Slot < 0 {
		return rowID{kind: cellRow, cell: r.Cell}
	}
	return rowID{kind: slotRow, cell: r.Cell, slot: r.Slot}
}

// A row is one line of the list.
type row struct {
	id      rowID
	cell    *fleet.Cell // of cellRow and slotRow
	slot    *fleet.Slot
	outside *fleet.Outside
	number  int    // of a cell: 1-based
	label   string // of headRow
}

// list is the cells and their panes. It decides what is shown in which order
// and what is selected; it draws in rows.go.
type list struct {
	cells     []fleet.Cell
	outside   []fleet.Outside
	rows      []row
	selected  rowID
	at        int   // where selected was found last
	wanted    rowID // select it as soon as it exists
	previous  rowID // the pane that was used before, for "-"
	used      rowID // the pane that was attached to, typed into or written to last
	top       int
	collapsed map[string]bool
	marks     map[rowID]bool
	anchor    rowID // where a range began; noRow: no range
	filter    filter
	sort      string
	group     string
	archived  bool           // shown too
	order     map[string]int // rank of each cell; nothing moves by itself
	directory string         // where cellmux was started
	settled   bool           // the first selection has been made
}

func newList(s Settings, directory string) list {
	l := list{collapsed: map[string]bool{}, marks: map[rowID]bool{}, sort: s.Sort, group: s.Group, directory: directory}
	if l.sort == "" {
		l.sort = "attention"
	}
	return l
}

// show takes a snapshot. Rows keep their order until the user asks for another.
func (l *list) show(s fleet.Snapshot) {
	l.cells, l.outside = s.Cells, s.Outside
	if l.order == nil {
		l.reorder()
	}
	l.rebuild()
}

// attention is how urgent a cell is: the most urgent of its slots.
func attention(c *fleet.Cell) int {
	if c.Archived {
		return 100
	}
	best := 50
	if c.Offered {
		best = 40
	}
	for i := range c.Slots {
		best = min(best, urgency(c.Slots[i].Status))
	}
	return best
}

func urgency(s fleet.Status) int {
	switch s {
	case fleet.Waiting:
		return 0
	case fleet.Failed:
		return 1
	case fleet.Dead:
		return 2
	case fleet.Running:
		return 3
	case fleet.Idle:
		return 4
	case fleet.Unknown:
		return 5
	}
	return 6
}

// reorder ranks the cells by the sort; the user asked for it.
func (l *list) reorder() {
	sorted := make([]*fleet.Cell, len(l.cells))
	for i := range l.cells {
		sorted[i] = &l.cells[i]
	}
	slices.SortStableFunc(sorted, func(a, b *fleet.Cell) int {
		if a.Pinned != b.Pinned {
			if a.Pinned {
				return -1
			}
			return 1
		}
		var by int
		switch l.sort {
		case "name":
			by = cmp.Compare(a.Name, b.Name)
		case "created":
			by = a.Created.Compare(b.Created)
		default:
			by = cmp.Compare(attention(a), attention(b))
		}
		return cmp.Or(by, cmp.Compare(a.Name, b.Name))
	})
	l.order = make(map[string]int, len(sorted))
	for i, c := range sorted {
		l.order[c.Name] = i
	}
}

// rebuild makes the rows and finds the selection again.
func (l *list) rebuild() {
	index := l.index()
	shown := l.visibleCells()
	l.rows = l.rows[:0]
	number, group := 0, ""
	for i, c := range shown {
		if l.group != "" {
			if g := l.groupOf(c); i == 0 || g != group {
				group = g
				l.rows = append(l.rows, row{id: rowID{kind: headRow, cell: g}, label: g})
			}
		}
		number++
		l.rows = append(l.rows, row{id: rowID{kind: cellRow, cell: c.Name}, cell: c, number: number})
		if l.collapsed[c.Name] && !l.filter.active() {
			continue
		}
		for j := range c.Slots {
			s := &c.Slots[j]
			if (!s.Archived || l.archived) && l.filter.matchesSlot(c, s) {
				l.rows = append(l.rows, row{id: rowID{kind: slotRow, cell: c.Name, slot: s.Ref.Slot}, cell: c, slot: s})
			}
		}
	}
	if len(l.outside) > 0 {
		var rows []row
		for i := range l.outside {
			o := &l.outside[i]
			if l.filter.matchesOutside(o) {
				rows = append(rows, row{id: rowID{kind: outsideRow, pane: o.Pane}, outside: o})
			}
		}
		if len(rows) > 0 {
			l.rows = append(l.rows, row{id: rowID{kind: headRow, cell: "\x00outside"}, label: "tmux (outside)"})
			l.rows = append(l.rows, rows...)
		}
	}
	l.reselect(index)
	l.forgetMarks()
}

// visibleCells are the cells that the filter and the archive let through.
func (l *list) visibleCells() []*fleet.Cell {
	var shown []*fleet.Cell
	for i := range l.cells {
		c := &l.cells[i]
		if (!c.Archived || l.archived) && l.filter.matchesCell(c) {
			shown = append(shown, c)
		}
	}
	rank := func(c *fleet.Cell) int {
		if r, ok := l.order[c.Name]; ok {
			return r
		}
		return len(l.order) // new ones last, by age
	}
	slices.SortStableFunc(shown, func(a, b *fleet.Cell) int {
		if l.group != "" {
			if by := cmp.Compare(l.groupOf(a), l.groupOf(b)); by != 0 {
				return by
			}
		}
		return cmp.Compare(rank(a), rank(b))
	})
	return shown
}

func (l *list) groupOf(c *fleet.Cell) string {
	switch l.group {
	case "engine":
		return c.Engine
	case "directory":
		return c.ProjectDir
	case "workspace":
		return c.Workspace
	case "status":
		best := fleet.Stopped
		for i := range c.Slots {
			if urgency(c.Slots[i].Status) < urgency(best) {
				best = c.Slots[i].Status
			}
		}
		return best.String()
	}
	return ""
}

// index of the selection, or -1. It is asked many times a frame, so the last
// answer is tried first.
func (l *list) index() int {
	if l.at >= 0 && l.at < len(l.rows) && l.rows[l.at].id == l.selected {
		return l.at
	}
	l.at = slices.IndexFunc(l.rows, func(r row) bool { return r.id == l.selected })
	return l.at
}

// reselect finds the selected row again; when it is gone, its cell, else what
// now stands where it stood.
func (l *list) reselect(before int) {
	if l.wanted.kind != noRow && l.has(l.wanted) {
		l.selected, l.wanted = l.wanted, rowID{}
		return
	}
	if !l.settled {
		l.settled = l.selectFirst()
		return
	}
	if l.has(l.selected) {
		return
	}
	if l.selected.kind == slotRow && l.has(rowID{kind: cellRow, cell: l.selected.cell}) {
		l.selected = rowID{kind: cellRow, cell: l.selected.cell}
		return
	}
	l.selected = rowID{}
	for i := min(max(before, 0), len(l.rows)-1); i >= 0; i-- {
		if l.rows[i].id.kind != headRow {
			l.selected = l.rows[i].id
			return
		}
	}
	l.selectFirst()
}

// selectFirst chooses where the screen opens: the current directory's cell,
// else what is first in the list.
func (l *list) selectFirst() bool {
	for _, r := range l.rows {
		if r.id.kind == cellRow && l.directory != "" && r.cell.ProjectDir == l.directory {
			l.selected = r.id
			if first := l.urgentSlot(r.cell); first != nil {
				l.selected = rowID{kind: slotRow, cell: r.cell.Name, slot: first.Ref.Slot}
			}
			if !l.has(l.selected) {
				l.selected = r.id
			}
			return true
		}
	}
	for _, r := range l.rows {
		if r.id.kind != headRow {
			l.selected = r.id
			return true
		}
	}
	return false
}

func (l *list) has(id rowID) bool {
	return slices.ContainsFunc(l.rows, func(r row) bool { return r.id == id })
}

// current is the selected row; ok is false when there is none.
func (l *list) current() (row, bool) {
	if i := l.index(); i >= 0 {
		return l.rows[i], true
	}
	return row{}, false
}

// urgentSlot stands for its cell where an action needs a pane.
func (l *list) urgentSlot(c *fleet.Cell) *fleet.Slot {
	var best *fleet.Slot
	for i := range c.Slots {
		s := &c.Slots[i]
		if s.Archived && !l.archived {
			continue
		}
		if best == nil || urgency(s.Status) < urgency(best.Status) {
			best = s
		}
	}
	return best
}

// target is the slot that the selection stands for, if any.
func (l *list) target() (*fleet.Cell, *fleet.Slot) {
	r, ok := l.current()
	if !ok {
		return nil, nil
	}
	if r.id.kind == cellRow {
		return r.cell, l.urgentSlot(r.cell)
	}
	return r.cell, r.slot
}

// find returns the slot of a reference as the list knows it now.
func (l *list) find(r fleet.Ref) (*fleet.Cell, *fleet.Slot) {
	for i := range l.cells {
		c := &l.cells[i]
		if c.Name != r.Cell {
			continue
		}
		for j := range c.Slots {
			if c.Slots[j].Ref == r {
				return c, &c.Slots[j]
			}
		}
		return c, nil
	}
	return nil, nil
}

// use remembers the pane that the user works with, for "-".
func (l *list) use(id rowID) {
	if l.used != id {
		l.previous, l.used = l.used, id
	}
}

// oldest returns the statuses' ages that the frame shows in seconds: whether
// one is below a minute decides how often the clock must tick.
func (l *list) youngest(now time.Time) time.Duration {
	young := time.Hour
	for _, r := range l.rows {
		if r.slot != nil && !r.slot.Since.IsZero() {
			young = min(young, now.Sub(r.slot.Since))
		}
	}
	return young
}
