package tui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
)

// form asks for a few lines of text.
type form struct {
	title  string
	fields []field
	at     int
	wrong  string // why it cannot be sent as it is
	submit func(values []string) (i intent, wrong string)
}

type field struct {
	label, hint string
	choices     []string // left and right go through them
	editor      editor
}

func (f *form) key(_ *Model, k tea.KeyMsg) ([]intent, bool) {
	current := &f.fields[f.at]
	switch key := k.String(); key {
	case "esc", "ctrl+c":
		return nil, true
	case "tab", "down":
		f.at = (f.at + 1) % len(f.fields)
	case "shift+tab", "up":
		f.at = (f.at + len(f.fields) - 1) % len(f.fields)
	case "enter":
		values := make([]string, len(f.fields))
		for i := range f.fields {
			values[i] = strings.TrimSpace(f.fields[i].editor.text)
		}
		i, wrong := f.submit(values)
		if f.wrong = wrong; wrong == "" {
			return []intent{i}, true
		}
	default:
		if len(current.choices) > 0 {
			switch key {
			case "left", "h":
				current.choose(-1)
			case "right", "l", " ":
				current.choose(1)
			}
			return nil, false
		}
		current.editor.key(k)
		f.wrong = ""
	}
	return nil, false
}

func (f *field) choose(step int) {
	at := 0
	for i, c := range f.choices {
		if c == f.editor.text {
			at = i
		}
	}
	f.editor.set(f.choices[(at+step+len(f.choices))%len(f.choices)])
}

func (f *form) paste(_ *Model, text string) []intent {
	if len(f.fields[f.at].choices) == 0 {
		f.fields[f.at].editor.insert(text)
	}
	return nil
}

func (f *form) box(m *Model, w, _ int) box {
	p := m.painter
	b := box{title: f.title, width: min(w-4, 76), foot: "tab next   enter do it   esc close"}
	label := 0
	for _, fl := range f.fields {
		label = max(label, width(fl.label))
	}
	for i, fl := range f.fields {
		room := b.width - label - 2
		value := fl.editor.text
		switch {
		case len(fl.choices) > 0:
			if i == f.at {
				value = p.paint(tSelected, " "+value+" ") + p.paint(tDim, "  left and right change it")
			} else {
				value = " " + value
			}
		case i == f.at:
			rows, column, row := fl.editor.view(room-1, 0)
			value = p.cursorIn(rows[row], column)
		case value == "":
			value = p.paint(tDim, fl.hint)
		}
		t := tDim
		if i == f.at {
			t = tFocus
		}
		b.lines = append(b.lines, p.paint(t, p.fit(fl.label, label))+"  "+p.fit(value, room))
		if i == f.at && fl.hint != "" {
			b.lines = append(b.lines, spaces(label+2)+p.paint(tDim, fl.hint))
		}
	}
	if f.wrong != "" {
		b.lines = append(b.lines, "")
		for _, l := range wrap(f.wrong, b.width) {
			b.lines = append(b.lines, p.paint(tDead, l))
		}
	}
	return b
}

// byDefault is the engine that the project's file asks for, else the host.
const byDefault = "default"

// newCellForm asks for a new cell; like gives its settings.
func newCellForm(m *Model, like *fleet.Cell) *form {
	engines := []string{byDefault, "auto"}
	for _, e := range m.snapshot.Engines {
		if e.Usable || !e.Probed {
			engines = append(engines, e.Kind)
		}
	}
	f := &form{title: "New cell", fields: []field{
		{label: "Directory", hint: "the project, an absolute path or ~/…"},
		{label: "Name", hint: "[a-z0-9-]; empty takes the directory's; it is fixed for life"},
		{label: "Engine", choices: engines},
		{label: "Workspace", hint: "a persistent home; main unless you have others"},
	}}
	f.fields[0].editor.set(m.list.directory)
	f.fields[2].editor.set(byDefault)
	f.fields[3].editor.set("main")
	if like != nil {
		f.title = "New cell like " + like.Name
		f.fields[0].editor.set(like.ProjectDir)
		f.fields[2].editor.set(like.Engine)
		f.fields[3].editor.set(like.Workspace)
	}
	home := m.home
	f.submit = func(v []string) (intent, string) {
		directory := v[0]
		if rest, ok := strings.CutPrefix(directory, "~/"); ok && home != "" {
			directory = home + "/" + rest
		}
		if !strings.HasPrefix(directory, "/") {
			return nil, "The directory must be an absolute path, such as /home/me/src/api."
		}
		engine := v[2]
		if engine == byDefault {
			engine = ""
		}
		return makeCell{fleet.NewCell{ProjectDir: directory, Name: v[1], Engine: engine, Workspace: v[3]}}, ""
	}
	return f
}

func (m *Model) renameForm() *form {
	row, _ := m.list.current()
	ref := row.id.ref()
	f := &form{title: "Rename " + m.refName(ref), fields: []field{{label: "Title", hint: "the name " + ref.Cell + " stays as it is"}}}
	title := row.cell.Title
	if row.slot != nil {
		title = row.slot.Title
	}
	f.fields[0].editor.set(title)
	f.submit = func(v []string) (intent, string) {
		if v[0] == "" && ref.Slot < 0 {
			return nil, "A cell needs a title."
		}
		return renameRef{ref, v[0]}, ""
	}
	return f
}
