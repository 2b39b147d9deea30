package input

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

type kind int

const (
	incomplete kind = iota // the bytes may be the beginning of more
	event                  // give out to Bubble Tea
	reply                  // the terminal's answer to a query, or noise: drop
	paste                  // a bracketed paste begins
)

// A token is what stands at the beginning of the bytes read so far.
type token struct {
	kind kind
	n    int    // bytes it takes
	as   []byte // in place of those bytes, where Bubble Tea does not know them
}

const (
	esc        = 0x1b
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	// maxString bounds an OSC or DCS reply; one that is longer is no reply.
	maxString = 4096
)

// scan looks at the first token of b, which must not be empty.
func scan(b []byte) token {
	if b[0] != esc {
		return scanRune(b)
	}
	if len(b) == 1 {
		return token{}
	}
	switch b[1] {
	case '[':
		return scanCSI(b)
	case 'O':
		return scanSS3(b)
	case ']':
		return scanString(b, "0123456789", true)
	case 'P':
		return scanString(b, "0123456789>!$+=", false)
	case '_':
		return scanString(b, "G", false)
	case esc:
		return token{kind: event, n: 1}
	}
	rest := scanRune(b[1:])
	if rest.kind == event {
		return token{kind: event, n: 1 + rest.n} // alt and a key
	}
	if rest.kind == reply {
		return token{kind: event, n: 1}
	}
	return token{}
}

func scanRune(b []byte) token {
	if b[0] < 0x20 || b[0] == 0x7f {
		return token{kind: event, n: 1}
	}
	if !utf8.FullRune(b) {
		return token{}
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 || r >= 0x80 && r < 0xa0 {
		return token{kind: reply, n: n}
	}
	return token{kind: event, n: n}
}

// scanCSI reads ESC [ parameters intermediates final (ECMA-48, 5.4).
func scanCSI(b []byte) token {
	if len(b) == 2 {
		return token{}
	}
	switch b[2] {
	case 'M': // X10 mouse: three bytes that may be anything
		if len(b) < 6 {
			return token{}
		}
		return token{kind: event, n: 6}
	case '[': // function keys of the Linux console
		if len(b) < 4 {
			return token{}
		}
		return token{kind: event, n: 4}
	}
	i := 2
	for i < len(b) && b[i] >= 0x30 && b[i] <= 0x3f {
		i++
	}
	parameters := string(b[2:i])
	for i < len(b) && b[i] >= 0x20 && b[i] <= 0x2f {
		i++
	}
	intermediates := string(b[2+len(parameters) : i])
	if i == len(b) {
		if i > maxString {
			return token{kind: reply, n: i}
		}
		return token{}
	}
	if b[i] < 0x40 || b[i] > 0x7e {
		return token{kind: reply, n: i} // broken off by another sequence
	}
	t := token{kind: event, n: i + 1}
	private := parameters != "" && parameters[0] >= '<' // ECMA-48: private parameters
	switch final := b[i]; final {
	case '~':
		switch {
		case parameters == "200":
			t.kind = paste
		case parameters == "201":
			t.kind = reply
		default:
			if key, ok := otherKey(parameters); ok {
				t.as = key
			}
		}
	case 'u':
		if private {
			t.kind = reply
		} else if key, ok := kittyKey(parameters); ok {
			t.as = key
		} else {
			t.kind = reply
		}
	case 'R':
		// A modified F3 looks like a cursor report of the first row.
		if private || !modifiedF3(parameters) {
			t.kind = reply
		}
	case 'c':
		if parameters != "" {
			t.kind = reply
		}
	case 'n', 't', 'x', 'y':
		t.kind = reply
	case 'M', 'm':
		if !private { // SGR mouse reports begin with <
			t.kind = reply
		}
	default:
		if private || intermediates != "" && final != '~' {
			t.kind = reply
		}
	}
	return t
}

func modifiedF3(parameters string) bool {
	return len(parameters) == 3 && parameters[:2] == "1;" && parameters[2] >= '2' && parameters[2] <= '8'
}

// scanSS3 reads ESC O and a letter: keys of a terminal in application mode.
func scanSS3(b []byte) token {
	if len(b) == 2 {
		return token{}
	}
	t := token{kind: event, n: 3}
	switch c := b[2]; {
	case c >= 'A' && c <= 'D', c >= 'P' && c <= 'S':
	case c == 'H', c == 'F':
		t.as = []byte{esc, '[', c}
	case c == 'M':
		t.as = []byte{'\r'}
	case c >= 'j' && c <= 'y': // keypad
		t.as = []byte{c - 'j' + '*'}
	default:
		t.n = 2 // alt and O, then something else
	}
	return t
}

// scanString reads a control string (OSC, DCS, APC) up to ST, or BEL where the
// string may end so. A first byte outside first means that it is alt and a key.
func scanString(b []byte, first string, bell bool) token {
	if len(b) == 2 {
		return token{}
	}
	if bytes.IndexByte([]byte(first), b[2]) < 0 {
		return token{kind: event, n: 2}
	}
	for i := 2; i < len(b); i++ {
		switch {
		case bell && b[i] == 0x07:
			return token{kind: reply, n: i + 1}
		case b[i] == esc && i+1 < len(b):
			if b[i+1] == '\\' {
				return token{kind: reply, n: i + 2}
			}
			return token{kind: reply, n: i} // broken off by another sequence
		}
	}
	if len(b) > maxString {
		return token{kind: reply, n: len(b)}
	}
	return token{}
}

// kittyKey translates a key of the kitty keyboard protocol, which a program
// that was attached may have left on: code[:alternates];modifiers[:event].
func kittyKey(parameters string) ([]byte, bool) {
	fields := bytes.Split([]byte(parameters), []byte{';'})
	code, err := strconv.Atoi(string(bytes.SplitN(fields[0], []byte{':'}, 2)[0]))
	if err != nil {
		return nil, false
	}
	modifiers := 1
	if len(fields) > 1 {
		parts := bytes.Split(fields[1], []byte{':'})
		if len(parts) > 1 && string(parts[1]) == "3" {
			return nil, false // a release
		}
		if len(parts[0]) > 0 {
			if modifiers, err = strconv.Atoi(string(parts[0])); err != nil {
				return nil, false
			}
		}
	}
	return legacyKey(code, modifiers)
}

// otherKey translates xterm's modifyOtherKeys: 27;modifiers;code.
func otherKey(parameters string) ([]byte, bool) {
	var modifiers, code int
	if n, err := fmt.Sscanf(parameters, "27;%d;%d", &modifiers, &code); n != 2 || err != nil {
		return nil, false
	}
	return legacyKey(code, modifiers)
}

// legacyKey gives the bytes that a plain terminal would have sent. Modifiers
// are 1 plus shift 1, alt 2, control 4; what cannot be sent plainly is dropped.
func legacyKey(code, modifiers int) ([]byte, bool) {
	if code <= 0 || code > utf8.MaxRune || code >= 57344 && code <= 63743 {
		return nil, false // the private use area holds keys without text
	}
	bits := modifiers - 1
	var out []byte
	if bits&2 != 0 {
		out = append(out, esc)
	}
	switch {
	case code == '\t' && bits&1 != 0:
		return []byte("\x1b[Z"), true
	case bits&4 != 0 && code >= '@' && code <= '~':
		return append(out, byte(code)&0x1f), true
	case bits&4 != 0 && code == ' ':
		return append(out, 0), true
	case bits&1 != 0 && code >= 'a' && code <= 'z':
		return append(out, byte(code)-'a'+'A'), true
	}
	return utf8.AppendRune(out, rune(code)), true
}
