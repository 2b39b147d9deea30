package tui

import (
	"fmt"
	"strings"
)

// helpColumn is where the sentences of the help begin.
const helpColumn = 19

// newHelp lists the bindings that work where the focus is, then everywhere.
func newHelp(m *Model) *pager {
	p := &pager{title: "Keys in the " + string(m.focus), hang: helpColumn}
	g := m.painter
	section := func(where place, title string) {
		p.lines = append(p.lines, g.paint(tTitle, title))
		for i := range m.keys.table {
			b := &m.keys.table[i]
			if b.place != where {
				continue
			}
			keys := b.showKeys()
			if keys == "" {
				keys = ":" + b.name
			}
			line := "  " + g.paint(tKey, g.fit(keys, helpColumn-3)) + " " + b.help
			if why := m.off(b.name); why != "" {
				line += g.paint(tDim, "  (off: "+why+")")
			}
			p.lines = append(p.lines, line)
		}
		p.lines = append(p.lines, "")
	}
	order := []place{inList, inPreview, inLog, inComposer, inTypeIn}
	section(m.focus, upperFirst(string(m.focus)))
	section(anywhere, "Anywhere but in text")
	for _, where := range order {
		if where != m.focus {
			section(where, upperFirst(string(where)))
		}
	}
	p.lines = append(p.lines,
		g.paint(tTitle, "Signs"),
		fmt.Sprintf("  %s running   %s waiting   %s idle   %s dead   %s failed   %s stopped   %s unknown   %s archived   %s marked   %s pinned",
			g.running, g.waiting, g.idle, g.dead, g.failed, g.stopped, g.unknown, g.archived, g.marked, g.pinned),
		"",
		"Back from an attached pane: "+m.wayBack()+". cellmux "+m.version)
	return p
}

// wayBack names the keys that detach; VS Code eats ctrl-q.
func (m *Model) wayBack() string {
	if m.terminal.vscode {
		return "F12, ctrl-q, or the tmux prefix and d"
	}
	return "ctrl-q, F12, or the tmux prefix and d"
}

// newPalette lists every action with its key, and why it is off.
func newPalette(m *Model) *picker {
	p := &picker{title: "Commands", empty: "No command is called that."}
	var off []item
	for i := range m.keys.table {
		b := &m.keys.table[i]
		if b.hidden || b.place == inLog && len(m.log.entries) == 0 {
			continue
		}
		it := item{label: ":" + b.name, detail: b.help, off: m.off(b.name), intents: []intent{runBinding{b.name}}}
		if len(b.keys) > 0 {
			it.hint = showKey(b.keys[0])
		}
		if it.off != "" {
			off = append(off, it)
			continue
		}
		p.items = append(p.items, it)
	}
	p.items = append(p.items, off...)
	return p
}

// KeysDocument is docs/keys.md: the table of bindings as a page.
func KeysDocument() string {
	var b strings.Builder
	b.WriteString("# Keys\n\nGenerated from the table in tui/keys.go; do not edit. A test fails when this page is stale.\n\n" +
		"Override a binding by its name in `config.toml`, under `[keys]`: `attach = [\"enter\", \"o\"]`. An empty list takes it away.\n" +
		"Keys are written as `x`, `ctrl-x`, `alt-x`, `space`, `enter`, `f2`, or two presses as `g g`. Clashes are errors at load.\n" +
		"Every binding is also a command of the palette (`:`).\n")
	places := []struct {
		place place
		title string
	}{{inList, "In the list (and, unless bound there, in preview and log)"}, {inPreview, "In the preview"}, {inLog, "In the shell log"},
		{inComposer, "In the composer"}, {inTypeIn, "In type-in mode"}, {anywhere, "Anywhere but in text"}}
	for _, where := range places {
		fmt.Fprintf(&b, "\n## %s\n\n| keys | name | what it does |\n| --- | --- | --- |\n", where.title)
		for _, one := range bindings() {
			if one.place == where.place {
				keys := one.showKeys()
				if keys != "" {
					keys = "`" + strings.ReplaceAll(keys, "|", "\\|") + "`"
				}
				fmt.Fprintf(&b, "| %s | `%s` | %s |\n", keys, one.name, one.help)
			}
		}
	}
	return b.String()
}
