package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// exec is the innermost exec handler: every program that a command starts comes
// through here. It never returns an error but an exit status and the context's:
// any other would stop the interpreter, past `|| fallback`.
func (x *execution) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	if reason := x.blocked(args); reason != "" {
		_, _ = fmt.Fprintf(hc.Stderr, "%s: %s\n", args[0], reason)
		return interp.ExitStatus(codeNotExec)
	}
	if x.noTerminal != "" {
		if name := drawsFullScreen(args); name != "" {
			_, _ = fmt.Fprintf(hc.Stderr, "%s: %s\n", name, x.noTerminal)
			return interp.ExitStatus(codeNotExec)
		}
	}
	if own, ok := x.internal(args[0]); ok {
		return own(ctx, hc, args)
	}
	if run := coreutil(args[0]); run != nil {
		err := run(ctx, args)
		if _, ok := errors.AsType[interp.ExitStatus](err); err != nil && !ok && ctx.Err() == nil {
			_, _ = fmt.Fprintf(hc.Stderr, "%s: %v\n", args[0], err)
			return interp.ExitStatus(1)
		}
		return err
	}
	path, code, reason := find(hc.Dir, hc.Env, args[0])
	if code != 0 {
		_, _ = fmt.Fprintf(hc.Stderr, "%s: %s\n", args[0], reason)
		return interp.ExitStatus(code)
	}
	return x.program(ctx, hc, path, args)
}

// program starts one program as the leader of a session of its own and waits
// for it.
func (x *execution) program(ctx context.Context, hc interp.HandlerContext, path string, args []string) error {
	if !x.mayStart() {
		return x.ctx.Err()
	}
	env := environ(hc.Env, hc.Dir)
	start := func(path string, args []string) (*exec.Cmd, error) {
		out, errs := programWriter(hc.Stdout), programWriter(hc.Stderr)
		var cmd *exec.Cmd
		if isFile(hc.Stdin) && isFile(out) && isFile(errs) {
			cmd = &exec.Cmd{Path: path}
		} else {
			// The context bounds the copying of output alone: ending the program,
			// with its tree, is the execution's. It costs a goroutine.
			cmd = exec.CommandContext(ctx, path)
			cmd.Cancel = func() error { return os.ErrProcessDone }
			cmd.WaitDelay = abandonAfter
		}
		cmd.Args = args
		cmd.Env = env
		cmd.Dir = hc.Dir
		cmd.Stdin, cmd.Stdout, cmd.Stderr = hc.Stdin, out, errs
		cmd.SysProcAttr = ownSession()
		err := cmd.Start()
		// Only now, so that it is no part of the way to the program.
		readOn(hc.Stdout)
		readOn(hc.Stderr)
		return cmd, err
	}
	cmd, err := start(path, args)
	// A process that was forked meanwhile may hold a file open for writing that
	// was just written, until its own exec (https://go.dev/issue/22315).
	for wait := time.Millisecond; isTextBusy(err) && wait < 300*time.Millisecond; wait *= 2 {
		select {
		case <-ctx.Done():
			x.notStarted()
			return ctx.Err()
		case <-time.After(wait):
		}
		cmd, err = start(path, args)
	}
	if isNoExec(err) {
		// No #! line: shells run such a file themselves.
		if sh, code, _ := find(hc.Dir, hc.Env, "sh"); code == 0 {
			cmd, err = start(sh, append([]string{"sh", path}, args[1:]...))
		}
	}
	if err != nil {
		x.notStarted()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		code, reason := startFailure(path, err)
		_, _ = fmt.Fprintf(hc.Stderr, "%s: %s\n", args[0], reason)
		return interp.ExitStatus(code)
	}
	x.enter(cmd.Process.Pid, args[0], hc.Env)
	err = wait(cmd, func() { x.leave(cmd.Process.Pid) })
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_, _ = fmt.Fprintf(hc.Stderr, "%s: %v\n", args[0], err)
		return interp.ExitStatus(1)
	}
	if n := signalOf(failed.ProcessState); n > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return interp.ExitStatus(uint8(codeSignal + n))
	}
	return interp.ExitStatus(uint8(failed.ExitCode()))
}

// isFile tells whether a program can be given a stream as it is.
func isFile(stream any) bool {
	switch s := stream.(type) {
	case nil:
		return true
	case *os.File:
		return s != nil
	}
	return false
}

// mayStart announces a program, unless the tree is being ended: whoever ends it
// waits until all that were announced are in the table.
func (x *execution) mayStart() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ending || x.ctx.Err() != nil {
		return false
	}
	x.starting++
	return true
}

// notStarted takes an announcement back.
func (x *execution) notStarted() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.starting--
	x.shrunk()
}

// enter puts an announced program into the table.
func (x *execution) enter(pid int, name string, env expand.Environ) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.sessions) == maxSessions {
		x.sessions = append(x.sessions[:1], x.sessions[maxSessions/2:]...)
	}
	x.sessions = append(x.sessions, pid)
	l := &leader{pid: pid, name: name}
	x.leaders[pid] = l
	x.starting--
	x.shrunk()
	x.joinJob(l, env)
}

// leave takes a program out that has ended and is not reaped yet.
func (x *execution) leave(pid int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.leaders, pid)
	x.shrunk()
}

// environ is what a program gets: the exported scalars, and the working
// directory, which bash exports always.
func environ(env expand.Environ, dir string) []string {
	vars := make(map[string]string, 64)
	for name, v := range env.Each {
		if v.Exported && v.Kind == expand.String && v.IsSet() {
			vars[name] = v.Str
		} else {
			delete(vars, name) // an inner scope took it away
		}
	}
	vars["PWD"] = dir
	return variables(vars).list()
}

// startFailure tells what bash would.
func startFailure(path string, err error) (uint8, string) {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return codeNotFound, fmt.Sprintf("cannot start %s: its interpreter is missing", path)
	case errors.Is(err, os.ErrPermission):
		return codeNotExec, "permission denied"
	default:
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return codeNotExec, err.Error()
	}
}
