package input

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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

	hideCursor     = "\x1b[?25l"
	showCursor     = "\x1b[?25h"
	enterAlternate = "\x1b[?1049h"
	leaveAlternate = "\x1b[?1049l"
	eraseScreen    = "\x1b[2J"
	eraseLine      = "\x1b[2K"
)

// FramesPerSecond is the most that Screen draws in a row. After a pause the first
// frames are drawn at once: a key's row and the pane that the key selected, also
// where what the list or another pane tells of came just before.
const (
	FramesPerSecond = 120
	atOnce          = 4
)

// Screen draws frames on a terminal, and is what Bubble Tea writes its modes to.
//
// Bubble Tea's own renderer draws on a tick, which wakes the program 120 times a
// second while nothing moves and lets each key wait for it. So frames come by
// Show, and what Bubble Tea draws is dropped; the modes of the terminal stay its
// business.
type Screen struct {
	next   atomic.Pointer[string]
	due    chan struct{} // a frame waits, or the screen must be drawn anew; holds one
	cursor atomic.Pointer[position]

	mu     sync.Mutex // guards out and what follows
	out    io.Writer
	frame  string   // the newest, drawn or not
	lines  []string // what the terminal shows; nil: nobody knows
	at     position // where the cursor was put
	shown  bool     // the cursor is
	active bool     // the alternate screen is ours
}

type position struct{ column, row int }

// NewScreen draws on out. Frames are drawn while Run runs.
func NewScreen(out io.Writer) *Screen { return &Screen{out: out, due: make(chan struct{}, 1)} }

// Enter prepares the terminal; Leave gives it back as programs expect it.
func (s *Screen) Enter() { _, _ = s.Write([]byte(enter)) }

// Leave may be called at any time and more than once.
func (s *Screen) Leave() { _, _ = s.Write([]byte(leave)) }

// SetCursor says where the terminal's cursor stands after each frame, counted
// from 0; input methods open their window there. It shows with the next frame.
func (s *Screen) SetCursor(column, row int) { s.cursor.Store(&position{column, row}) }

// HideCursor takes the cursor away with the next frame.
func (s *Screen) HideCursor() { s.cursor.Store(nil) }

// Show makes a frame, rows of the screen's width between line feeds, the next to
// be drawn. It returns at once; a frame that was not drawn yet is left out.
func (s *Screen) Show(frame string) {
	s.next.Store(&frame)
	s.poke()
}

// Repaint draws every row of the next frame, also those that are the same: a
// terminal that was resized may have lost them.
func (s *Screen) Repaint() {
	s.mu.Lock()
	s.lines = nil
	s.mu.Unlock()
	s.poke()
}

func (s *Screen) poke() {
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// Run draws what Show gives until ctx ends. Only the terminal makes it wait.
func (s *Screen) Run(ctx context.Context) {
	const interval = time.Second / FramesPerSecond
	var drawn [atOnce]time.Time // the last frames
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.due:
		}
		if wait := atOnce*interval - time.Since(drawn[n%atOnce]); wait > 0 {
			pause.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
			}
		}
		if s.draw() {
			drawn[n%atOnce] = time.Now()
			n++
		}
	}
}

// draw writes the rows of the newest frame that the terminal does not show, as
// one synchronised update, and says whether there were any.
func (s *Screen) draw() bool {
	next := s.next.Swap(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if next != nil {
		s.frame = *next
	}
	at := s.cursor.Load()
	moved := at != nil && *at != s.at || (at != nil) != s.shown
	if !s.active || s.frame == "" || s.lines != nil && next == nil && !moved {
		return false
	}
	rows := strings.Split(s.frame, "\n")
	out := make([]byte, 0, len(s.frame)+256)
	out = append(out, beginUpdate...)
	if s.shown {
		out = append(out, hideCursor...)
	}
	begun := len(out)
	for i, row := range rows {
		if i < len(s.lines) && s.lines[i] == row {
			continue
		}
		out = fmt.Appendf(out, "\x1b[%d;1H", i+1)
		out = append(out, row...)
	}
	if len(rows) < len(s.lines) {
		out = fmt.Appendf(out, "\x1b[%d;1H\x1b[J", len(rows)+1)
	}
	s.lines = rows
	if len(out) == begun && !moved {
		return false
	}
	if s.shown = at != nil; s.shown {
		s.at = *at
		out = fmt.Appendf(out, "\x1b[%d;%dH"+showCursor, at.row+1, at.column+1)
	}
	out = append(out, endUpdate...)
	if _, err := s.out.Write(out); err != nil {
		s.lines = nil // how much of it came is not known
	}
	return true
}

// Write hands what Bubble Tea writes to the terminal, but for its frames.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.HasPrefix(p, []byte(home)) && len(p) > len(home) {
		return len(p), nil // Bubble Tea begins each frame of the alternate screen so
	}
	has := func(sequence string) bool { return bytes.Contains(p, []byte(sequence)) }
	switch {
	case has(leaveAlternate):
		s.active = false
	case has(enterAlternate):
		s.active = true
	}
	switch {
	case has(showCursor):
		s.shown = true
	case has(hideCursor):
		s.shown = false
	}
	if has(enterAlternate) || has(eraseScreen) || has(eraseLine) {
		s.lines = nil
		s.poke()
	}
	return s.out.Write(p)
}
