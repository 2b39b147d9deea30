package run

import (
	"context"
	"time"

	"cellmux/shellctx/shell"
)

// hostShell is the shell of a slot on the host.
type hostShell struct {
	shell *shell.Shell
}

// host returns a slot's shell on the host, made on first use.
func (s *Service) host(ctx context.Context, r Request, k key, dir string) (*shell.Shell, error) {
	s.mu.Lock()
	h := s.hosts[k]
	s.mu.Unlock()
	if h != nil {
		return h.shell, nil
	}
	var env []string
	if s.opts.Env != nil {
		var err error
		if env, err = s.opts.Env(ctx, r.Cell, r.Slot, true); err != nil {
			return nil, err
		}
	}
	env = append(env[:len(env):len(env)], shell.Unattended()...)
	h = &hostShell{shell: shell.NewShell(&shell.Options{
		WorkingDir: dir, Env: env, BlockFuncs: s.opts.Blocks, BlockNames: s.opts.BlockNames, NoTerminal: noTerminal,
	})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.hosts[k]; other != nil {
		return other.shell, nil // a second command was faster
	}
	s.hosts[k] = h
	return h.shell, nil
}

// copyGrace is how long after a command's end its output may take to arrive.
const copyGrace = 500 * time.Millisecond

// runHost runs a line in the interpreter.
func (s *Service) runHost(x *execution) ending {
	dir := x.e.Record.CWD
	sh, err := s.host(x.ctx, x.request, x.key, dir)
	if err != nil {
		return ending{code: shell.NotStarted, problem: "environment: " + err.Error()}
	}
	s.hide(x)
	if sh.GetWorkingDir() != dir {
		// The directory was gone, or is that of an earlier cellmux.
		if err := sh.SetWorkingDir(dir); err != nil {
			return ending{code: shell.NotStarted, problem: err.Error()}
		}
	}
	line, cwd := x.request.Line, ""
	argv, posix, note := s.program.use(x.ctx, dir, sh.GetEnv())
	if argv != nil {
		// Inside another shell nobody of ours stands before a program's start.
		if name := shell.FullScreen(line); name != "" {
			return refused(name)
		}
		if line, cwd, err = programLine(argv, posix, line); err != nil {
			return ending{code: shell.NotStarted, problem: err.Error()}
		}
	}
	var left *shell.Leftover
	err = sh.Do(x.ctx, shell.Command{
		Source: line, Stdout: x.rec, Stderr: x.rec, Marker: x.e.ID,
		OnLeftover: func(l *shell.Leftover) { left = l },
	})
	end := outcome(err)
	x.knowsExit(end.code)
	end.note = note
	if at := takeCwd(cwd); at != "" && at != dir {
		_ = sh.SetWorkingDir(at) // gone already: the next command says so
	}
	end.directory = sh.GetWorkingDir()
	if left != nil {
		end.left = &leftovers{Leftover: left}
	}
	return end
}

func await(done <-chan struct{}, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
