package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A place is where a binding works. Places are asked from the inside out: the
// focused part first, then anywhere.
type place string

// The places.
const (
	inList     place = "list"
	inPreview  place = "preview"
	inLog      place = "shell log"
	inComposer place = "composer"
	inTypeIn   place = "type-in"
	anywhere   place = "anywhere"
)

// A binding is one thing that keys do. This table is the only place where keys
// are declared: help, footer, palette, docs/keys.md and the clash check are made
// from it. Keys are named as Bubble Tea names them; "g g" is two presses.
type binding struct {
	name   string // stable; what config.toml and the palette call it
	keys   []string
	place  place
	help   string // what it does, as a short imperative
	footer string // its word in the footer, in order of the table; "" not there
	hidden bool   // not in the palette: it makes no sense there
}

func bindings() []binding {
	return []binding{
		{name: "attach", keys: []string{"enter"}, place: inList, help: "attach to the pane; open an offered cell, start a stopped pane", footer: "attach"},
		{name: "type-in", keys: []string{"i"}, place: inList, help: "type into the pane while the list stays visible", footer: "type-in"},
		{name: "message", keys: []string{"m"}, place: inList, help: "write a message to the pane, or to all marked ones", footer: "message"},
		{name: "shell", keys: []string{"!"}, place: inList, help: "run a shell command, recorded as context (!! private, !? and let the agent answer)", footer: "shell"},
		{name: "agent", keys: []string{"a"}, place: inList, help: "open an agent pane", footer: "agent"},
		{name: "shell-pane", keys: []string{"s"}, place: inList, help: "open a shell pane"},
		{name: "new", keys: []string{"n"}, place: inList, help: "make a new cell", footer: "new cell"},
		{name: "new-like", keys: []string{"N"}, place: inList, help: "make a new cell with this one's settings"},
		{name: "restart", keys: []string{"r"}, place: inList, help: "restart the pane and resume its conversation", footer: "restart"},
		{name: "fresh", keys: []string{"T"}, place: inList, help: "start a fresh conversation in a new slot"},
		{name: "stop", keys: []string{"x"}, place: inList, help: "stop the pane", footer: "stop"},
		{name: "delete", keys: []string{"d", "delete"}, place: inList, help: "move the pane or the cell to the trash", footer: "delete"},
		{name: "undo", keys: []string{"u"}, place: inList, help: "undo the last delete, archive, rename, move or stop"},
		{name: "rename", keys: []string{"R", "f2"}, place: inList, help: "rename (the title; the name is fixed)"},
		{name: "pin", keys: []string{"p"}, place: inList, help: "pin the cell, or let it go"},
		{name: "archive", keys: []string{"z"}, place: inList, help: "archive, or bring back"},
		{name: "show-archived", keys: []string{"Z"}, place: inList, help: "show or hide what is archived"},
		{name: "interrupt", place: inList, help: "interrupt what the agent does now"},
		{name: "trust", place: inList, help: "look at the project file and approve it"},
		{name: "review", place: inList, help: "have a read-only agent review the uncommitted work"},
		{name: "commit", place: inList, help: "commit the work: with its diff shown first where git inside can only read, else by the agent"},
		{name: "answers", place: inList, help: "let the agent answer ! lines of this conversation, or not"},
		{name: "jobs", place: inList, help: "list the ! commands that run and what they left running, and end them"},

		{name: "down", keys: []string{"j", "down"}, place: inList, help: "next row", hidden: true},
		{name: "up", keys: []string{"k", "up"}, place: inList, help: "previous row", hidden: true},
		{name: "half-down", keys: []string{"ctrl+d"}, place: inList, help: "half a page down", hidden: true},
		{name: "half-up", keys: []string{"ctrl+u"}, place: inList, help: "half a page up", hidden: true},
		{name: "top", keys: []string{"g g", "home"}, place: inList, help: "first row", hidden: true},
		{name: "bottom", keys: []string{"G", "end"}, place: inList, help: "last row", hidden: true},
		{name: "next-cell", keys: []string{"}"}, place: inList, help: "next cell", hidden: true},
		{name: "previous-cell", keys: []string{"{"}, place: inList, help: "previous cell", hidden: true},
		{name: "collapse", keys: []string{"h", "left"}, place: inList, help: "collapse the cell", hidden: true},
		{name: "expand", keys: []string{"l", "right"}, place: inList, help: "expand the cell", hidden: true},
		{name: "jump", keys: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, place: inList, help: "jump to the cell of that number", hidden: true},
		{name: "last", keys: []string{"-"}, place: inList, help: "back to the last pane"},
		{name: "next-waiting", keys: []string{"w"}, place: inList, help: "next waiting pane"},
		{name: "previous-waiting", keys: []string{"W"}, place: inList, help: "previous waiting pane"},
		{name: "mark", keys: []string{" "}, place: inList, help: "mark the row, or take the mark away"},
		{name: "range", keys: []string{"v"}, place: inList, help: "mark from here to where you move"},
		{name: "bulk", keys: []string{"b"}, place: inList, help: "act on the marked rows"},
		{name: "filter", keys: []string{"/"}, place: inList, help: "filter (fuzzy; status:waiting engine:docker dir:api narrow it)"},
		{name: "sort", keys: []string{"S"}, place: inList, help: "sort"},
		{name: "group", keys: []string{"t"}, place: inList, help: "group by"},
		{name: "copy", keys: []string{"y"}, place: inList, help: "copy menu"},

		{name: "preview-down", keys: []string{"j", "down"}, place: inPreview, help: "scroll down a line", hidden: true},
		{name: "preview-up", keys: []string{"k", "up"}, place: inPreview, help: "scroll up a line", hidden: true},
		{name: "preview-half-down", keys: []string{"ctrl+d"}, place: inPreview, help: "scroll half a page down", hidden: true},
		{name: "preview-half-up", keys: []string{"ctrl+u"}, place: inPreview, help: "scroll half a page up", hidden: true},
		{name: "preview-top", keys: []string{"g g", "home"}, place: inPreview, help: "scroll to the top", hidden: true},
		{name: "preview-bottom", keys: []string{"G", "end"}, place: inPreview, help: "scroll to the end", hidden: true},
		{name: "older", keys: []string{"enter", "o"}, place: inPreview, help: "unfold or fold the record in sight"},
		{name: "unfold", keys: []string{"O"}, place: inPreview, help: "read the record in sight whole, in a pager"},
		{name: "find", keys: []string{"/"}, place: inPreview, help: "search in this conversation"},
		{name: "decide", keys: []string{"r"}, place: inPreview, help: "say what becomes of an unconfirmed, queued or failed message"},

		{name: "log-down", keys: []string{"j", "down"}, place: inLog, help: "next command", hidden: true},
		{name: "log-up", keys: []string{"k", "up"}, place: inLog, help: "previous command", hidden: true},
		{name: "log-bottom", keys: []string{"G", "end"}, place: inLog, help: "newest command", hidden: true},
		{name: "log-open", keys: []string{"enter", "o"}, place: inLog, help: "show or hide the command's output", footer: "output"},
		{name: "log-cancel", keys: []string{"x", "ctrl+c"}, place: inLog, help: "cancel the command with its whole process tree", footer: "cancel"},
		{name: "log-again", keys: []string{"r"}, place: inLog, help: "put the command into the composer again", footer: "again"},
		{name: "log-copy", keys: []string{"y"}, place: inLog, help: "copy the command's output", footer: "copy"},

		{name: "send", keys: []string{"enter"}, place: inComposer, help: "send the message or run the command", footer: "send", hidden: true},
		{name: "newline", keys: []string{"alt+enter", "ctrl+j"}, place: inComposer, help: "new line (a trailing \\ and enter too)", footer: "new line", hidden: true},
		{name: "complete", keys: []string{"tab"}, place: inComposer, help: "complete commands, paths and earlier ! lines; on an empty ! line: cell or host", footer: "complete", hidden: true},
		{name: "older-line", keys: []string{"up"}, place: inComposer, help: "line above, or an older line of the history", hidden: true},
		{name: "newer-line", keys: []string{"down"}, place: inComposer, help: "line below, or a newer line of the history", hidden: true},
		{name: "history", keys: []string{"ctrl+r"}, place: inComposer, help: "search the history", footer: "history", hidden: true},
		{name: "ask", keys: []string{"ctrl+o"}, place: inComposer, help: "let the agent answer this line, or not", footer: "ask", hidden: true},
		{name: "in-pane", keys: []string{"ctrl+t"}, place: inComposer, help: "run the line in a new pane of the cell (vim, htop, sudo)", footer: "in a pane", hidden: true},
		{name: "editor", keys: []string{"ctrl+g"}, place: inComposer, help: "edit the text in $EDITOR", hidden: true},
		{name: "leave", keys: []string{"esc"}, place: inComposer, help: "leave and keep the draft", footer: "leave", hidden: true},
		{name: "discard", keys: []string{"ctrl+c"}, place: inComposer, help: "empty the line; leave when it is empty", hidden: true},

		{name: "stop-typing", keys: []string{"ctrl+q", "f12"}, place: inTypeIn, help: "stop typing into the pane", footer: "stop typing in", hidden: true},

		{name: "scroll-down", keys: []string{"J", "pgdown"}, place: anywhere, help: "scroll the preview down"},
		{name: "scroll-up", keys: []string{"K", "pgup"}, place: anywhere, help: "scroll the preview up"},
		{name: "next-tab", keys: []string{"]"}, place: anywhere, help: "next tab"},
		{name: "previous-tab", keys: []string{"["}, place: anywhere, help: "previous tab"},
		{name: "show-preview", place: anywhere, help: "show the pane's screen"},
		{name: "show-conversation", place: anywhere, help: "show the conversation"},
		{name: "show-diff", place: anywhere, help: "show the uncommitted changes"},
		{name: "show-info", place: anywhere, help: "show what is known of the row"},
		{name: "next-focus", keys: []string{"tab"}, place: anywhere, help: "focus the next part"},
		{name: "previous-focus", keys: []string{"shift+tab"}, place: anywhere, help: "focus the previous part"},
		{name: "zoom-in", keys: []string{"+"}, place: anywhere, help: "zoom the focused part"},
		{name: "zoom-out", keys: []string{"_"}, place: anywhere, help: "zoom out"},
		{name: "search", keys: []string{"ctrl+f"}, place: anywhere, help: "search conversations"},
		{name: "logs", keys: []string{"L"}, place: anywhere, help: "cellmux's own log"},
		{name: "events", keys: []string{"@"}, place: anywhere, help: "what cellmux did, with the commands it ran"},
		{name: "mouse", keys: []string{"M"}, place: anywhere, help: "mouse capture on or off"},
		{name: "redraw", keys: []string{"ctrl+l"}, place: anywhere, help: "draw the screen again"},
		{name: "refresh", keys: []string{"ctrl+r"}, place: anywhere, help: "read everything again"},
		{name: "suspend", keys: []string{"ctrl+z"}, place: anywhere, help: "suspend cellmux"},
		{name: "cancel-work", place: anywhere, help: "cancel the long work that the header shows"},
		{name: "palette", keys: []string{":", "ctrl+p"}, place: anywhere, help: "command palette", footer: "commands", hidden: true},
		{name: "help", keys: []string{"?", "f1"}, place: anywhere, help: "help for where you are", footer: "help"},
		{name: "back", keys: []string{"esc"}, place: anywhere, help: "one step back", hidden: true},
		{name: "interrupt-key", keys: []string{"ctrl+c"}, place: anywhere, help: "cancel what has the focus; twice quits, from the list and with no command running", hidden: true},
		{name: "quit", keys: []string{"q"}, place: anywhere, help: "quit (panes keep running)"},
	}
}

// keymap is the table after the user's own keys, ready to be asked.
type keymap struct {
	table  []binding
	byName map[string]*binding
	byKey  map[place]map[string]*binding
	prefix map[place]map[string]bool // keys that begin a longer binding
}

// newKeymap applies the user's keys. Unknown names and clashes are errors.
func newKeymap(own map[string][]string) (*keymap, error) {
	k := &keymap{
		table:  bindings(),
		byName: map[string]*binding{},
		byKey:  map[place]map[string]*binding{},
		prefix: map[place]map[string]bool{},
	}
	for i := range k.table {
		k.byName[k.table[i].name] = &k.table[i]
	}
	var problems []error
	for name, keys := range own {
		b := k.byName[name]
		if b == nil {
			problems = append(problems, fmt.Errorf("[keys] %s: no binding has this name; docs/keys.md lists them", name))
			continue
		}
		b.keys = make([]string, 0, len(keys))
		for _, key := range keys {
			normal, err := parseKey(key)
			if err != nil {
				problems = append(problems, fmt.Errorf("[keys] %s: %w", name, err))
				continue
			}
			b.keys = append(b.keys, normal)
		}
	}
	for i := range k.table {
		problems = append(problems, k.add(&k.table[i])...)
	}
	problems = append(problems, k.checkPrefixes()...)
	problems = append(problems, k.checkShadows(own)...)
	for _, name := range []string{"quit", "help", "stop-typing", "leave"} {
		if len(k.byName[name].keys) == 0 {
			problems = append(problems, fmt.Errorf("[keys] %s: must keep a key, or there is no way out", name))
		}
	}
	return k, errors.Join(problems...)
}

func (k *keymap) add(b *binding) (problems []error) {
	if k.byKey[b.place] == nil {
		k.byKey[b.place], k.prefix[b.place] = map[string]*binding{}, map[string]bool{}
	}
	for _, key := range b.keys {
		if other := k.byKey[b.place][key]; other != nil {
			problems = append(problems, fmt.Errorf("[keys] %s and %s both want %q in the %s", other.name, b.name, showKey(key), b.place))
			continue
		}
		k.byKey[b.place][key] = b
		if first, _, two := strings.Cut(key, " "); two && first != "" {
			k.prefix[b.place][first] = true
		}
	}
	return problems
}

func (k *keymap) checkPrefixes() (problems []error) {
	for where, firsts := range k.prefix {
		for first := range firsts {
			if other := k.byKey[where][first]; other != nil {
				problems = append(problems, fmt.Errorf("[keys] %s wants %q in the %s, which begins a longer binding", other.name, showKey(first), where))
			}
		}
	}
	return problems
}

// checkShadows finds keys of the user's that would silently do nothing, or take
// away what works everywhere: a place stands over anywhere.
func (k *keymap) checkShadows(own map[string][]string) (problems []error) {
	for _, where := range []place{inList, inPreview, inLog} {
		for key, b := range k.byKey[where] {
			other := k.byKey[anywhere][key]
			if other == nil {
				continue
			}
			_, mine := own[b.name]
			_, others := own[other.name]
			if mine || others {
				problems = append(problems, fmt.Errorf("[keys] %s in the %s and %s anywhere both want %q", b.name, where, other.name, showKey(key)))
			}
		}
	}
	return problems
}

// CheckKeys tells what is wrong with the user's keys: names that no binding
// has, keys that no terminal sends, and clashes. Each line is a problem.
func CheckKeys(own map[string][]string) error {
	_, err := newKeymap(own)
	return err
}

// find asks the place, then anywhere, then the list. Two presses are joined by
// a space.
func (k *keymap) find(where place, key string) *binding {
	if b := k.byKey[where][key]; b != nil {
		return b
	}
	if where == inComposer || where == inTypeIn {
		return nil // every other key is text there
	}
	if b := k.byKey[anywhere][key]; b != nil {
		return b
	}
	return k.byKey[inList][key] // preview and log are of the selected row
}

func (k *keymap) begins(where place, key string) bool {
	if where == inComposer || where == inTypeIn || k.byKey[where][key] != nil {
		return k.prefix[where][key]
	}
	return k.prefix[where][key] || k.prefix[anywhere][key] || k.prefix[inList][key]
}

// show is the first key of a binding, as the user reads it: "ctrl-q".
func (k *keymap) show(name string) string {
	b := k.byName[name]
	if b == nil || len(b.keys) == 0 {
		return ":" + name
	}
	return showKey(b.keys[0])
}

func (b *binding) showKeys() string {
	shown := make([]string, len(b.keys))
	for i, key := range b.keys {
		shown[i] = showKey(key)
	}
	if b.name == "jump" && len(shown) == 9 {
		return shown[0] + "-" + shown[8]
	}
	return strings.Join(shown, " ")
}

func showKey(key string) string {
	if key == " " {
		return "space"
	}
	first, second, two := strings.Cut(key, " ")
	if two && first != "" {
		return showKey(first) + showKey(second)
	}
	if strings.HasSuffix(key, "+") { // the key itself, not what joins a chord
		return strings.ReplaceAll(strings.TrimSuffix(key, "+"), "+", "-") + "+"
	}
	return strings.ReplaceAll(key, "+", "-")
}

// unsendable are chords that plain terminals do not tell from their key alone.
var unsendable = []string{"ctrl+enter", "shift+enter", "ctrl+i", "ctrl+m", "ctrl+[", "ctrl+space", "ctrl+shift+"}

// parseKey reads a key as users write it ("ctrl-q", "space", "g g").
func parseKey(written string) (string, error) {
	key := strings.TrimSpace(written)
	if first, second, two := strings.Cut(key, " "); two {
		a, errA := parseKey(first)
		b, errB := parseKey(second)
		return a + " " + b, errors.Join(errA, errB)
	}
	for _, modifier := range []string{"ctrl", "alt", "shift"} {
		key = strings.ReplaceAll(key, modifier+"-", modifier+"+")
	}
	switch key {
	case "":
		return "", errors.New("an empty key")
	case "space":
		return " ", nil
	case "shift++":
		return "+", nil
	}
	for _, no := range unsendable {
		if key == no || strings.HasSuffix(no, "+") && strings.HasPrefix(key, no) {
			return "", fmt.Errorf("%q: plain terminals cannot send this key", written)
		}
	}
	if len([]rune(key)) > 1 && !strings.Contains(key, "+") && !slices.Contains(namedKeys, key) {
		return "", fmt.Errorf("%q is no key: write a character, ctrl-x, alt-x, or one of %s", written, strings.Join(namedKeys, ", "))
	}
	return key, nil
}

var namedKeys = []string{"enter", "tab", "esc", "backspace", "delete", "insert", "up", "down", "left", "right", "home", "end",
	"pgup", "pgdown", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12"}
