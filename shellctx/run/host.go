package run

import (
	"context"
	"time"

	"cellmux/shellctx/shell"
)

// hostShell is the shell of a slot on the host.
type hostShell struct {
	shell    *shell.Shell
	exported exports // by lines in the user's own shell
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

// exported are the changes that earlier lines of a slot made to the environment.
func (s *Service) exported(k key) exports {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[k]; h != nil {
		return h.exported
	}
	return nil
}

// export keeps what one line changed.
func (s *Service) export(k key, before, after map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[k]; h != nil {
		h.exported = h.exported.with(before, after)
	}
}

// copyGrace is how long after a command's end its output may take to arrive.
const copyGrace = 500 * time.Millisecond

// runHost runs a line in the interpreter and calls then with its end, once: on
// this goroutine, or on another one if the interpreter had to be abandoned.
func (s *Service) runHost(x *execution, then func(ending)) {
	never := func(problem string) { then(ending{code: shell.NotStarted, problem: problem}) }
	dir := x.e.Record.CWD
	sh, err := s.host(x.ctx, x.request, x.key, dir)
	if err != nil {
		never("environment: " + err.Error())
		return
	}
	s.hide(x)
	if sh.GetWorkingDir() != dir {
		// The directory was gone, or is that of an earlier cellmux.
		if err := sh.SetWorkingDir(dir); err != nil {
			never(err.Error())
			return
		}
	}
	line, at, note := x.request.Line, "", ""
	foreign := false // another shell runs the line
	if s.opts.Program != "" {
		var (
			argv  []string
			posix bool
		)
		if argv, posix, note = s.program.use(x.ctx, dir, sh.GetEnv()); argv != nil {
			if why := s.refused(line); why != "" {
				never(why)
				return
			}
			foreign = true
			if line, at, err = programLine(argv, posix, line, s.exported(x.key)); err != nil {
				never(err.Error())
				return
			}
		}
	}
	var left *shell.Leftover
	sh.DoThen(x.ctx, shell.Command{
		Source: line, Stdout: x.rec, Stderr: x.rec, Marker: x.e.ID, Unblocked: foreign,
		OnExit:     func(err error) { x.knowsExit(shell.ExitCode(err)) },
		OnLeftover: func(l *shell.Leftover) { left = l },
	}, func(err error) {
		end := outcome(err)
		end.note = note
		if at != "" {
			cwd, before, after := takeState(at)
			if cwd != "" && cwd != dir {
				_ = sh.SetWorkingDir(cwd) // gone already: the next command says so
			}
			s.export(x.key, before, after)
		}
		end.directory = sh.GetWorkingDir()
		if left != nil {
			end.left = &leftovers{Leftover: left}
		}
		then(end)
	})
}

func await(done <-chan struct{}, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
