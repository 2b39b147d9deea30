//go:build unix

package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// ErrNotTerminal says that there is nobody to draw for.
var ErrNotTerminal = errors.New("standard input and output must be a terminal")

// Terminal is a terminal with a reader and a writer.
type Terminal struct {
	Keys   *Keyboard
	Screen *Screen
	out    *os.File
}

// Open takes in and out as a terminal. They stay the caller's to close.
func Open(in io.Reader, out io.Writer) (*Terminal, error) {
	i, inOK := in.(*os.File)
	o, outOK := out.(*os.File)
	if !inOK || !outOK || !term.IsTerminal(int(i.Fd())) || !term.IsTerminal(int(o.Fd())) {
		return nil, ErrNotTerminal
	}
	keys, err := NewKeyboard(i)
	if err != nil {
		return nil, err
	}
	return &Terminal{Keys: keys, Screen: NewScreen(o), out: o}, nil
}

// Fd is the descriptor that Bubble Tea asks for the size.
func (t *Terminal) Fd() uintptr { return t.out.Fd() }

// Size is the terminal's size in cells, 0 and 0 where it does not say.
func (t *Terminal) Size() (width, height int) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

// Resized receives after the terminal's size may have changed, from now on until
// stop. It holds one.
func (t *Terminal) Resized() (changes <-chan struct{}, stop func()) {
	signals, changed := make(chan os.Signal, 1), make(chan struct{}, 1)
	signal.Notify(signals, unix.SIGWINCH)
	go func() { // ends with stop
		defer close(changed)
		for range signals {
			select {
			case changed <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	return changed, func() { signal.Stop(signals); close(signals) }
}

// Write draws.
func (t *Terminal) Write(p []byte) (int, error) { return t.Screen.Write(p) }

// Read is there for the shape of a terminal; the keyboard is what is read.
func (t *Terminal) Read([]byte) (int, error) { return 0, io.EOF }

// Close leaves the terminal open.
func (t *Terminal) Close() error { return nil }

// Save returns what puts the terminal's own modes (termios) back as they are
// now. It may be called more than once.
func (t *Terminal) Save() (restore func(), err error) {
	state, err := term.GetState(int(t.Keys.file.Fd()))
	if err != nil {
		return nil, fmt.Errorf("read the terminal's modes: %w", err)
	}
	return func() { _ = term.Restore(int(t.Keys.file.Fd()), state) }, nil
}

// Raw makes the terminal hand over every byte as it is typed, and returns what
// puts its modes back. A terminal that refuses stays as it is.
func (t *Terminal) Raw() (restore func()) {
	state, err := term.MakeRaw(int(t.Keys.file.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { _ = term.Restore(int(t.Keys.file.Fd()), state) }
}

// Typing makes the terminal hand over every byte as it is typed, as Raw does, and
// leaves its output as it is: lines that somebody else prints look right. It is
// what lies below the screen, so that no key is lost between the screen and a
// program that it gives way to: in its usual modes a terminal keeps ctrl-q and
// ctrl-s for itself. A terminal that refuses stays as it is.
func (t *Terminal) Typing() {
	fd := int(t.Keys.file.Fd())
	before, err := unix.IoctlGetTermios(fd, getModes)
	if err != nil {
		return
	}
	if _, err := term.MakeRaw(fd); err != nil {
		return
	}
	if raw, err := unix.IoctlGetTermios(fd, getModes); err == nil {
		raw.Oflag = before.Oflag
		_ = unix.IoctlSetTermios(fd, setModes, raw)
	}
}

// UntilSignal returns a context that ends when the process is told to end:
// SIGTERM, SIGINT from outside, or SIGHUP when the terminal hangs up.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
}
