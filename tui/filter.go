package tui

import (
	"slices"
	"strings"

	"github.com/sahilm/fuzzy"

	"cellmux/engine/fleet"
)

// filter narrows the list: words are fuzzy over a row's text, and status:,
// engine:, dir:, agent:, cell: and workspace: narrow one property. All must hold.
type filter struct {
	field editor
	open  bool  // the field has the keyboard
	from  rowID // what was selected when the field was opened; noRow: the user has chosen since
	words []string
	by    map[string][]string
}

var filterNames = []string{"status", "engine", "dir", "agent", "cell", "workspace"}

func (f *filter) active() bool { return len(f.words) > 0 || len(f.by) > 0 }

// parse reads the field.
func (f *filter) parse() {
	f.words, f.by = nil, nil
	for _, word := range strings.Fields(f.field.text) {
		name, value, ok := strings.Cut(word, ":")
		known := false
		for _, n := range filterNames {
			known = known || ok && n == name
		}
		switch {
		case !known:
			f.words = append(f.words, word)
		case value != "":
			if f.by == nil {
				f.by = map[string][]string{}
			}
			f.by[name] = append(f.by[name], strings.ToLower(value))
		}
	}
}

func (f *filter) clear() {
	f.field.set("")
	f.open = false
	f.parse()
}

func has(text, part string) bool { return strings.Contains(strings.ToLower(text), part) }

func (f *filter) holds(name string, text string) bool {
	for _, part := range f.by[name] {
		if !has(text, part) {
			return false
		}
	}
	return true
}

// fuzzyMatch tells whether every word is in one of the names, letters in order,
// or stands as it is in one of the texts: over a long text, letters in order
// would match nearly anything.
func (f *filter) fuzzyMatch(names []string, texts ...string) bool {
	for _, word := range f.words {
		if len(fuzzy.Find(word, names)) > 0 {
			continue
		}
		lower := strings.ToLower(word)
		if !slices.ContainsFunc(texts, func(t string) bool { return has(t, lower) }) {
			return false
		}
	}
	return true
}

func (f *filter) cellHolds(c *fleet.Cell) bool {
	return f.holds("engine", c.Engine) && f.holds("dir", c.ProjectDir) &&
		f.holds("cell", c.Name+" "+c.Title) && f.holds("workspace", c.Workspace)
}

// matchesCell: the cell itself, or one of its slots.
func (f *filter) matchesCell(c *fleet.Cell) bool {
	if !f.active() {
		return true
	}
	if !f.cellHolds(c) {
		return false
	}
	if len(f.by["status"]) == 0 && len(f.by["agent"]) == 0 && f.fuzzyMatch([]string{c.Name, c.Title, c.Engine}, c.ProjectDir) {
		return true
	}
	for i := range c.Slots {
		if f.matchesSlot(c, &c.Slots[i]) {
			return true
		}
	}
	return false
}

func (f *filter) matchesSlot(c *fleet.Cell, s *fleet.Slot) bool {
	if !f.active() {
		return true
	}
	return f.cellHolds(c) && f.holds("status", s.Status.String()) && f.holds("agent", s.Agent) &&
		f.fuzzyMatch([]string{c.Name, c.Title, c.Engine, s.Agent, s.Title}, c.ProjectDir, s.Question, s.Detail)
}

func (f *filter) matchesOutside(o *fleet.Outside) bool {
	if !f.active() {
		return true
	}
	return len(f.by) == 0 && f.fuzzyMatch([]string{o.Session, o.Command}, o.Path, o.Title)
}
