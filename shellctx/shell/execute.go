package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"cellmux/cell/proc"
)

// The times that bound an ending. Their sum keeps the promise of 2.5 seconds.
const (
	interruptGrace = 800 * time.Millisecond // between SIGINT and SIGTERM
	terminateGrace = 500 * time.Millisecond // between SIGTERM and SIGKILL
	abandonAfter   = 2300 * time.Millisecond
	drainEnded     = 100 * time.Millisecond // for output, when all that could write it has been ended
	settle         = 700 * time.Millisecond // for background statements, once the foreground has ended
)

// command is one execution, however it was asked for.
type command struct {
	source         string
	file           *syntax.File // in place of source, when it is parsed already
	params         []string     // options, as for set
	dir            string
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
	blocks         []BlockFunc
	blockNames     []string
	noTerminal     string
	marker         string
	onLeft         func(*Leftover)
}

// state is what a command left behind for the next one.
type state struct {
	dir string
	env variables
}

// execute runs a command to its end. The state is nil when nothing ran, and
// when the interpreter had to be abandoned.
func execute(ctx context.Context, c command) (*state, error) {
	info, err := os.Stat(c.dir)
	if err != nil {
		return nil, notStarted("working directory: %w", err)
	}
	if !info.IsDir() {
		return nil, notStarted("working directory %s is not a directory", c.dir)
	}
	file := c.file
	if file == nil {
		file, err = syntax.NewParser().Parse(strings.NewReader(c.source), "")
		if err != nil {
			return nil, fmt.Errorf("could not parse command: %w", err)
		}
		file.Name = "sh" // what $0 says
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.marker == "" {
		c.marker = uuid.NewString()
	}

	x := newExecution(ctx, c.marker)
	x.blocks, x.blockNames, x.noTerminal = c.blocks, c.blockNames, c.noTerminal
	streams, err := openStreams(c.stdin, c.stdout, c.stderr)
	if err != nil {
		return nil, notStarted("pipes: %w", err)
	}
	env := append(c.env[:len(c.env):len(c.env)], proc.MarkerVariable+"="+c.marker)
	r, err := interp.New(
		interp.Env(expand.ListEnviron(env...)),
		interp.Dir(c.dir),
		interp.StdIO(streams.stdin, streams.stdout, streams.stderr),
		interp.Params(c.params...),
		interp.CallHandler(x.call),
		interp.OpenHandler(x.open),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return x.exec }),
	)
	if err != nil {
		streams.close()
		return nil, notStarted("%w", err)
	}
	x.instrument(file)

	left, err := x.run(r, file)
	deadline := time.Now().Add(settle)
	x.settle(deadline)
	if x.quiet() {
		x.releaseFIFOs()
		streams.close()
	}
	if x.ctx.Err() != nil {
		deadline = time.Now().Add(drainEnded)
	}
	streams.drain(time.Until(deadline))
	streams.shut()
	leftover := x.leftover(streams)
	switch {
	case leftover == nil:
		x.awaitEnd()
		x.release()
		streams.close()
	case c.onLeft != nil:
		c.onLeft(leftover)
	}
	return left, err
}

// execution is a command that runs, and after it returned, what it left.
type execution struct {
	ctx        context.Context
	cancel     context.CancelFunc // of what the interpreter sees
	stop       func() bool        // keeps a later cancel from ending anything
	marker     string
	blocks     []BlockFunc
	blockNames []string
	noTerminal string
	background bool          // the source has background statements
	pipes      bool          // the source has pipelines
	ended      chan struct{} // closed when the tree has been ended after a cancel
	overdue    chan struct{} // closed abandonAfter a cancel, unless ended comes first
	released   chan struct{} // closed when nothing runs any more

	mu       sync.Mutex
	leaders  map[int]*leader // programs that run, by PID; each leads its session
	jobs     map[int]*job    // background statements that run
	named    map[int]*job    // all background statements so far
	changed  chan struct{}   // closed and replaced when leaders or jobs shrink
	sessions []int           // PIDs of the programs started so far, the first and the latest
	nextJob  int
	fifos    []string // pipes of process substitutions
	starting int      // programs between the decision to start them and the table
	ending   bool     // the tree is being ended: nothing is started any more
}

// maxSessions bounds what is remembered of a command that starts programs
// without end. The first is kept: PIDs are given out in order.
const maxSessions = 4096

// leader is a program that the interpreter started. It is not reaped while it
// is in the table, so its PID cannot be another's.
type leader struct {
	pid  int
	name string
}

func newExecution(ctx context.Context, marker string) *execution {
	x := &execution{
		marker:   marker,
		ended:    make(chan struct{}),
		overdue:  make(chan struct{}),
		released: make(chan struct{}),
		leaders:  make(map[int]*leader),
		jobs:     make(map[int]*job),
		named:    make(map[int]*job),
		changed:  make(chan struct{}),
	}
	x.ctx, x.cancel = context.WithCancel(ctx)
	x.stop = context.AfterFunc(x.ctx, x.end)
	return x
}

// run interprets the file in a goroutine of its own, so that neither a panic in
// the interpreter nor one of its calls that cannot be interrupted is ours.
func (x *execution) run(r *interp.Runner, file *syntax.File) (*state, error) {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("command execution panic: %v", p)
			}
		}()
		done <- r.Run(x.ctx, file)
	}()

	var err error
	select {
	case err = <-done:
	case <-x.ctx.Done():
		select {
		case err = <-done:
		case <-x.overdue:
			return nil, x.ctx.Err()
		}
	}
	if x.ctx.Err() != nil {
		// The code of a child that was ended says less than why; and what made
		// its peace with the interrupt, such as wait, did not run to its end.
		err = x.ctx.Err()
	}
	if err != nil && !IsInterrupt(err) {
		if _, ok := errors.AsType[interp.ExitStatus](err); !ok {
			err = fmt.Errorf("could not run command: %w", err)
		}
	}
	left := &state{dir: r.Dir, env: make(variables, len(r.Vars))}
	for name, v := range r.Vars {
		if v.Exported && v.Kind == expand.String && v.IsSet() && name != proc.MarkerVariable {
			left.env[name] = v.Str
		}
	}
	return left, err
}

// settle waits until nothing runs in the background any more, for a short time:
// what a background statement prints at once belongs to the command. After a
// cancel it waits for the end of the tree.
func (x *execution) settle(deadline time.Time) {
	if !x.quiet() { // a timer alone costs more than a builtin
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		select {
		case <-x.idle():
		case <-timer.C:
		case <-x.ctx.Done():
		}
	}
	x.awaitEnd()
}

// awaitEnd waits, after a cancel, until the tree has been ended.
func (x *execution) awaitEnd() {
	if x.ctx.Err() == nil {
		return
	}
	select {
	case <-x.ended:
	case <-x.overdue:
	}
}

// quiet tells whether neither a program nor a background statement runs.
func (x *execution) quiet() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.quietLocked()
}

func (x *execution) quietLocked() bool { return x.starting+len(x.leaders)+len(x.jobs) == 0 }

// idle returns a channel that is closed once it is quiet, or all was ended.
func (x *execution) idle() <-chan struct{} { return x.when(x.quietLocked) }

// when returns a channel that is closed once a condition holds, which may change
// when a program or a background statement ends, or once all was ended. The
// condition is asked with the lock held.
func (x *execution) when(holds func() bool) <-chan struct{} {
	done := make(chan struct{})
	x.mu.Lock()
	changed, now := x.changed, holds()
	x.mu.Unlock()
	if now {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		for {
			select {
			case <-changed:
			case <-x.ended:
				return
			case <-x.released:
				return
			}
			x.mu.Lock()
			var now bool
			changed, now = x.changed, holds()
			x.mu.Unlock()
			if now {
				return
			}
		}
	}()
	return done
}

// shrunk tells waiters that a program or a background statement has ended. The
// lock is held.
func (x *execution) shrunk() {
	close(x.changed)
	x.changed = make(chan struct{})
}

// end ends the whole tree when the context is over: interrupt, as ctrl-c would,
// then terminate, then kill.
func (x *execution) end() {
	defer close(x.ended)
	begin := time.Now()
	time.AfterFunc(abandonAfter, func() { close(x.overdue) })

	x.mu.Lock()
	x.ending = true // no program is started from here on
	x.mu.Unlock()
	<-x.when(func() bool { return x.starting == 0 })
	if !x.signalLeaders(interruptGroup) {
		x.mu.Lock()
		none := len(x.sessions) == 0
		x.mu.Unlock()
		if none {
			return
		}
	}
	await(x.programsGone(), interruptGrace)
	if x.signalLeaders(func(pid int) { signalGroup(pid, sigTerm) }) {
		kill := time.AfterFunc(terminateGrace, func() {
			x.signalLeaders(func(pid int) { signalGroup(pid, sigKill) })
		})
		defer kill.Stop()
	}
	// What left its session is found by the marker; what shed the marker too is
	// still found by the session of the program that started it. While killed
	// processes are dying, others may still be born: look until there are none.
	for grace := terminateGrace; time.Since(begin) < abandonAfter; grace = 0 {
		if len(x.survivors()) == 0 && x.noLeaders() {
			return
		}
		_, _ = proc.EndTree(proc.Tree{Marker: x.marker}, grace)
		x.mu.Lock()
		pids := slices.Collect(maps.Keys(x.leaders))
		x.mu.Unlock()
		for _, pid := range pids {
			_, _ = proc.EndTree(proc.Tree{PID: pid}, 0)
		}
	}
}

// signalLeaders sends something to every program that runs, with its session,
// and tells whether there was any.
func (x *execution) signalLeaders(send func(pid int)) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for pid := range x.leaders {
		send(pid)
	}
	return len(x.leaders) > 0
}

func (x *execution) noLeaders() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.leaders) == 0
}

func await(done <-chan struct{}, limit time.Duration) {
	select {
	case <-done:
		return
	default:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// programsGone returns a channel that is closed once no program runs.
func (x *execution) programsGone() <-chan struct{} {
	return x.when(func() bool { return len(x.leaders) == 0 })
}
