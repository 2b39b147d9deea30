package input

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed says that the terminal went away: nobody will type again.
var ErrClosed = errors.New("the terminal is gone")

var (
	errTimeout     = errors.New("nothing to read in time")
	errInterrupted = errors.New("reading was interrupted")
)

// A source waits for bytes.
type source interface {
	// read blocks until there are bytes, wait has passed (errTimeout) or
	// interrupt was called (errInterrupted). A negative wait is for ever.
	read(p []byte, wait time.Duration) (int, error)
	interrupt()
	resume()
	close()
}

// Reader gives one event a Read. It is handed to Bubble Tea by tea.WithInput.
type Reader struct {
	source  source
	mu      sync.Mutex // one Read at a time
	decoder decoder
	out     []byte // rest of an event that was longer than the caller's buffer
	ahead   []byte // the event after it; nil: none has come yet
	more    atomic.Bool
	paused  atomic.Bool
	back    atomic.Bool
}

// NewReader reads events from r, which need not be a terminal.
func NewReader(r io.Reader) *Reader { return &Reader{source: newStream(r)} }

// Read gives out one event, or the next part of one that does not fit in p. It
// returns io.EOF while the reader is paused, which ends Bubble Tea's read loop
// quietly, and ErrClosed when the terminal is gone, which ends the program.
func (r *Reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var buffer [4096]byte
	for {
		if r.paused.Load() {
			return 0, io.EOF
		}
		if len(r.out) > 0 {
			n := copy(p, r.out)
			r.out = r.out[n:]
			r.more.Store(len(r.out) > 0 || r.ahead != nil)
			return n, nil
		}
		now := time.Now()
		if r.back.CompareAndSwap(true, false) {
			r.decoder.returned = now
		}
		out, wait := r.ahead, time.Duration(0)
		if out == nil {
			out, wait = r.decoder.next(now)
		}
		if out != nil {
			r.out = out
			r.ahead, _ = r.decoder.next(now)
			continue
		}
		n, err := r.source.read(buffer[:], wait)
		switch {
		case err == nil:
			r.decoder.feed(buffer[:n], time.Now())
		case errors.Is(err, errTimeout), errors.Is(err, errInterrupted):
		default:
			return 0, ErrClosed
		}
	}
}

// More says that another event has come: the next Read will not wait. It may be
// asked while another goroutine reads.
func (r *Reader) More() bool { return r.more.Load() }

// Pause makes a Read that waits return io.EOF at once, and every later one too:
// the terminal's input belongs to somebody else until Resume.
func (r *Reader) Pause() {
	r.paused.Store(true)
	r.source.interrupt()
}

// Resume lets Read work again. Answers to queries of the program that had the
// terminal are dropped for a while, keys are not.
func (r *Reader) Resume() {
	r.source.resume()
	r.back.Store(true)
	r.paused.Store(false)
}

// Close ends reading for good and frees what the reader holds; it leaves the
// terminal open.
func (r *Reader) Close() error {
	r.Pause()
	r.mu.Lock() // the last Read has returned
	defer r.mu.Unlock()
	r.source.close()
	return nil
}

// stream is a source over something that cannot be polled: its own goroutine
// reads ahead by one buffer. It ends with the underlying reader.
type stream struct {
	chunks chan []byte
	wake   chan struct{}
	done   chan struct{}
	rest   []byte
}

func newStream(r io.Reader) *stream {
	s := &stream{chunks: make(chan []byte), wake: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(s.chunks)
		for {
			b := make([]byte, 4096)
			n, err := r.Read(b)
			if n > 0 {
				select {
				case s.chunks <- b[:n]:
				case <-s.done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *stream) read(p []byte, wait time.Duration) (int, error) {
	if len(s.rest) == 0 {
		var timeout <-chan time.Time
		if wait >= 0 {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case b, ok := <-s.chunks:
			if !ok {
				return 0, io.EOF
			}
			s.rest = b
		case <-timeout:
			return 0, errTimeout
		case <-s.wake:
			return 0, errInterrupted
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stream) interrupt() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stream) resume() {
	select {
	case <-s.wake:
	default:
	}
}

func (s *stream) close() { close(s.done) }
