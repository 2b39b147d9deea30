package input

import (
	"bytes"
	"regexp"
	"time"
)

// How long the beginning of something may wait for its rest. Escape is what a
// press of Esc costs, so it is short; over ssh an arrow key's bytes seldom come
// further apart.
const (
	escapeDelay = 50 * time.Millisecond
	runeDelay   = 100 * time.Millisecond
	stringDelay = 500 * time.Millisecond
	pasteDelay  = 2 * time.Second
	// quarantine is how long after a program gave the terminal back the tail of
	// an answer to that program's query may still come.
	quarantine = 500 * time.Millisecond
	// orphaned is how long after an Esc the rest of an answer may still come.
	orphaned = time.Second
	// maxPaste bounds a paste; the rest is dropped.
	maxPaste = 1 << 20
)

// A decoder turns bytes into events. It has no clock and does no I/O.
type decoder struct {
	pending  []byte
	arrived  time.Time // when the newest of pending came
	pasting  bool
	pasted   []byte
	escaped  time.Time // when an ESC was given out for want of more
	returned time.Time // when a program in the foreground gave the terminal back
}

// tail matches the rest of an answer whose beginning somebody else has read.
var tail = regexp.MustCompile(`^(?:[0-9a-fA-F;]*rgba?:[0-9a-fA-F/]*(?:\x07|\x1b\\)` +
	`|[0-9a-fA-F]*/[0-9a-fA-F/]+(?:\x07|\x1b\\)` +
	`|\]?[0-9]+;[^\x07\x1b]*(?:\x07|\x1b\\)` +
	`|\[?[?>]?[0-9]*(?:;[0-9]+)+\$?[cnuyRt])`)

// feed adds bytes that came in one read.
func (d *decoder) feed(b []byte, now time.Time) {
	if len(d.pending) == 0 && !d.pasting && len(b) > 0 {
		// An ESC that was taken for the key may have been an answer's: what would
		// be an answer with it is dropped. Nobody types one within one read.
		if now.Sub(d.escaped) < orphaned {
			if t := scan(append([]byte{esc}, b...)); t.kind == reply && t.n > 2 {
				b = b[t.n-1:]
			}
		}
		if now.Sub(d.returned) < quarantine {
			b = b[len(tail.Find(b)):]
		}
	}
	d.pending = append(d.pending, b...)
	d.arrived = now
}

// next gives out one event. Without one, wait says how long to wait for more
// bytes before asking again; a negative wait is for ever.
func (d *decoder) next(now time.Time) (out []byte, wait time.Duration) {
	for {
		if d.pasting {
			if out, wait = d.nextPaste(now); out != nil || wait != 0 {
				return out, wait
			}
			continue
		}
		if len(d.pending) == 0 {
			return nil, -1
		}
		t := scan(d.pending)
		switch t.kind {
		case event:
			out = t.as
			if out == nil {
				out = bytes.Clone(d.pending[:t.n])
			}
			d.pending = d.pending[t.n:]
			return out, 0
		case reply:
			d.pending = d.pending[t.n:]
		case paste:
			d.pending = d.pending[t.n:]
			d.pasting, d.pasted = true, nil
		case incomplete:
			left := d.patience() - now.Sub(d.arrived)
			if left > 0 {
				return nil, left
			}
			if out := d.giveUp(now); out != nil {
				return out, 0
			}
		}
	}
}

func (d *decoder) patience() time.Duration {
	switch {
	case d.pending[0] != esc:
		return runeDelay
	case len(d.pending) > 2 && d.pending[1] != '[' && d.pending[1] != 'O':
		return stringDelay
	}
	return escapeDelay
}

// giveUp takes pending for what it is when no more comes: an Esc, alt and a
// key, or the stump of something that is dropped.
func (d *decoder) giveUp(now time.Time) []byte {
	b := d.pending
	d.pending = nil
	if b[0] != esc || len(b) > 2 && b[len(b)-1] != '$' {
		return nil
	}
	if len(b) == 1 {
		d.escaped = now
	}
	return b
}

// nextPaste waits for the end of a paste and gives it out whole. A paste whose
// end does not come must not swallow every later key: it ends by itself.
func (d *decoder) nextPaste(now time.Time) ([]byte, time.Duration) {
	end := bytes.Index(d.pending, []byte(pasteEnd))
	if end < 0 {
		if left := pasteDelay - now.Sub(d.arrived); left > 0 {
			keep := len(d.pending) - (len(pasteEnd) - 1)
			if keep > 0 {
				d.collect(d.pending[:keep])
				d.pending = d.pending[keep:]
			}
			return nil, left
		}
		d.collect(d.pending)
		d.pending = nil
	} else {
		d.collect(d.pending[:end])
		d.pending = d.pending[end+len(pasteEnd):]
	}
	text := bytes.ReplaceAll(d.pasted, []byte(pasteStart), nil)
	d.pasting, d.pasted = false, nil
	if len(text) == 0 {
		return nil, 0
	}
	out := make([]byte, 0, len(text)+len(pasteStart)+len(pasteEnd))
	out = append(out, pasteStart...)
	out = append(out, text...)
	return append(out, pasteEnd...), 0
}

func (d *decoder) collect(b []byte) {
	if room := maxPaste - len(d.pasted); len(b) > room {
		b = b[:room]
	}
	d.pasted = append(d.pasted, b...)
}
