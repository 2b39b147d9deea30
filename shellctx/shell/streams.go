package shell

import (
	"io"
	"os"
	"sync"
	"time"
)

// streams are the standard streams that the interpreter and its programs see:
// files, so that a program writes into the pipe itself and nothing waits for a
// copy of its own.
type streams struct {
	stdin          io.Reader // an *os.File, or nil
	stdout, stderr io.Writer // *os.File
	owned          []*os.File
	copies         []*gate
}

func openStreams(in io.Reader, out, errs io.Writer) (*streams, error) {
	s := &streams{}
	var err error
	if s.stdin, err = s.input(in); err != nil {
		s.abandon()
		return nil, err
	}
	if s.stdout, err = s.output(out); err != nil {
		s.abandon()
		return nil, err
	}
	if same(out, errs) {
		s.stderr = s.stdout
		return s, nil
	}
	if s.stderr, err = s.output(errs); err != nil {
		s.abandon()
		return nil, err
	}
	return s, nil
}

// same compares two writers, of which either may be of a type that cannot be.
func same(a, b io.Writer) (equal bool) {
	defer func() { _ = recover() }()
	return a == b
}

func (s *streams) input(in io.Reader) (io.Reader, error) {
	switch in := in.(type) {
	case nil:
		return nil, nil
	case *os.File:
		return in, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.owned = append(s.owned, r, w)
	go func() {
		// Ends with in, or with the pipe; a reader that blocks for ever holds
		// this goroutine, as with os/exec.
		_, _ = io.Copy(w, in)
		_ = w.Close()
	}()
	return r, nil
}

func (s *streams) output(to io.Writer) (io.Writer, error) {
	switch to := to.(type) {
	case nil:
		f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		s.owned = append(s.owned, f)
		return f, nil
	case *os.File:
		return to, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.owned = append(s.owned, w)
	g := &gate{from: r, to: to, done: make(chan struct{})}
	s.copies = append(s.copies, g)
	go g.copy()
	return w, nil
}

// abandon closes everything before anything ran.
func (s *streams) abandon() {
	for _, f := range s.owned {
		_ = f.Close()
	}
}

// close lets go of our ends; programs keep theirs.
func (s *streams) close() { s.abandon() }

// drain waits until every writer is gone, for at most d, and then shuts the
// gates: from here on the caller's writers are left alone. It tells whether
// somebody still held a pipe.
func (s *streams) drain(d time.Duration) (held bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for _, g := range s.copies {
		select {
		case <-g.done:
		case <-timer.C:
			timer.Reset(0)
			held = true
		}
	}
	for _, g := range s.copies {
		g.shut()
	}
	return held
}

// gate copies a pipe to a writer until it is shut; after that it reads on, so
// that what still prints is not ended by a broken pipe, and drops it.
type gate struct {
	from *os.File
	done chan struct{}

	mu   sync.Mutex
	to   io.Writer
	size int64
}

func (g *gate) copy() {
	defer close(g.done)
	defer func() { _ = g.from.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := g.from.Read(buf)
		if n > 0 && !g.write(buf[:n]) {
			return // a writer that fails ends its programs, as a closed pipe does
		}
		if err != nil {
			return
		}
	}
}

func (g *gate) write(p []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.to == nil {
		return true
	}
	_, err := g.to.Write(p)
	return err == nil
}

// shut waits for a write that is under way, unless the writer blocks.
func (g *gate) shut() {
	locked := make(chan struct{})
	go func() {
		g.mu.Lock()
		g.to = nil
		g.mu.Unlock()
		close(locked)
	}()
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-locked:
	case <-timer.C:
	}
}
