// Package proctest holds a scripted proc.Runner for tests.
//
// The rule it keeps: a test says every process that is to be started, by its
// exact argv and in order; one that was not expected fails the test, and so
// does an expectation that nobody used.
package proctest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"cellmux/cell/proc"
)

// TB is what a Runner needs of testing.TB.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Runner answers calls from a script. It is safe for concurrent use; where
// calls race, order of equal argv alone is kept.
type Runner struct {
	t     TB
	mu    sync.Mutex
	calls []*Call
	cmds  []proc.Cmd
}

var _ proc.Runner = (*Runner)(nil)

// New returns a Runner with an empty script, which t checks at its end.
func New(t TB) *Runner {
	r := &Runner{t: t}
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, c := range r.calls {
			if !c.used && !c.optional {
				t.Errorf("never started: %s", show(c.argv))
			}
		}
	})
	return r
}

// Call is one expected process.
type Call struct {
	argv     []string
	start    bool
	used     bool
	optional bool
	dir      string
	env      []string
	answer   func(ctx context.Context, c proc.Cmd) (proc.Result, error)
	talk     func(stdin io.Reader, stdout io.Writer) proc.Result
}

// Expect adds a call of Run with exactly this argv. It succeeds and prints
// nothing unless told otherwise.
func (r *Runner) Expect(argv ...string) *Call { return r.add(&Call{argv: argv}) }

// ExpectStart adds a call of Start with exactly this argv.
func (r *Runner) ExpectStart(argv ...string) *Call {
	return r.add(&Call{argv: argv, start: true})
}

// Allow adds a call that may happen any number of times, also never.
func (r *Runner) Allow(argv ...string) *Call { return r.add(&Call{argv: argv, optional: true}) }

func (r *Runner) add(c *Call) *Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	return c
}

// Prints makes the process print stdout and exit with 0.
func (c *Call) Prints(stdout string) *Call {
	return c.Do(func(context.Context, proc.Cmd) (proc.Result, error) {
		return proc.Result{Stdout: []byte(stdout)}, nil
	})
}

// Exits makes the process print and exit with a code.
func (c *Call) Exits(code int, stdout, stderr string) *Call {
	return c.Do(func(context.Context, proc.Cmd) (proc.Result, error) {
		return proc.Result{Stdout: []byte(stdout), Stderr: []byte(stderr), ExitCode: code}, nil
	})
}

// Fails makes the call return an error, such as proc.ErrNotFound.
func (c *Call) Fails(err error) *Call {
	return c.Do(func(context.Context, proc.Cmd) (proc.Result, error) { return proc.Result{}, err })
}

// Hangs makes the call block until its context ends, as a wedged daemon would.
func (c *Call) Hangs() *Call {
	return c.Do(func(ctx context.Context, _ proc.Cmd) (proc.Result, error) {
		<-ctx.Done()
		return proc.Result{}, context.Cause(ctx)
	})
}

// Do answers the call with a function, which may look at the Cmd.
func (c *Call) Do(f func(ctx context.Context, cmd proc.Cmd) (proc.Result, error)) *Call {
	c.answer = f
	return c
}

// Talks answers a call of Start: f runs in a goroutine with the child's side
// of the streams; the process ends with it.
func (c *Call) Talks(f func(stdin io.Reader, stdout io.Writer) proc.Result) *Call {
	c.talk = f
	return c
}

// InDir demands a directory.
func (c *Call) InDir(dir string) *Call { c.dir = dir; return c }

// WithEnv demands these entries in the environment, among others.
func (c *Call) WithEnv(kv ...string) *Call { c.env = kv; return c }

// Commands returns what was started so far, in order.
func (r *Runner) Commands() []proc.Cmd {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.cmds)
}

// Run implements proc.Runner.
func (r *Runner) Run(ctx context.Context, c proc.Cmd) (proc.Result, error) {
	r.t.Helper()
	call := r.take(c, false)
	if call == nil {
		return proc.Result{}, fmt.Errorf("not expected: %s", show(c.Argv))
	}
	if call.answer == nil {
		return proc.Result{}, nil
	}
	return call.answer(ctx, c)
}

// Start implements proc.Runner.
func (r *Runner) Start(ctx context.Context, c proc.Cmd) (proc.Process, error) {
	r.t.Helper()
	call := r.take(c, true)
	if call == nil {
		return nil, fmt.Errorf("not expected: %s", show(c.Argv))
	}
	if call.answer != nil {
		if _, err := call.answer(ctx, c); err != nil {
			return nil, err
		}
	}
	return startTalk(ctx, call.talk), nil
}

func (r *Runner) take(c proc.Cmd, start bool) *Call {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cmds = append(r.cmds, c)
	for _, call := range r.calls {
		if call.start != start || !slices.Equal(call.argv, c.Argv) || (call.used && !call.optional) {
			continue
		}
		call.used = true
		if call.dir != "" && call.dir != c.Dir {
			r.t.Errorf("%s: started in %q, want %q", show(c.Argv), c.Dir, call.dir)
		}
		for _, kv := range call.env {
			if !slices.Contains(c.Env, kv) {
				r.t.Errorf("%s: %q is not in its environment", show(c.Argv), kv)
			}
		}
		return call
	}
	r.t.Errorf("not expected: %s", show(c.Argv))
	return nil
}

func show(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		quoted[i] = fmt.Sprintf("%q", a)
	}
	return strings.Join(quoted, " ")
}
