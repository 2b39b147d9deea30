package tui

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Everything that is drawn is measured in cells by x/ansi's graphemes, here and
// nowhere else: a second opinion on a width is how rows drift.

func width(s string) int {
	if isPlain(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// isPlain tells whether s is printable ASCII, where a byte is a cell.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// clean makes one harmless line of a string that a guest may have written: no
// escape sequence, no control character, nothing that turns the direction of
// the rest of the row. Line breaks and tabs become spaces.
func clean(s string) string {
	if isPlain(s) {
		return s
	}
	s = ansi.Strip(strings.ToValidUTF8(s, "\uFFFD"))
	var before rune
	return strings.Map(func(r rune) rune {
		last := before
		before = r
		switch {
		case r == emojiStyle || r == keycap:
			// Behind an ASCII character x/ansi counts these as a second cell in
			// StringWidth and as none in Truncate, and terminals differ as well.
			if before = last; last < utf8.RuneSelf {
				return -1
			}
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r), isDirection(r):
			return -1
		case r == utf8.RuneError:
			return '?'
		}
		return r
	}, s)
}

const (
	emojiStyle = '\ufe0f' // VS16
	keycap     = '\u20e3'
)

func isDirection(r rune) bool {
	switch {
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// fit makes s exactly w cells wide: cut with an ellipsis, or filled up.
func (g *glyphs) fit(s string, w int) string {
	if w <= 0 {
		return ""
	}
	n := width(s)
	if n > w {
		s = ansi.Truncate(s, w, g.ellipsis)
		if n = width(s); n > w { // the ellipsis alone is wider than w
			s, n = "", 0
		}
	}
	if n < w {
		s += spaces(w - n)
	}
	return s
}

// fitRight is fit with the filling on the left, for numbers.
func (g *glyphs) fitRight(s string, w int) string {
	if n := width(s); n < w {
		return spaces(w-n) + s
	}
	return g.fit(s, w)
}

const blank = "                                                                                                    "

func spaces(n int) string {
	if n <= 0 {
		return ""
	}
	if n <= len(blank) {
		return blank[:n]
	}
	return strings.Repeat(" ", n)
}

// plain replaces what an ASCII terminal cannot show, cell for cell. Escape
// sequences stay.
func plain(s string) string {
	if isPlain(s) {
		return s
	}
	var out strings.Builder
	state := byte(0)
	for len(s) > 0 {
		sequence, w, n, next := ansi.DecodeSequence(s, state, nil)
		state, s = next, s[n:]
		r, _ := utf8.DecodeRuneInString(sequence)
		switch {
		case w == 0 && r < utf8.RuneSelf:
			out.WriteString(sequence) // an escape sequence or a control character
		case w == 0:
		case r < utf8.RuneSelf && len(sequence) == 1:
			out.WriteString(sequence)
		default:
			replacement, ok := lineArt[r]
			if !ok {
				replacement = '?'
			}
			for range w {
				out.WriteRune(replacement)
			}
		}
	}
	return out.String()
}

// lineArt is how agents' frames, bullets and arrows look in ASCII.
var lineArt = func() map[rune]rune {
	m := map[rune]rune{'●': '*', '○': 'o', '⏺': '*', '•': '*', '✗': 'x', '✓': 'v', '❯': '>', '›': '>', '→': '>', '←': '<',
		'…': '.', '⎿': 'L', '“': '"', '”': '"', '‘': '\'', '’': '\'', '–': '-', '—': '-', '·': '.', '\u00a0': ' '}
	for r := rune(0x2500); r < 0x2580; r++ {
		m[r] = '+'
	}
	for _, r := range "─━═┄┅┈┉╌╍╴╶╸╺" {
		m[r] = '-'
	}
	for _, r := range "│┃║┆┇┊┋╎╏╵╷╹╻" {
		m[r] = '|'
	}
	for r := rune(0x2580); r < 0x25a0; r++ {
		m[r] = '#'
	}
	return m
}()

// cutCells cuts a row at the grapheme that begins in a cell.
func cutCells(s string, column int) (before, at, after string) {
	before = ansi.Truncate(s, column, "")
	rest := s[len(before):]
	if rest == "" {
		return before, " ", ""
	}
	cluster, _ := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
	return before, cluster, rest[len(cluster):]
}

// placing matches what besides puts into a row to place the cursor.
var placing = regexp.MustCompile(`\x1b\[[0-9]+G`)

// overwrite puts a patch of n cells on a painted row, at a column. A wide
// character that the patch cuts in half becomes a space.
func overwrite(row, patch string, column, n int) string {
	// Truncate keeps every sequence behind the cut, and one that places the
	// cursor would move the patch.
	row = placing.ReplaceAllString(row, "")
	before := ansi.Truncate(row, column, "")
	room := max(0, ansi.StringWidth(row)-column-n)
	cut := column + n
	after := ansi.TruncateLeft(row, cut, "")
	for ansi.StringWidth(after) > room {
		cut++
		after = ansi.TruncateLeft(row, cut, "")
	}
	after = spaces(room-ansi.StringWidth(after)) + after
	at := func(column int) string { return "\x1b[" + strconv.Itoa(column+1) + "G" }
	return before + "\x1b[m" + spaces(column-ansi.StringWidth(before)) + at(column) + patch + at(column+n) + after + "\x1b[m"
}
