//go:build unix

package input

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Keyboard is a Reader over a terminal. It has the shape that Bubble Tea puts
// into raw mode (Fd), and on purpose no Name: with one, Bubble Tea would wait
// on the descriptor itself and miss events that are already buffered here.
type Keyboard struct {
	*Reader
	file *os.File
}

// NewKeyboard reads events from a terminal, which stays the caller's to close.
func NewKeyboard(file *os.File) (*Keyboard, error) {
	wakeRead, wakeWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe to interrupt reading the terminal: %w", err)
	}
	s := &descriptor{file: file, wakeRead: wakeRead, wakeWrite: wakeWrite}
	return &Keyboard{Reader: &Reader{source: s}, file: file}, nil
}

// Fd is the terminal's descriptor.
func (k *Keyboard) Fd() uintptr { return k.file.Fd() }

// Write goes to the terminal.
func (k *Keyboard) Write(p []byte) (int, error) { return k.file.Write(p) }

// descriptor waits with select(2), which works on terminals everywhere; poll(2)
// and kqueue do not take /dev/tty on macOS.
type descriptor struct {
	file                *os.File
	wakeRead, wakeWrite *os.File
}

func (d *descriptor) read(p []byte, wait time.Duration) (int, error) {
	fd, wake := int(d.file.Fd()), int(d.wakeRead.Fd())
	var timeout *unix.Timeval
	if wait >= 0 {
		tv := unix.NsecToTimeval(wait.Nanoseconds())
		timeout = &tv
	}
	var set unix.FdSet
	set.Set(fd)
	set.Set(wake)
	n, err := unix.Select(max(fd, wake)+1, &set, nil, nil, timeout)
	switch {
	case errors.Is(err, unix.EINTR):
		return 0, errTimeout
	case err != nil:
		return 0, fmt.Errorf("wait for the terminal: %w", err)
	case n == 0:
		return 0, errTimeout
	case set.IsSet(wake):
		return 0, errInterrupted
	}
	n, err = d.file.Read(p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
		return 0, errTimeout
	}
	return n, err
}

func (d *descriptor) interrupt() { _, _ = d.wakeWrite.Write([]byte{0}) }

func (d *descriptor) resume() {
	var b [64]byte
	for {
		var set unix.FdSet
		set.Set(int(d.wakeRead.Fd()))
		n, err := unix.Select(int(d.wakeRead.Fd())+1, &set, nil, nil, &unix.Timeval{})
		if n <= 0 || err != nil {
			return
		}
		_, _ = d.wakeRead.Read(b[:])
	}
}

func (d *descriptor) close() {
	_ = d.wakeRead.Close()
	_ = d.wakeWrite.Close()
}
