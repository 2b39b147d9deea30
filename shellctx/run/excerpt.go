package run

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// Limits of what a model gets of one execution, in bytes after JSON encoding.
// Together they are 64 KiB less what the other fields of an envelope need
// (shellctx.MaxEnvelope), so that an ordinary record is not cut a second time.
const (
	modelHead = 24 << 10
	modelTail = 37 << 10
)

// output is what was kept of a program's output: two parts, which touch when
// nothing is missing.
type output interface {
	io.ReaderAt
	kept() (head, tail int64) // [0,head) and [tail,size)
	size() int64
}

func (s *spill) size() int64 { return s.written }

// memory is output that was never on disk.
type memory []byte

func (m memory) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(p, m[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m memory) kept() (int64, int64) { return int64(len(m)), int64(len(m)) }
func (m memory) size() int64          { return int64(len(m)) }

// excerpt makes the text of a record: all of the output when it is short, else
// its head and its tail with a line between them that counts the bytes that are
// missing. It is cut between characters, and counted as JSON.
func excerpt(o output) (string, bool) {
	keptHead, keptTail := o.kept()
	var all cleaner
	if feed(&all, o, 0, keptHead, modelHead+modelTail) == o.size() && all.total() <= modelHead+modelTail {
		return all.text(), false
	}

	var head cleaner
	taken := feed(&head, o, 0, keptHead, modelHead)
	front := head.text()
	end := headEnd(front, modelHead)
	missing := int64(len(front) - end)
	front = front[:end]

	// A window that grows until its text fills the room: colours and progress
	// lines may clean away to nothing.
	first := taken
	if keptTail > keptHead { // something in between was not kept
		first = max(taken, keptTail)
	}
	for window := int64(256 << 10); ; window *= 8 {
		begin := max(first, o.size()-window)
		text, at := lastLines(o, begin, begin == taken)
		start := tailStart(text, modelTail)
		if start == 0 && begin > first {
			continue
		}
		missing += at - taken + int64(start)
		if missing == 0 {
			return front + text, false
		}
		return fmt.Sprintf("%s\n[… %d bytes of output not shown …]\n%s", front, missing, text[start:]), true
	}
}

// feed cleans [from,to) until limit is reached, and returns the offset it got
// to. A limit of 0 is none.
func feed(c *cleaner, o output, from, to int64, limit int) int64 {
	buf := make([]byte, 32<<10)
	for from < to {
		n, _ := o.ReadAt(buf[:min(int64(len(buf)), to-from)], from)
		if n == 0 {
			break
		}
		took := c.write(buf[:n], limit)
		from += int64(took)
		if took < n || limit > 0 && c.total() > limit {
			break
		}
	}
	return from
}

// lastLines cleans the output from begin to its end. at is the offset of its
// first byte: begin where it goes on from something that was read to there,
// else the start of the next line, lest it start within a character or escape.
func lastLines(o output, begin int64, goesOn bool) (text string, at int64) {
	at = begin
	if !goesOn {
		at = afterNewline(o, begin)
	}
	var c cleaner
	feed(&c, o, at, o.size(), 0)
	return c.text(), at
}

// afterNewline finds the first line that begins after an offset; in output that
// is one line, the first character.
func afterNewline(o output, from int64) int64 {
	buf := make([]byte, 32<<10)
	for at := from; at < o.size(); {
		n, _ := o.ReadAt(buf[:min(int64(len(buf)), o.size()-at)], at)
		if n == 0 {
			break
		}
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 && at+int64(i)+1 < o.size() {
			return at + int64(i) + 1
		}
		at += int64(n)
	}
	n, _ := o.ReadAt(buf[:min(utf8.UTFMax, o.size()-from)], from)
	for i := range n {
		if utf8.RuneStart(buf[i]) {
			return from + int64(i)
		}
	}
	return from
}

// headEnd is how much of a text's front fits into limit bytes of JSON.
func headEnd(text string, limit int) int {
	cost := 0
	for i, r := range text {
		cost += encodedLen([]byte(string(r)))
		if cost > limit {
			return i
		}
	}
	return len(text)
}

// tailStart is where the longest end of a text begins that fits into limit
// bytes of JSON.
func tailStart(text string, limit int) int {
	at, cost := len(text), 0
	for at > 0 {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		cost += encodedLen([]byte(text[at-size : at]))
		if cost > limit {
			return at
		}
		at -= size
	}
	return 0
}
