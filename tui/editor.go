package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
)

// editor is a text field with readline's keys, of one line or of several. It
// moves by graphemes and measures by x/ansi as the rest of the screen does;
// bubbles/textarea moves by runes and measures by another library.
type editor struct {
	text   string
	cursor int    // byte offset of a grapheme's start, or len(text)
	killed string // what ctrl-y brings back
	lines  bool   // may hold line breaks
}

// maxText bounds what a field takes, in bytes: one paste of tui/input.
const maxText = 1 << 20

func (e *editor) set(text string) { e.text, e.cursor = text, len(text) }

func (e *editor) insert(text string) {
	text = sanitizeInput(text, e.lines)
	if len(e.text)+len(text) > maxText {
		return
	}
	e.text = e.text[:e.cursor] + text + e.text[e.cursor:]
	e.cursor += len(text)
}

// sanitizeInput keeps what a user can mean: text, and line breaks where they
// are allowed. A paste may hold anything.
func sanitizeInput(s string, lines bool) string {
	if isPlain(s) {
		return s
	}
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(s)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && lines:
			return r
		case r == '\n':
			return ' '
		case unicode.IsControl(r), r == utf8.RuneError, isDirection(r):
			return -1
		}
		return r
	}, ansi.Strip(s))
}

// key applies a key and tells whether it was one for the editor.
func (e *editor) key(k tea.KeyMsg) bool {
	switch k.Type {
	case tea.KeyRunes, tea.KeySpace:
		if !k.Alt {
			e.insert(string(k.Runes))
			return true
		}
	}
	switch k.String() {
	case "left", "ctrl+b":
		e.cursor = e.previous()
	case "right", "ctrl+f":
		e.cursor = e.next()
	case "home", "ctrl+a":
		e.cursor = e.lineStart()
	case "end", "ctrl+e":
		e.cursor = e.lineEnd()
	case "alt+b", "alt+left", "ctrl+left":
		e.cursor = e.wordStart(false)
	case "alt+f", "alt+right", "ctrl+right":
		e.cursor = e.wordEnd()
	case "backspace", "ctrl+h":
		e.cut(e.previous(), e.cursor, false)
	case "delete", "ctrl+d":
		e.cut(e.cursor, e.next(), false)
	case "ctrl+w":
		e.cut(e.wordStart(true), e.cursor, true)
	case "alt+backspace":
		e.cut(e.wordStart(false), e.cursor, true)
	case "alt+d":
		e.cut(e.cursor, e.wordEnd(), true)
	case "ctrl+k":
		end := e.lineEnd()
		if end == e.cursor {
			end = e.next() // joins the next line
		}
		e.cut(e.cursor, end, true)
	case "ctrl+u":
		start := e.lineStart()
		if start == e.cursor {
			start = e.previous()
		}
		e.cut(start, e.cursor, true)
	case "ctrl+y":
		e.insert(e.killed)
	default:
		return false
	}
	return true
}

func (e *editor) cut(from, to int, keep bool) {
	if keep && from < to {
		e.killed = e.text[from:to]
	}
	e.text = e.text[:from] + e.text[to:]
	e.cursor = from
}

func (e *editor) next() int {
	if e.cursor >= len(e.text) {
		return len(e.text)
	}
	cluster, _ := ansi.FirstGraphemeCluster(e.text[e.cursor:], ansi.GraphemeWidth)
	return e.cursor + len(cluster)
}

func (e *editor) previous() int {
	if e.cursor == 0 {
		return 0
	}
	start := e.lineStart()
	if start == e.cursor {
		return e.cursor - 1 // the line break
	}
	at, last := start, start
	for at < e.cursor {
		cluster, _ := ansi.FirstGraphemeCluster(e.text[at:], ansi.GraphemeWidth)
		last, at = at, at+len(cluster)
	}
	return last
}

func (e *editor) lineStart() int { return strings.LastIndexByte(e.text[:e.cursor], '\n') + 1 }

func (e *editor) lineEnd() int {
	if i := strings.IndexByte(e.text[e.cursor:], '\n'); i >= 0 {
		return e.cursor + i
	}
	return len(e.text)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// wordStart is where the word before the cursor begins; with blanks, words are
// what blanks separate, as in ctrl-w.
func (e *editor) wordStart(blanks bool) int {
	in := isWord
	if blanks {
		in = func(r rune) bool { return !unicode.IsSpace(r) }
	}
	head := strings.TrimRightFunc(e.text[:e.cursor], func(r rune) bool { return !in(r) })
	return len(strings.TrimRightFunc(head, in))
}

func (e *editor) wordEnd() int {
	tail := strings.TrimLeftFunc(e.text[e.cursor:], func(r rune) bool { return !isWord(r) })
	return len(e.text) - len(strings.TrimLeftFunc(tail, isWord))
}

// up and down move by one line in the same column and report whether there was
// a line to go to.
func (e *editor) up() bool {
	start := e.lineStart()
	if start == 0 {
		return false
	}
	column := ansi.StringWidth(e.text[start:e.cursor])
	e.cursor = start - 1
	e.toColumn(column)
	return true
}

func (e *editor) down() bool {
	end := e.lineEnd()
	if end == len(e.text) {
		return false
	}
	column := ansi.StringWidth(e.text[e.lineStart():e.cursor])
	e.cursor = end + 1
	e.toColumn(column)
	return true
}

func (e *editor) toColumn(column int) {
	start := e.lineStart()
	line := e.text[start:e.lineEnd()]
	e.cursor = start + len(ansi.Truncate(line, column, ""))
}

// view lays the text out in rows of w cells, wrapping, and tells the cell in
// which the cursor stands. first is what the first row begins with; it is
// skipped bytes of the text that stand in the prompt instead.
func (e *editor) view(w, skip int) (rows []string, column, row int) {
	var b strings.Builder
	at := 0
	place := func() { column, row = at, len(rows) }
	text := e.text[skip:]
	offset := skip
	if e.cursor < skip {
		place()
	}
	for {
		if offset == e.cursor {
			place()
		}
		if text == "" {
			break
		}
		cluster, _ := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
		shown := clean(cluster)
		n := width(shown)
		if cluster == "\n" {
			rows = append(rows, b.String()+spaces(w-at))
			b.Reset()
			at = 0
		} else {
			if at+n > w {
				rows = append(rows, b.String()+spaces(w-at))
				b.Reset()
				at = 0
				if offset == e.cursor {
					place()
				}
			}
			b.WriteString(shown)
			at += n
		}
		offset += len(cluster)
		text = text[len(cluster):]
	}
	if e.cursor == len(e.text) && at >= w { // room for the cursor itself
		rows = append(rows, b.String())
		b.Reset()
		at = 0
		place()
	}
	rows = append(rows, b.String()+spaces(w-at))
	return rows, column, row
}
