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
	"sync/atomic"
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
	onExit         func(error)
	onLeft         func(*Leftover)
}

// state is what a command left behind for the next one.
type state struct {
	dir string
	env variables
}

// execute runs a command to its end and calls then, once. The state is nil when
// nothing ran, and when the interpreter had to be abandoned: then another
// goroutine calls then, while this one is still stuck in the interpreter.
func execute(ctx context.Context, c command, then func(*state, error)) {
	x, r, file, err := prepare(ctx, c)
	if err != nil {
		then(nil, err)
		return
	}
	x.run(r, file, func(left *state, err error) {
		if c.onExit != nil {
			c.onExit(err)
		}
		x.wind(c.onLeft)
		then(left, err)
	})
}

// wait is execute for a caller that must not get stuck: it returns, also when
// the interpreter does not.
func (c command) wait(ctx context.Context) (*state, error) {
	type result struct {
		left *state
		err  error
	}
	done := make(chan result, 1)
	then := func(left *state, err error) { done <- result{left, err} }
	if Brief(c.source) {
		execute(ctx, c, then)
	} else {
		go execute(ctx, c, then)
	}
	r := <-done
	return r.left, r.err
}

// prepare makes everything that a command needs before anything of it runs.
func prepare(ctx context.Context, c command) (*execution, *interp.Runner, *syntax.File, error) {
	info, err := os.Stat(c.dir)
	if err != nil {
		return nil, nil, nil, notStarted("working directory: %w", err)
	}
	if !info.IsDir() {
		return nil, nil, nil, notStarted("working directory %s is not a directory", c.dir)
	}
	file := c.file
	if file == nil {
		file, err = syntax.NewParser().Parse(strings.NewReader(c.source), "")
		if err != nil {
			return nil, nil, nil, fmt.Errorf("could not parse command: %w", err)
		}
		file.Name = "sh" // what $0 says
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, nil, err
	}
	if c.marker == "" {
		c.marker = uuid.NewString()
	}
	streams, err := openStreams(c.stdin, c.stdout, c.stderr)
	if err != nil {
		return nil, nil, nil, notStarted("pipes: %w", err)
	}
	x := newExecution(ctx, c.marker, streams)
	x.blocks, x.blockNames, x.noTerminal = c.blocks, c.blockNames, c.noTerminal
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
		x.cancel()
		streams.close()
		return nil, nil, nil, notStarted("%w", err)
	}
	// The interpreter copies all variables into it at the end.
	r.Vars = make(map[string]expand.Variable, len(env)+16)
	x.instrument(file, false)
	return x, r, file, nil
}

// wind winds a command up whose foreground has ended: what still runs in the
// background gets a moment, what was printed arrives, and what is left running
// is told.
func (x *execution) wind(onLeft func(*Leftover)) {
	deadline := time.Now().Add(settle)
	x.settle(deadline)
	if x.quiet() {
		x.releaseFIFOs()
		x.streams.close()
	}
	if x.ctx.Err() != nil {
		deadline = time.Now().Add(drainEnded)
	}
	x.streams.drain(time.Until(deadline))
	x.streams.shut()
	leftover := x.leftover()
	switch {
	case leftover == nil:
		x.awaitEnd()
		x.release()
		x.streams.close()
	case onLeft != nil:
		onLeft(leftover)
	}
}

// execution is a command that runs, and after it returned, what it left.
type execution struct {
	ctx        context.Context
	cancel     context.CancelFunc // of what the interpreter sees
	stop       func() bool        // keeps a later cancel from ending anything
	marker     string
	streams    *streams
	blocks     []BlockFunc
	blockNames []string
	noTerminal string
	background bool          // the source has background statements
	pipes      bool          // the source has pipelines
	ended      chan struct{} // closed when the tree has been ended after a cancel
	overdue    chan struct{} // closed abandonAfter a cancel, unless ended comes first
	released   chan struct{} // closed when nothing runs any more
	abandon    func()        // called abandonAfter a cancel

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

func newExecution(ctx context.Context, marker string, streams *streams) *execution {
	x := &execution{
		marker:   marker,
		streams:  streams,
		ended:    make(chan struct{}),
		overdue:  make(chan struct{}),
		released: make(chan struct{}),
		leaders:  make(map[int]*leader),
		jobs:     make(map[int]*job),
		named:    make(map[int]*job),
		changed:  make(chan struct{}),
	}
	x.ctx, x.cancel = context.WithCancel(ctx)
	return x
}

// run runs the interpreter and calls ended, once: abandonAfter a cancel at the
// latest, whether or not the interpreter has returned. Panics of the
// interpreter are errors: neither a script nor the library may end cellmux.
func (x *execution) run(r *interp.Runner, file *syntax.File, ended func(*state, error)) {
	var told atomic.Bool
	x.abandon = func() {
		if told.CompareAndSwap(false, true) {
			ended(nil, x.ctx.Err())
		}
	}
	x.stop = context.AfterFunc(x.ctx, x.end)
	err := interpret(x.ctx, r, file)
	if !told.CompareAndSwap(false, true) {
		return
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
	ended(left, err)
}

func interpret(ctx context.Context, r *interp.Runner, file *syntax.File) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("command execution panic: %v", p)
		}
	}()
	return r.Run(ctx, file)
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
	time.AfterFunc(abandonAfter, func() {
		close(x.overdue)
		x.abandon()
	})

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
