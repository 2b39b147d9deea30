package tuitest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"cellmux/engine/fleet"
	"cellmux/shellctx"
	"cellmux/shellctx/run"
)

type shellState struct {
	executions map[fleet.Ref][]*Command
	outputs    map[string]func(*Command)
}

func newShellState() shellState {
	return shellState{executions: map[fleet.Ref][]*Command{}, outputs: map[string]func(*Command){}}
}

// When says what a `!` line does as soon as it starts. Without it a command
// runs until the test ends it.
func (f *Fleet) When(line string, do func(*Command)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shell.outputs[line] = do
}

// Command is a `!` line that runs. It implements run.Handle.
type Command struct {
	mu        sync.Mutex
	execution run.Execution
	chunks    chan run.Chunk
	done      chan struct{}
	output    strings.Builder
}

// Command returns the newest execution of a line.
func (f *Fleet) Command(line string) *Command {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, all := range f.shell.executions {
		for _, c := range slices.Backward(all) {
			if c.Execution().Record.Command == line {
				return c
			}
		}
	}
	return nil
}

// Print is output of the command.
func (c *Command) Print(text string) {
	c.mu.Lock()
	c.output.WriteString(text)
	c.mu.Unlock()
	c.chunks <- run.Chunk{Text: text}
}

// End ends the command.
func (c *Command) End(state run.State, code int) { c.EndWith(state, code, nil) }

// EndWith is End with what change makes of the execution.
func (c *Command) EndWith(state run.State, code int, change func(*run.Execution)) {
	c.mu.Lock()
	if c.execution.State != run.Running {
		c.mu.Unlock()
		return
	}
	e := &c.execution
	e.State, e.Ended = state, time.Now()
	e.Record.ExitCode, e.Record.Output = code, c.output.String()
	e.Lines = strings.Count(e.Record.Output, "\n")
	if change != nil {
		change(e)
	}
	c.mu.Unlock()
	close(c.chunks)
	close(c.done)
}

// Execution implements run.Handle.
func (c *Command) Execution() run.Execution {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.execution
}

// Chunks implements run.Handle.
func (c *Command) Chunks() <-chan run.Chunk { return c.chunks }

// Cancel implements run.Handle.
func (c *Command) Cancel() { c.End(run.Cancelled, 130) }

// Wait implements run.Handle.
func (c *Command) Wait(ctx context.Context) (run.Execution, error) {
	select {
	case <-c.done:
		return c.Execution(), nil
	case <-ctx.Done():
		return c.Execution(), ctx.Err()
	}
}

// Start implements tui.Shell.
func (f *Fleet) Start(ctx context.Context, r fleet.Ref, line string, mode run.Mode, onHost bool) (run.Handle, error) {
	if err := f.called(ctx, "Start", r, mode, onHost, line); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &Command{chunks: make(chan run.Chunk, 64), done: make(chan struct{})}
	c.execution = run.Execution{
		ID: fmt.Sprintf("e%d", len(f.shell.executions[r])+1), Cell: r.Cell, Slot: r.Slot, Mode: mode, OnHost: onHost,
		State: run.Running, Started: time.Now(), Record: shellctx.Record{Command: line},
	}
	f.shell.executions[r] = append(f.shell.executions[r], c)
	if do := f.shell.outputs[line]; do != nil {
		go do(c)
	}
	return c, nil
}

// Where implements tui.Shell.
func (f *Fleet) Where(ctx context.Context, r fleet.Ref, onHost bool) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.snapshot.Cells {
		if c.Name == r.Cell && c.Engine != "host" && !onHost {
			return c.Engine + ":" + c.Name + " /src", f.failures["Where"]
		}
	}
	return "host ~/src/" + r.Cell, f.failures["Where"]
}

// Log implements tui.Shell.
func (f *Fleet) Log(ctx context.Context, r fleet.Ref, n int) ([]run.Execution, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []run.Execution
	for _, c := range f.shell.executions[r] {
		out = append(out, c.Execution())
	}
	return out, f.failures["Log"]
}

// Ran adds commands that ran earlier.
func (f *Fleet) Ran(r fleet.Ref, executions ...run.Execution) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range executions {
		f.shell.executions[r] = append(f.shell.executions[r], &Command{execution: e})
	}
}

// Complete implements tui.Shell.
func (f *Fleet) Complete(ctx context.Context, r fleet.Ref, line string, cursor int) ([]string, error) {
	var out []string
	for _, word := range []string{"git status", "git stash", "make test"} {
		if strings.HasPrefix(word, line) {
			out = append(out, word)
		}
	}
	return out, f.called(ctx, "Complete", r, line, cursor)
}
