package run

import (
	"bytes"
	"sync"
	"time"

	"cellmux/shellctx/shell"
)

// noTerminal is what a program is told that would wait for keys; its name stands
// before it.
const noTerminal = "needs a terminal; ctrl-t runs it in a new pane"

// refused tells why a line must not be given to a shell that is not ours, where
// nobody of ours stands before the start of a program; "" is that it may.
func (s *Service) refused(line string) string {
	if reason := shell.Blocked(line, s.opts.Blocks, s.opts.BlockNames); reason != "" {
		return reason
	}
	if name := shell.FullScreen(line); name != "" {
		return name + " " + noTerminal
	}
	return ""
}

// A program that was not refused by its name, but switches to the terminal's
// alternate screen and stays there, waits for keys just the same. vim by itself
// takes two seconds to complain and go on, so that `vim +q` needs longer.
const screenGrace = 3 * time.Second

// maxScreenPiece is the longest piece that is looked at: what draws a screen
// writes a screen at a time, and long output must not be read once more.
const maxScreenPiece = 32 << 10

var (
	enterScreen = [][]byte{[]byte("\x1b[?1049h"), []byte("\x1b[?1047h"), []byte("\x1b[?47h")}
	leaveScreen = [][]byte{[]byte("\x1b[?1049l"), []byte("\x1b[?1047l"), []byte("\x1b[?47l")}
)

// screenWatch looks in output for the switch to the alternate screen, which only
// what wants a whole terminal makes, and calls stuck when it is not left in
// time. The nil watch sees nothing.
type screenWatch struct {
	stuck func()

	mu    sync.Mutex
	rest  []byte // the end of the last piece, which may begin a sequence
	seen  bool
	timer *time.Timer // while in the alternate screen
	ended bool
}

func newScreenWatch(stuck func()) *screenWatch { return &screenWatch{stuck: stuck} }

func (w *screenWatch) read(p []byte) {
	if w == nil || len(p) > maxScreenPiece {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		p = append(w.rest, p...)
		w.rest = nil
	}
	first := bytes.IndexByte(p, esc)
	if first < 0 {
		return
	}
	p = p[first:]
	in, out := lastOf(p, enterScreen), lastOf(p, leaveScreen)
	switch {
	case in > out:
		w.seen = true
		if w.timer == nil && !w.ended {
			w.timer = time.AfterFunc(screenGrace, w.stuck)
		}
	case out >= 0 && w.timer != nil:
		w.timer.Stop()
		w.timer = nil
	}
	if last := bytes.LastIndexByte(p, esc); len(p)-last < len(enterScreen[0]) {
		w.rest = bytes.Clone(p[last:])
	}
}

// end stops the watch, and tells whether the alternate screen was entered.
func (w *screenWatch) end() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	return w.seen
}

// lastOf is where the last of several sequences begins, -1 nowhere.
func lastOf(p []byte, sequences [][]byte) int {
	at := -1
	for _, s := range sequences {
		at = max(at, bytes.LastIndex(p, s))
	}
	return at
}
