package proc

import (
	"io"
	"os"
	"sync"
	"time"
)

// head keeps the first limit bytes written to it and counts the rest. Writing
// never fails: a program that prints more than is kept must not be stopped by
// a full pipe.
type head struct {
	limit   int
	kept    []byte
	dropped int64
}

func (h *head) Write(p []byte) (int, error) {
	take := min(len(p), max(h.limit-len(h.kept), 0))
	h.kept = append(h.kept, p[:take]...)
	h.dropped += int64(len(p) - take)
	return len(p), nil
}

// pipeSet carries the standard streams of one child. Files of the child are
// real pipes, so that waiting for the child never waits for a copy.
type pipeSet struct {
	childEnds []*os.File
	ownEnds   []*os.File
	copies    []func()
	done      sync.WaitGroup
	feeds     []*os.File // write ends, closed at the end to stop their copies
}

// input returns the child's end of its standard input, nil for /dev/null.
func (p *pipeSet) input(from io.Reader) (*os.File, error) {
	if from == nil {
		return nil, nil
	}
	if f, ok := from.(*os.File); ok {
		return f, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.childEnds = append(p.childEnds, r)
	p.ownEnds = append(p.ownEnds, w)
	p.feeds = append(p.feeds, w)
	// Not waited for: a reader that blocks must not hold the call, and a child
	// that does not read its input is no failure.
	p.copies = append(p.copies, func() {
		go func() {
			_, _ = io.Copy(w, from)
			_ = w.Close()
		}()
	})
	return r, nil
}

// output returns the child's end of a stream that is copied into to.
func (p *pipeSet) output(to io.Writer) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.childEnds = append(p.childEnds, w)
	p.ownEnds = append(p.ownEnds, r)
	p.copies = append(p.copies, func() {
		p.done.Add(1)
		go func() {
			defer p.done.Done()
			_, _ = io.CopyBuffer(to, onlyReader{r}, make([]byte, 32<<10))
			_ = r.Close()
		}()
	})
	return w, nil
}

// onlyReader hides the file's WriteTo, which would ignore the buffer.
type onlyReader struct{ io.Reader }

func (p *pipeSet) closeChildEnds() {
	for _, f := range p.childEnds {
		_ = f.Close()
	}
}

func (p *pipeSet) abandon() {
	p.closeChildEnds()
	for _, f := range p.ownEnds {
		_ = f.Close()
	}
}

func (p *pipeSet) run() {
	for _, start := range p.copies {
		start()
	}
}

// drain waits until the outputs are read to their ends, at most wait, and
// returns with every copy of an output ended.
func (p *pipeSet) drain(wait time.Duration) {
	for _, f := range p.feeds {
		_ = f.Close()
	}
	all := make(chan struct{})
	go func() {
		p.done.Wait()
		close(all)
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-all:
	case <-timer.C:
		for _, f := range p.ownEnds {
			_ = f.Close() // ends a blocked read
		}
		<-all
	}
}
