package tmux

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellmux/cell/proc"
)

// control is one control client (tmux(1), CONTROL MODE): commands go in as
// lines, each answered by a block between %begin and %end or %error, with
// notifications between the blocks.
//
// Requests are pipelined and answered in order. Every request is followed by
// one that prints a token, so that a request may be answered by any number of
// blocks (if-shell adds some, an error leaves some out) and what a pane's
// content pretends to be can never shift an answer to the next request.
type control struct {
	process proc.Process
	lines   chan string   // to the writer; closed never, see quit
	notices chan notice   // to the owner; see notify for what may be dropped
	dirty   chan struct{} // something about sessions or panes changed; holds one
	quit    chan struct{} // closed by close
	closing sync.Once
	done    chan struct{} // closed when the client's output has ended

	token string
	order *atomic.Uint64 // counts what has come from servers

	mu       sync.Mutex
	next     int        // number of the next request
	pending  []*request // sent and not yet answered, in order
	answered time.Time  // of the last sign of life
	ready    chan struct{}
	isReady  bool
	early    []string // what was printed before the client was attached, for errors
	exit     string   // reason of %exit
	failure  error    // why we ended it; nil when it ended by itself
}

// notice is a subscription's new value, at its place in the order of answers.
type notice struct {
	value string
	order uint64
}

// block is the answer of one command.
type block struct {
	lines  []string
	failed bool
}

// answer is what commands printed. Of two answers that tell the same thing, the
// one of the higher order is newer, unless it was raced.
type answer struct {
	blocks []block
	order  uint64
	raced  bool // a process gave it, and something else came while that ran: either may be newer
}

// lines joins the blocks; the error is the message of the command that failed.
func (a answer) lines() ([]string, error) {
	var lines []string
	for _, b := range a.blocks {
		if b.failed {
			return nil, refusal(strings.Join(b.lines, "; "))
		}
		lines = append(lines, b.lines...)
	}
	return lines, nil
}

// request waits for its blocks.
type request struct {
	token  string
	sent   time.Time
	count  func(answered []block) int
	blocks []block
	order  uint64 // its answer's place among answers and notices
	err    error
	done   chan struct{}
}

const (
	// maxPending bounds the requests in flight; a server that answers nothing
	// must not make us hold more.
	maxPending = 256
	// maxLine bounds one line of control mode; a list of 500 panes has 100 kB.
	maxLine = 16 << 20
)

// newControl drives a started control client. It owns two goroutines, which end
// when the client's output has ended.
func newControl(p proc.Process, order *atomic.Uint64) *control {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails, crypto/rand.Read
	c := &control{
		process:  p,
		lines:    make(chan string, maxPending),
		notices:  make(chan notice, 1),
		dirty:    make(chan struct{}, 1),
		quit:     make(chan struct{}),
		done:     make(chan struct{}),
		ready:    make(chan struct{}),
		token:    fmt.Sprintf("cellmux-%x-", random),
		answered: time.Now(),
		order:    order,
	}
	go c.write()
	go c.read()
	return c
}

// do sends one line of commands and waits for its answer. count, when not nil,
// says how many lines the next block has, given the ones before; -1 leaves it
// to the guard. That is needed where a block holds a pane's content, which
// could contain the guard.
//
// Without an answer by the deadline the error wraps ErrNoAnswer; the answer is
// still taken from the stream when it comes.
func (c *control) do(ctx context.Context, deadline time.Duration, cmds string, count func([]block) int) (answer, error) {
	r, err := c.send(cmds, count)
	if err != nil {
		return answer{}, err
	}
	return c.await(ctx, r, deadline)
}

// await waits for the answer to what was sent.
func (c *control) await(ctx context.Context, r *request, deadline time.Duration) (answer, error) {
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	select {
	case <-r.done:
		return answer{blocks: r.blocks, order: r.order}, r.err
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	case <-timer.C:
		return answer{}, fmt.Errorf("%w within %v", ErrNoAnswer, deadline)
	}
}

func (c *control) send(cmds string, count func([]block) int) (*request, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended() {
		return nil, errControlEnded
	}
	if len(c.pending) >= maxPending {
		return nil, fmt.Errorf("%w: %d requests wait", ErrNoAnswer, len(c.pending))
	}
	r := &request{
		token: c.token + strconv.Itoa(c.next),
		sent:  time.Now(),
		count: count,
		done:  make(chan struct{}),
	}
	c.next++
	select {
	case c.lines <- cmds + "\ndisplay-message -p " + r.token + "\n":
	default:
		return nil, fmt.Errorf("%w: it reads no more", ErrNoAnswer)
	}
	c.pending = append(c.pending, r)
	return r, nil
}

// ended says whether the client is gone.
func (c *control) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

var errControlEnded = errors.New("the tmux control client has ended")

// waiting returns for how long the oldest request has had no answer.
func (c *control) waiting() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		return 0
	}
	// An answer to an earlier request shows that the server works.
	since := c.pending[0].sent
	if c.answered.After(since) {
		since = c.answered
	}
	return time.Since(since)
}

// silent returns for how long nothing has come from the server.
func (c *control) silent() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.answered)
}

// why says how the client ended, for the log.
func (c *control) why() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return c.failure.Error()
	}
	return strings.TrimSpace("it ended " + c.exit)
}

// close ends the client by the end of its input, as tmux wants it: a control
// client that is killed has taken servers with it. A server that is stopped
// cannot let its client go; the client is ended then.
func (c *control) close(grace time.Duration) {
	c.closing.Do(func() {
		close(c.quit)
		_ = c.process.Stdin().Close()
	})
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	}
	c.process.End()
	<-c.done
}

func (c *control) write() {
	for {
		select {
		case <-c.quit:
			return
		case <-c.done:
			return
		case l := <-c.lines:
			if _, err := io.WriteString(c.process.Stdin(), l); err != nil {
				return // the reader sees the end and says so
			}
		}
	}
}

func (c *control) read() {
	err := c.readAll(bufio.NewReaderSize(c.process.Stdout(), 64<<10))
	if err != nil {
		// Out of step with the server: nothing that follows can be trusted.
		c.process.End()
		_, _ = io.Copy(io.Discard, c.process.Stdout())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = err
	close(c.done)
	for _, r := range c.pending {
		r.err = errControlEnded
		close(r.done)
	}
	c.pending = nil
}

var (
	begin        = []byte("%begin ")
	subscription = []byte("%subscription-changed ")
)

func (c *control) readAll(in *bufio.Reader) error {
	for {
		l, err := readLine(in)
		if err != nil {
			return nil // the end of the stream
		}
		switch {
		case bytes.HasPrefix(l, begin):
			if err := c.readBlock(in, string(l[len(begin):])); err != nil {
				return err
			}
		case bytes.HasPrefix(l, subscription):
			// "%subscription-changed name $0 @0 0 %0 : value"
			if _, value, ok := bytes.Cut(l, []byte(" : ")); ok {
				c.notify(notice{value: string(value), order: c.order.Add(1)})
			}
		default:
			c.notification(string(l))
		}
	}
}

// readBlock reads the lines after "%begin guard" up to "%end guard" or "%error
// guard", and gives them to the request at the head.
func (c *control) readBlock(in *bufio.Reader, guard string) error {
	c.mu.Lock()
	c.answered = time.Now()
	var r *request
	// The last field tells our commands from those that tmux runs by itself.
	ours := strings.HasSuffix(guard, " 1")
	if ours && len(c.pending) > 0 {
		r = c.pending[0]
	}
	want := -1
	if r != nil && r.count != nil {
		want = r.count(r.blocks)
	}
	c.mu.Unlock()

	var b block
	for {
		l, err := readLine(in)
		if err != nil {
			return nil // seen again by the caller
		}
		if want < 0 || len(b.lines) == want {
			if string(l) == "%end "+guard {
				break
			}
			if string(l) == "%error "+guard {
				b.failed = true
				break
			}
			if want >= 0 {
				return fmt.Errorf("tmux printed more than the %d lines announced", want)
			}
		}
		b.lines = append(b.lines, string(l))
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !ours:
		if !c.isReady {
			c.early = append(c.early, b.lines...)
			if !b.failed {
				c.isReady = true
				close(c.ready)
			}
		}
	case r == nil:
		return errors.New("tmux answered what was not asked")
	case len(b.lines) == 1 && b.lines[0] == r.token:
		c.pending = c.pending[1:]
		r.order = c.order.Add(1)
		close(r.done)
	default:
		r.blocks = append(r.blocks, b)
	}
	return nil
}

func (c *control) notification(l string) {
	name, rest, _ := strings.Cut(l, " ")
	switch name {
	case "%exit":
		c.mu.Lock()
		c.exit = rest
		c.mu.Unlock()
	case "%sessions-changed", "%session-renamed",
		"%window-add", "%window-close", "%unlinked-window-add", "%unlinked-window-close":
		c.changed()
	default:
		if !strings.HasPrefix(name, "%") {
			c.mu.Lock()
			if !c.isReady && len(c.early) < 20 {
				c.early = append(c.early, printable(l))
			}
			c.mu.Unlock()
		}
	}
}

// changed asks the owner for a new list.
func (c *control) changed() {
	select {
	case c.dirty <- struct{}{}:
	default: // one is waiting already
	}
}

// notify replaces a value that the owner has not taken yet: only the newest
// state of the panes is of interest.
func (c *control) notify(n notice) {
	c.mu.Lock()
	c.answered = time.Now()
	c.mu.Unlock()
	for {
		select {
		case c.notices <- n:
			return
		default:
		}
		select {
		case <-c.notices:
		default:
		}
	}
}

// readLine returns the next line without its end; the slice is valid until the
// next call.
func readLine(in *bufio.Reader) ([]byte, error) {
	l, err := in.ReadSlice('\n')
	if err == nil {
		return bytes.TrimSuffix(l[:len(l)-1], []byte("\r")), nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	long := bytes.Clone(l)
	for errors.Is(err, bufio.ErrBufferFull) && len(long) < maxLine {
		l, err = in.ReadSlice('\n')
		long = append(long, l...)
	}
	if err != nil {
		return nil, err
	}
	return long[:len(long)-1], nil
}
