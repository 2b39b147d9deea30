package tmux

import (
	"strings"
	"unicode/utf8"
)

// plainRows makes captured lines independent of each other and harmless: tmux
// lets colours run on from one line to the next and writes line-drawing
// characters between shift-out and shift-in. Of all escape sequences SGR alone
// is kept. Each row begins and ends with default colours.
func plainRows(lines []string) []string {
	rows := make([]string, len(lines))
	var state rendition
	for i, l := range lines {
		rows[i] = state.row(l)
	}
	return rows
}

// rendition is the state that runs on from line to line.
type rendition struct {
	attributes     [10]bool // by SGR number; 0 is unused
	double, over   bool     // 21 and 53
	underline      string   // "4" or a styled form such as "4:3"
	fg, bg, colour string   // as parameters; colour is the underline's
	drawing        bool     // between shift-out and shift-in
}

const resetSGR = "\x1b[0m"

func (r *rendition) row(l string) string {
	prefix := r.sgr()
	if prefix == "" && !r.drawing && strings.IndexFunc(l, needsWork) < 0 {
		return l
	}
	var b strings.Builder
	b.Grow(len(l) + len(prefix) + len(resetSGR))
	b.WriteString(prefix)
	coloured := prefix != ""
	for i := 0; i < len(l); {
		c := l[i]
		switch {
		case c == 0x1b:
			kind, params, n := escape(l[i:])
			if kind == 'm' {
				r.apply(params)
				b.WriteString(l[i : i+n])
				coloured = true
			}
			i += n
		case c == 0x0e:
			r.drawing = true
			i++
		case c == 0x0f:
			r.drawing = false
			i++
		case c < 0x20 || c == 0x7f:
			i++
		case r.drawing && c >= 0x60 && c <= 0x7e:
			b.WriteRune(lineDrawing[c-0x60])
			i++
		default:
			ru, n := utf8.DecodeRuneInString(l[i:])
			if ru < 0x80 || ru > 0x9f { // C1 controls
				b.WriteRune(ru)
			}
			i += n
		}
	}
	if coloured {
		b.WriteString(resetSGR)
	}
	return b.String()
}

func needsWork(c rune) bool { return c < 0x20 || c >= 0x7f && c <= 0x9f || c == utf8.RuneError }

// escape measures the escape sequence at the start of s; kind is the final byte
// of a control sequence with plain parameters, else 0.
func escape(s string) (kind byte, params string, length int) {
	if len(s) < 2 {
		return 0, "", len(s)
	}
	switch s[1] {
	case '[':
		i := 2
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
			i++
		}
		if i == len(s) || s[i] < 0x40 || s[i] > 0x7e {
			return 0, "", i
		}
		params = s[2:i]
		if strings.Trim(params, "0123456789;:") != "" {
			return 0, "", i + 1
		}
		return s[i], params, i + 1
	case ']', 'P', 'X', '^', '_': // strings up to BEL or ST, such as a hyperlink
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return 0, "", i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return 0, "", i + 2
			}
		}
		return 0, "", len(s)
	}
	return 0, "", 2
}

// apply follows the parameters of one SGR sequence (ECMA-48, 8.3.117, with the
// colours of ITU T.416 and xterm).
func (r *rendition) apply(params string) {
	list := strings.Split(params, ";")
	for i := 0; i < len(list); i++ {
		p := list[i]
		head, _, sub := strings.Cut(p, ":")
		switch head {
		case "", "0":
			*r = rendition{drawing: r.drawing}
		case "1", "2", "3", "5", "7", "8", "9":
			r.attributes[head[0]-'0'] = true
		case "4":
			r.underline = p
			if p == "4:0" {
				r.underline = ""
			}
		case "21":
			r.double = true
		case "22":
			r.attributes[1], r.attributes[2] = false, false
		case "23", "25", "27", "28", "29":
			r.attributes[head[1]-'0'] = false
		case "24":
			r.underline, r.double = "", false
		case "53":
			r.over = true
		case "55":
			r.over = false
		case "39":
			r.fg = ""
		case "49":
			r.bg = ""
		case "59":
			r.colour = ""
		case "38", "48", "58":
			value := p
			if !sub {
				take := 1
				if i+1 < len(list) && list[i+1] == "5" {
					take = 3
				} else if i+1 < len(list) && list[i+1] == "2" {
					take = 5
				}
				take = min(take, len(list)-i)
				value = strings.Join(list[i:i+take], ";")
				i += take - 1
			}
			switch head {
			case "38":
				r.fg = value
			case "48":
				r.bg = value
			default:
				r.colour = value
			}
		default:
			if len(p) == 2 && (p[0] == '3' || p[0] == '9') {
				r.fg = p
			} else if len(p) == 2 && p[0] == '4' || len(p) == 3 && strings.HasPrefix(p, "10") {
				r.bg = p
			}
		}
	}
}

// sgr writes the sequence that brings default colours to this state.
func (r *rendition) sgr() string {
	var on []string
	for n, set := range r.attributes {
		if set {
			on = append(on, string(rune('0'+n)))
		}
	}
	if r.double {
		on = append(on, "21")
	}
	if r.over {
		on = append(on, "53")
	}
	for _, p := range []string{r.underline, r.fg, r.bg, r.colour} {
		if p != "" {
			on = append(on, p)
		}
	}
	if len(on) == 0 {
		return ""
	}
	return "\x1b[" + strings.Join(on, ";") + "m"
}

// lineDrawing is the DEC special graphics set from '`' to '~'.
var lineDrawing = [...]rune{
	'◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼',
	'⎺', '⎻', '─', '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
}
