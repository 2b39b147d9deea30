package shell

import (
	"io"
	"os"
	"runtime"
	"sync"
	"time"
)

// streams are the standard streams that the interpreter and its programs see.
type streams struct {
	stdin          io.Reader // an *os.File, or nil
	stdout, stderr io.Writer // *os.File or *gate
	owned          []*os.File
	gates          []*gate
}

func openStreams(in io.Reader, out, errs io.Writer) (*streams, error) {
	s := &streams{}
	var err error
	if s.stdin, err = s.input(in); err != nil {
		return nil, err
	}
	if s.stdout, err = s.output(out); err != nil {
		s.close()
		return nil, err
	}
	if same(out, errs) {
		s.stderr = s.stdout
		return s, nil
	}
	if s.stderr, err = s.output(errs); err != nil {
		s.close()
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
	g := &gate{to: to}
	s.gates = append(s.gates, g)
	return g, nil
}

// close lets go of our ends; programs keep theirs.
func (s *streams) close() {
	for _, f := range s.owned {
		_ = f.Close()
	}
	for _, g := range s.gates {
		g.closePipe()
	}
}

// drain waits until every writer is gone, for at most d.
func (s *streams) drain(d time.Duration) {
	limit := time.Now().Add(d)
	for _, g := range s.gates {
		if done := g.copied(); done != nil {
			await(done, time.Until(limit))
		}
	}
}

// shut leaves the caller's writers alone from here on. What is in the pipes
// already is still passed on, for a short time.
func (s *streams) shut() {
	for _, g := range s.gates {
		g.shut()
	}
}

// late is what was printed after the gates were shut.
func (s *streams) late() string {
	text := ""
	for _, g := range s.gates {
		g.mu.Lock()
		if g.late != nil {
			text += g.late.String()
		}
		g.mu.Unlock()
	}
	return text
}

// gate stands between a command and a caller's writer. Builtins write through
// it; for programs it makes a pipe, once there is one, so that they write into
// the pipe itself; builtins then do too, to keep the order. When it is shut it
// reads on, so that what still prints is not ended by a broken pipe, and keeps
// the beginning and the end of that.
type gate struct {
	writing sync.Mutex // held during a write to `to`, which may block

	mu      sync.Mutex
	to      io.Writer // nil once shut
	late    *headTail
	pipe    *os.File // write end; nil until a program needs one
	closed  bool
	from    *os.File
	reading bool          // a goroutine copies from the pipe
	done    chan struct{} // closed when the pipe has been read to its end
}

// maxLate is what is kept of each half of late output.
const maxLate = 32 << 10

// Write implements io.Writer for the interpreter.
func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	pipe := g.pipe
	g.mu.Unlock()
	if pipe != nil {
		g.read()
		return pipe.Write(p)
	}
	return len(p), g.pass(p)
}

// file is the write end of the pipe, made when it is first asked for; nil when
// that fails.
func (g *gate) file() *os.File {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe == nil && !g.closed {
		r, w, err := os.Pipe()
		if err != nil {
			return nil
		}
		g.from, g.pipe, g.done = r, w, make(chan struct{})
	}
	return g.pipe
}

// read starts to pass on what is written into the pipe, if there is one.
func (g *gate) read() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.from != nil && !g.reading {
		g.reading = true
		go g.copy(g.from, g.done)
	}
}

func (g *gate) closePipe() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe != nil && !g.closed {
		_ = g.pipe.Close()
		if !g.reading { // nothing was ever started
			_ = g.from.Close()
			close(g.done)
		}
	}
	g.closed = true
}

func (g *gate) copied() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.done
}

// Sizes of reads. Most commands print little; for one that prints much, the
// buffer and the pipe grow, lest it and its reader spend their time waking each
// other.
const (
	firstRead = 4 << 10
	lastRead  = 256 << 10
	pipeSize  = 1 << 20
	much      = 64 << 10

	// gather is how long a pipe fills before it is read again while much comes:
	// less than it holds of a fast program's output.
	gather = 200 * time.Microsecond
)

func (g *gate) copy(from *os.File, done chan struct{}) {
	defer close(done)
	defer func() { _ = from.Close() }()
	buf := make([]byte, firstRead)
	for total := 0; ; {
		n, err := from.Read(buf)
		if n > 0 && g.pass(buf[:n]) != nil {
			return // a writer that fails ends its programs, as a closed pipe does
		}
		if err != nil {
			return
		}
		if len(buf) == lastRead {
			if n < lastRead/2 {
				// Its program is slower than this: a pipe that is read at each write
				// costs both of them a wake-up for a few KiB.
				time.Sleep(gather)
			} else {
				// A pipe that is never empty never parks this goroutine, and Go's
				// scheduler lets it run for 10 ms before others have their turn.
				runtime.Gosched()
			}
		}
		if total += n; total >= much && len(buf) < lastRead {
			growPipe(from, pipeSize)
			buf = make([]byte, lastRead)
		}
	}
}

func (g *gate) pass(p []byte) error {
	g.writing.Lock()
	defer g.writing.Unlock()
	g.mu.Lock()
	to := g.to
	if to == nil {
		if g.late == nil {
			g.late = &headTail{half: maxLate}
		}
		_, _ = g.late.Write(p)
	}
	g.mu.Unlock()
	if to == nil {
		return nil
	}
	_, err := to.Write(p)
	return err
}

// shutGrace bounds the wait for a writer that is busy.
const shutGrace = 100 * time.Millisecond

func (g *gate) shut() {
	limit := time.Now().Add(shutGrace)
	g.mu.Lock()
	from, done := g.from, g.done
	g.mu.Unlock()
	if from != nil {
		for pause := 50 * time.Microsecond; pending(from) > 0 && time.Now().Before(limit); pause *= 2 {
			await(done, pause)
		}
	}
	g.mu.Lock()
	g.to = nil
	g.mu.Unlock()
	// A write that had begun is waited for, unless it blocks.
	idle := make(chan struct{})
	if g.writing.TryLock() {
		g.writing.Unlock()
		return
	}
	go func() {
		g.writing.Lock()
		defer g.writing.Unlock()
		close(idle)
	}()
	await(idle, shutGrace)
}
