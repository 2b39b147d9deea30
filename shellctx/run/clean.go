package run

import (
	"bytes"
	"unicode/utf8"
)

// cleaner turns what a program printed into text that is safe to show and to
// store: valid UTF-8, of which the only escapes are SGR colours, if those are
// wanted at all. Everything else that a terminal would act on, such as moving
// the cursor, titles, the clipboard and device strings, is dropped.
//
// \r\n is a line's end; any other \r starts its line over, and the last segment
// that has text wins. A backspace takes back a character. Other control
// characters become their pictures (NUL is ␀), so that nothing hides.
//
// It works on a stream, in pieces cut anywhere. A sequence that is never ended
// ends with its line: it must not swallow what follows.
type cleaner struct {
	colour bool
	out    []byte // finished lines
	line   []byte // the line being written
	cost   int    // of out and line, as JSON (encodedLen)

	lineCost int

	cr     bool   // a \r was read, and nothing since
	state  phase  // within an escape sequence
	seq    []byte // of a CSI, for SGR
	active []byte // SGR since the last reset, for a line that starts over
	part   []byte // an incomplete UTF-8 sequence
}

type phase int

const (
	ground  phase = iota
	escape        // after ESC
	control       // CSI: ESC [
	text          // OSC, DCS, SOS, PM, APC: up to BEL or ST
	textEsc       // ESC within a text
	charset       // ESC ( and the like: one more byte
)

const (
	maxSGR       = 64       // bytes of one SGR sequence, and of what is kept active
	maxLine      = 64 << 10 // bytes after which a line can no longer start over
	esc     byte = 0x1b
)

// write reads raw output. With a limit it stops before the text would cost more
// than limit bytes as JSON, and returns how many bytes of p it took.
func (c *cleaner) write(p []byte, limit int) int {
	for i, b := range p {
		c.byte(b)
		if limit > 0 && c.total() > limit {
			return i + 1
		}
	}
	return len(p)
}

func (c *cleaner) byte(b byte) {
	if len(c.part) > 0 {
		if b&0xc0 == 0x80 {
			c.part = append(c.part, b)
			if utf8.FullRune(c.part) {
				r, size := utf8.DecodeRune(c.part)
				if size == len(c.part) {
					c.rune(r)
				} else {
					c.invalid(len(c.part))
				}
				c.part = c.part[:0]
			}
			return
		}
		n := len(c.part)
		c.part = c.part[:0]
		c.invalid(n)
	}
	switch c.state {
	case escape:
		c.state = ground
		switch {
		case b == '[':
			c.state, c.seq = control, append(c.seq[:0], esc, '[')
			return
		case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
			c.state = text
			return
		case b >= 0x20 && b <= 0x2f:
			c.state = charset
			return
		case b == esc:
			c.state = escape
			return
		case b >= 0x30 && b <= 0x7e:
			return
		}
		// A control character or a byte that ends no sequence: read it as usual.
	case charset:
		if b >= 0x20 && b <= 0x2f {
			return
		}
		c.state = ground
		if b >= 0x30 && b <= 0x7e {
			return
		}
	case control:
		switch {
		case b >= 0x20 && b <= 0x3f:
			if len(c.seq) < maxSGR {
				c.seq = append(c.seq, b)
			} else {
				c.seq[1] = 0 // too long to be a colour
			}
			return
		case b >= 0x40 && b <= 0x7e:
			c.state = ground
			if b == 'm' {
				c.sgr()
			}
			return
		}
		c.state = ground
		if b == esc {
			c.state = escape
			return
		}
	case text:
		switch {
		case b == 0x07, b == 0x18, b == 0x1a:
			c.state = ground
			return
		case b == esc:
			c.state = textEsc
			return
		case b != '\n':
			return
		}
		c.state = ground
	case textEsc:
		c.state = ground
		if b == '\\' {
			return
		}
		// Not a terminator: the ESC began a sequence of its own.
		c.state = escape
		c.byte(b)
		return
	}
	c.plain(b)
}

// plain reads a byte outside of any escape sequence.
func (c *cleaner) plain(b byte) {
	switch {
	case b == '\n':
		c.cr = false
		c.line = append(c.line, '\n')
		c.lineCost += 2
		c.flushLine()
	case b == '\r':
		c.cr = true
	case b == esc:
		c.state = escape
	case b == '\t':
		c.put([]byte{'\t'})
	case b == '\b':
		c.back()
	case b == 0x07:
	case b < 0x20:
		c.rune(0x2400 + rune(b))
	case b == 0x7f:
		c.rune(0x2421)
	case b < utf8.RuneSelf:
		c.put([]byte{b})
	case utf8.RuneStart(b) && b >= 0xc2 && b <= 0xf4:
		c.part = append(c.part[:0], b)
	default:
		c.invalid(1)
	}
}

func (c *cleaner) invalid(n int) {
	for range n {
		c.rune(utf8.RuneError)
	}
}

func (c *cleaner) rune(r rune) {
	switch {
	case r >= 0x80 && r <= 0x9f: // C1: some terminals act on these as well
		r = utf8.RuneError
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		// Direction overrides show another text than the one there is.
		r = utf8.RuneError
	}
	var buf [utf8.UTFMax]byte
	c.put(buf[:utf8.EncodeRune(buf[:], r)])
}

// put adds one character to the line.
func (c *cleaner) put(p []byte) {
	if c.cr {
		c.cr = false
		c.line, c.lineCost = append(c.line[:0], c.active...), 0
		for range c.active {
			c.lineCost++
		}
	}
	c.line = append(c.line, p...)
	c.lineCost += encodedLen(p)
	if len(c.line) >= maxLine {
		c.flushLine()
	}
}

// maxBack is how many colours a backspace looks over; without a bound, output
// made of both would cost their product.
const maxBack = 8

// back takes back the last character, over colours, within the line.
func (c *cleaner) back() {
	if c.cr {
		return
	}
	end := len(c.line)
	for n := 0; end > 0 && c.line[end-1] == 'm'; n++ {
		if n == maxBack {
			return
		}
		begin := bytes.LastIndexByte(c.line[:end], esc)
		if begin < 0 || !isSGR(c.line[begin:end]) {
			break
		}
		end = begin
	}
	if end == 0 {
		return
	}
	_, size := utf8.DecodeLastRune(c.line[:end])
	c.lineCost -= encodedLen(c.line[end-size : end])
	c.line = append(c.line[:end-size], c.line[end:]...)
}

func isSGR(seq []byte) bool {
	if len(seq) < 3 || seq[0] != esc || seq[1] != '[' || seq[len(seq)-1] != 'm' {
		return false
	}
	for _, b := range seq[2 : len(seq)-1] {
		if (b < '0' || b > '9') && b != ';' && b != ':' {
			return false
		}
	}
	return true
}

func (c *cleaner) sgr() {
	c.seq = append(c.seq, 'm')
	if !c.colour || !isSGR(c.seq) {
		return
	}
	if c.cr {
		c.cr = false
		c.line, c.lineCost = append(c.line[:0], c.active...), 0
	}
	switch string(c.seq) {
	case "\x1b[m", "\x1b[0m":
		c.active = c.active[:0]
	default:
		if len(c.active)+len(c.seq) > maxSGR {
			c.active = c.active[:0]
		}
		c.active = append(c.active, c.seq...)
	}
	c.line = append(c.line, c.seq...)
	if len(c.line) >= maxLine {
		c.flushLine()
	}
}

func (c *cleaner) flushLine() {
	c.out = append(c.out, c.line...)
	c.cost += c.lineCost
	c.line, c.lineCost = c.line[:0], 0
}

// finish ends the stream: what is incomplete is shown as such.
func (c *cleaner) finish() {
	n := len(c.part)
	c.part = c.part[:0]
	c.invalid(n)
	c.state, c.cr = ground, false
}

// total is what the text so far costs as JSON.
func (c *cleaner) total() int { return c.cost + c.lineCost }

// text ends the stream and returns all of it.
func (c *cleaner) text() string {
	c.finish()
	return string(c.out) + string(c.line)
}

// encodedLen is how many bytes of JSON one character takes in an envelope
// (shellctx.ContextText).
func encodedLen(p []byte) int {
	if len(p) == 1 {
		switch b := p[0]; {
		case b == '"', b == '\\', b == '\n', b == '\r', b == '\t', b == '\b', b == '\f':
			return 2
		case b < 0x20, b == 0x7f, b == '@':
			return 6
		}
		return 1
	}
	if r, _ := utf8.DecodeRune(p); r >= 0x80 && r <= 0x9f || r == 0x2028 || r == 0x2029 {
		return 6
	}
	return len(p)
}

// Clean is what the screen may show of raw output: colours and plain text.
func Clean(raw []byte) string {
	c := cleaner{colour: true}
	c.write(raw, 0)
	return c.text()
}
