package tui

import (
	"context"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
	"cellmux/shellctx/run"
)

// composer is where messages and `!` lines are written. It keeps a draft of
// each kind per pane.
type composer struct {
	field   editor
	ref     fleet.Ref   // whose shell and conversation
	refs    []fleet.Ref // whom a message goes to
	drafts  map[draftKey]string
	history map[string][]string // by cell, oldest first
	at      int                 // in the history, counted from its end; 0 is the draft
	kept    string              // the draft while the history is shown
	onHost  bool
	asks    bool // the conversation's own switch: agents answer ! lines
	flipped bool // ctrl-o: for this line, the other way
	where   string
	whereOf wherePlace
	choices []string // of the last Tab, to go round in
	choice  int
	before  string // the line before the last Tab
}

type draftKey struct {
	ref   fleet.Ref
	shell bool
}

type wherePlace struct {
	ref    fleet.Ref
	onHost bool
}

func newComposer() composer {
	return composer{field: editor{lines: true}, drafts: map[draftKey]string{}, history: map[string][]string{}}
}

// A composed text is what the field holds, read by run.ParseLine: a function of
// the text alone, so that typing and pasting mean the same.
type composed struct {
	run.Line
	marks int // bytes of marks and space in front of a shell line's source
}

func readComposed(text string) composed {
	c := composed{Line: run.ParseLine(text)}
	if c.Shell {
		rest := strings.TrimLeft(text, " \t\r\n")[1:]
		if rest != "" && (rest[0] == '!' || rest[0] == '?') {
			rest = rest[1:]
		}
		c.marks = len(text) - len(strings.TrimLeft(rest, " \t\r\n"))
	}
	return c
}

// mode is what becomes of the line, after the user's switch for answers.
func (c *composer) mode(read composed) run.Mode {
	ask := read.Mode == run.Ask || read.Mode == run.Context && c.asks
	if c.flipped {
		ask = !ask
	}
	switch {
	case read.Mode == run.Private:
		return run.Private
	case ask:
		return run.Ask
	}
	return run.Context
}

// compose focuses the composer for the selected pane, or for the marked ones.
// text is "" for a message, "!" for a shell line, or a whole line.
func (m *Model) compose(text string) {
	c := &m.composer
	ref := m.shellRef()
	if ref != c.ref {
		c.onHost, c.where, c.asks = false, "", false
	}
	c.ref, c.refs = ref, m.list.marked()
	if len(c.refs) == 0 {
		c.refs = []fleet.Ref{ref}
	}
	c.at, c.flipped, c.choices = 0, false, nil
	draft := c.drafts[draftKey{ref, strings.HasPrefix(text, "!")}]
	if len(text) > 1 || draft == "" {
		draft = text
	}
	c.field.set(draft)
	m.focus = inComposer
	m.list.use(idOf(ref))
	c.seed(m.log.entries)
}

// seed begins a cell's history with what its shell log holds.
func (c *composer) seed(entries []run.Execution) {
	if len(c.history[c.ref.Cell]) > 0 {
		return
	}
	for i := range entries {
		mark := map[run.Mode]string{run.Private: "!!", run.Ask: "!?"}[entries[i].Mode]
		if mark == "" {
			mark = "!"
		}
		c.remember(mark + entries[i].Record.Command)
	}
}

func (c *composer) remember(line string) {
	h := c.history[c.ref.Cell]
	if len(h) > 0 && h[len(h)-1] == line {
		return
	}
	if len(h) >= 1000 {
		h = h[1:]
	}
	c.history[c.ref.Cell] = append(h, line)
}

// typed takes a key that no binding wants.
func (c *composer) typed(m *Model, k tea.KeyMsg) tea.Cmd {
	was := readComposed(c.field.text)
	c.field.key(k)
	c.choices = nil
	if is := readComposed(c.field.text); is.Shell && !was.Shell {
		return c.asksWhere(m)
	}
	return nil
}

// asksWhere asks where a shell line would run and whether it is answered, for
// the prompt.
func (c *composer) asksWhere(m *Model) tea.Cmd {
	if !readComposed(c.field.text).Shell {
		return nil
	}
	ref, onHost := c.ref, c.onHost
	return m.call(quickly, func(ctx context.Context) tea.Msg {
		where, err := m.ports.Shell.Where(ctx, ref, onHost)
		asks := false
		if ref.Slot >= 0 { // a cell's own shell has no conversation
			// What cannot be read is off: a line must not be answered by mistake.
			asks, _ = m.ports.Conversation.Asks(ctx, ref, m.settings.AskByDefault)
		}
		return whereAnswered{ref, onHost, where, asks, err}
	})
}

func (c *composer) whereCame(w whereAnswered) {
	if w.ref != c.ref || w.onHost != c.onHost {
		return
	}
	c.where, c.whereOf, c.asks = w.where, wherePlace{w.ref, w.onHost}, w.asks
	if w.err != nil {
		c.where = "? " + sentence(w.err)
	}
}

func (c *composer) act(m *Model, name string) tea.Cmd {
	switch name {
	case "send":
		return c.enter(m)
	case "newline":
		c.field.insert("\n")
	case "leave":
		c.leave(m)
	case "discard":
		if c.field.text == "" || c.field.text == "!" {
			c.leave(m)
			return nil
		}
		c.field.set("")
	case "older-line":
		if !c.field.up() {
			c.walk(1)
		}
	case "newer-line":
		if !c.field.down() {
			c.walk(-1)
		}
	case "complete":
		return c.complete(m)
	case "history":
		m.overlay = c.historyMenu()
	case "ask":
		if !readComposed(c.field.text).Shell {
			m.say("An agent always answers a message; " + m.keys.show("ask") + " is for ! lines.")
			return nil
		}
		c.flipped = !c.flipped
	case "editor":
		return m.perform(editText{c.field.text})
	case "in-pane":
		return c.inPane(m)
	}
	return nil
}

// enter sends, or makes a new line after a trailing backslash.
func (c *composer) enter(m *Model) tea.Cmd {
	if before, ok := strings.CutSuffix(c.field.text, `\`); ok && c.field.cursor == len(c.field.text) {
		c.field.set(before)
		c.field.insert("\n")
		return nil
	}
	read := readComposed(c.field.text)
	if strings.TrimSpace(read.Text) == "" {
		c.leave(m)
		return nil
	}
	c.remember(c.field.text)
	mode, onHost, ref, refs := c.mode(read), c.onHost, c.ref, c.refs
	delete(c.drafts, draftKey{ref, read.Shell})
	c.field.set("")
	c.flipped = false
	if !read.Shell {
		m.focus = inList
		m.list.unmark()
		return m.perform(sendText{refs, read.Text})
	}
	// The log has the focus then: there, x and ctrl-c cancel the command.
	m.focus = inLog
	return m.perform(runLine{ref, read.Text, mode, onHost})
}

// leave keeps the draft.
func (c *composer) leave(m *Model) {
	read := readComposed(c.field.text)
	key := draftKey{c.ref, read.Shell}
	if strings.TrimSpace(read.Text) == "" {
		delete(c.drafts, key)
	} else {
		c.drafts[key] = c.field.text
	}
	m.focus = inList
}

// walk goes through the history: older when step is positive.
func (c *composer) walk(step int) {
	h := c.history[c.ref.Cell]
	at := c.at + step
	if at < 0 || at > len(h) {
		return
	}
	if c.at == 0 {
		c.kept = c.field.text
	}
	c.at = at
	if at == 0 {
		c.field.set(c.kept)
		return
	}
	c.field.set(h[len(h)-at])
}

func (c *composer) historyMenu() overlay {
	p := &picker{title: "History of " + c.ref.Cell, empty: "Nothing was written here yet."}
	h := c.history[c.ref.Cell]
	for i := len(h) - 1; i >= 0; i-- {
		p.items = append(p.items, item{label: clean(h[i]), intents: []intent{composeWith{h[i]}}})
	}
	return p
}

// complete goes round the completions of the word at the cursor. On an empty
// `!` line it changes between the cell and the host.
func (c *composer) complete(m *Model) tea.Cmd {
	read := readComposed(c.field.text)
	if !read.Shell {
		return nil
	}
	if read.Text == "" {
		if cell, _ := m.list.find(c.ref); cell != nil && cell.Engine == "host" {
			m.say("This is a host cell: its commands run on the host anyway.")
			return nil
		}
		c.onHost = !c.onHost
		c.where = ""
		return c.asksWhere(m)
	}
	if len(c.choices) > 1 {
		c.choice = (c.choice + 1) % len(c.choices)
		c.take(c.choices[c.choice])
		return nil
	}
	c.before = c.field.text
	return m.perform(completeLine{c.ref, read.Text, max(0, c.field.cursor-read.marks)})
}

func (c *composer) completed(m *Model, r completed) {
	read := readComposed(c.field.text)
	if r.err != nil || read.Text != r.text || m.focus != inComposer {
		return
	}
	if len(r.choices) == 0 {
		m.say("Nothing to complete here.")
		return
	}
	c.choices, c.choice = r.choices, 0
	c.take(r.choices[0])
	if len(r.choices) == 1 {
		c.choices = nil
	}
}

// take puts a completed line in the field, behind the marks.
func (c *composer) take(line string) {
	read := readComposed(c.before)
	c.field.set(c.before[:read.marks] + line)
}

// inPane runs the line in a new pane of the cell, for what needs a terminal.
func (c *composer) inPane(m *Model) tea.Cmd {
	read := readComposed(c.field.text)
	if !read.Shell || strings.TrimSpace(read.Text) == "" {
		m.say("Write a ! line first.")
		return nil
	}
	c.remember(c.field.text)
	delete(c.drafts, draftKey{c.ref, true})
	c.field.set("")
	m.focus = inList
	return m.perform(openPane{cell: c.ref.Cell, agent: "shell", line: read.Text})
}

func (c *composer) edited(m *Model, e edited) {
	if e.err != nil {
		m.warn(e.err)
		return
	}
	c.field.set("")
	c.field.insert(strings.TrimRight(e.text, "\n"))
	m.focus = inComposer
}
