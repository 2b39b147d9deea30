package input

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// Sequences around the time in which the screen is ours. Each is understood or
// ignored by every terminal that knows ECMA-48.
const (
	// enter: rows never wrap, so a character that the terminal takes for wider
	// than we do cannot push the rows below.
	enter = "\x1b[?7l"
	// leave undoes what we set, and what a program that was attached may have
	// left on: kitty keyboard, modifyOtherKeys, mouse, focus reports, bracketed
	// paste, application keys, colours, an open hyperlink, a hidden cursor.
	leave = "\x1b[<u\x1b[>4;0m" +
		"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1004l\x1b[?2004l" +
		"\x1b[?1l\x1b>\x1b[0m\x1b]8;;\x1b\\\x1b[?7h\x1b[?25h"

	beginUpdate = "\x1b[?2026h" // the terminal shows a frame whole, or not yet
	endUpdate   = "\x1b[?2026l"
	home        = "\x1b[H"
)

// Screen is the writer that Bubble Tea draws on. It writes a frame at once, as
// one synchronised update, and puts the cursor where the user types.
type Screen struct {
	mu     sync.Mutex
	out    io.Writer
	cursor atomic.Pointer[position]
	shown  bool
}

type position struct{ column, row int }

// NewScreen draws on out.
func NewScreen(out io.Writer) *Screen { return &Screen{out: out} }

// Enter prepares the terminal; Leave gives it back as programs expect it.
func (s *Screen) Enter() { _, _ = s.Write([]byte(enter)) }

// Leave may be called at any time and more than once.
func (s *Screen) Leave() { _, _ = s.Write([]byte(leave)) }

// SetCursor says where the terminal's cursor stands after each frame, counted
// from 0; input methods open their window there. It shows with the next frame.
func (s *Screen) SetCursor(column, row int) { s.cursor.Store(&position{column, row}) }

// HideCursor takes the cursor away with the next frame.
func (s *Screen) HideCursor() { s.cursor.Store(nil) }

// Write hands p to the terminal in one write. Bubble Tea begins each frame of
// the alternate screen with cursor home.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bytes.HasPrefix(p, []byte(home)) || len(p) == len(home) {
		return s.out.Write(p)
	}
	frame := make([]byte, 0, len(p)+64)
	frame = append(frame, beginUpdate...)
	if s.shown {
		frame = append(frame, "\x1b[?25l"...)
	}
	frame = append(frame, p...)
	at := s.cursor.Load()
	if s.shown = at != nil; s.shown {
		frame = fmt.Appendf(frame, "\x1b[%d;%dH\x1b[?25h", at.row+1, at.column+1)
	}
	frame = append(frame, endUpdate...)
	if _, err := s.out.Write(frame); err != nil {
		return 0, err
	}
	return len(p), nil
}
