package run

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/shellctx/shell"
)

// guestScript is what the guest's sh runs for a line. It goes to the shell's
// directory, or the nearest that exists above it, runs the line as it is (so
// that comments, here-documents and a trailing backslash mean what they mean),
// and at the end, however the line ends, leaves the directory where it then is
// in a file of the guest's home. Standard output would not do: the line may have
// redirected it, and its background processes may still write to it.
const guestScript = `__cellmux_line=$1 __cellmux_at=$2 __cellmux_cwd=$3; ` +
	`while [ -n "$__cellmux_at" ] && ! cd -- "$__cellmux_at" 2>/dev/null; do ` +
	`case $__cellmux_at in /) break ;; /*/*) __cellmux_at=${__cellmux_at%/*} ;; *) __cellmux_at=/ ;; esac; done; ` +
	`shift 3; [ -z "$__cellmux_cwd" ] || ` + leaveCwd + `; eval "$__cellmux_line"`

// cwdDir holds, below the guest's home, one file per execution.
const cwdDir = ".cellmux/cwd"

// maxPath bounds what is read back of such a file: a guest writes it.
const maxPath = 4096

// runGuest runs a line in the guest, through its engine.
func (s *Service) runGuest(x *execution) ending {
	failed := func(err error) ending {
		if x.ctx.Err() != nil {
			return ending{code: 130, started: true, cancelled: true}
		}
		return ending{code: shell.NotStarted, problem: err.Error()}
	}
	c := x.request.Cell
	if why := s.refused(x.request.Line); why != "" {
		return ending{code: shell.NotStarted, problem: why}
	}
	eng, err := s.engine(c)
	if err != nil {
		return failed(err)
	}
	if err := eng.Up(x.ctx, c, nil); err != nil {
		return failed(err)
	}
	var env []string
	if s.opts.Env != nil {
		if env, err = s.opts.Env(x.ctx, c, x.request.Slot, false); err != nil {
			return failed(fmt.Errorf("environment: %w", err))
		}
	}
	s.hide(x)
	env = append(env[:len(env):len(env)], shell.Unattended()...)
	env = append(env, shell.EnvMarkers()...)

	inside := ""
	home := openHome(c.WorkspaceHome)
	if home != nil {
		defer func() { _ = home.Close() }()
		defer func() { _ = home.Remove(cwdFile(x.e.ID)) }()
		if guestHome := eng.Guest(c).Home; guestHome != "" {
			inside = path.Join(guestHome, cwdFile(x.e.ID))
		}
	}
	launch, err := eng.Launch(engine.Spec{
		Cell:      c,
		Argv:      []string{"sh", "-c", guestScript, "sh", x.request.Line, x.e.Record.CWD, inside},
		Env:       env,
		Execution: x.e.ID,
	})
	if err != nil {
		return failed(err)
	}
	// The program that stands for the guest's must outlive the cancel: it is
	// told to end by way of the guest.
	client, drop := context.WithCancel(context.WithoutCancel(x.ctx))
	defer drop()
	p, err := s.opts.Runner.Start(client, proc.Cmd{
		Argv: launch.Argv, Dir: launch.Dir, Env: launch.Env, Timeout: -1, Grace: clientGrace, Marker: x.e.ID,
	})
	if err != nil {
		return failed(err)
	}
	_ = p.Stdin().Close()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.CopyBuffer(x.rec, p.Stdout(), make([]byte, 64<<10))
	}()
	over := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-over:
		case <-x.ctx.Done():
			s.endGuest(eng, c, x.e.ID)
			await(over, guestGrace)
			p.End()
		}
	}()
	result, err := p.Wait()
	close(over)
	<-ended
	await(copied, copyGrace)

	end := ending{code: result.ExitCode, started: true, cancelled: x.ctx.Err() != nil}
	if end.cancelled {
		end.code = 130
	} else if err != nil {
		end.problem = err.Error()
	}
	if end.directory = readCwd(home, cwdFile(x.e.ID)); end.directory != "" && end.directory != x.e.Record.CWD {
		s.mu.Lock()
		s.guests[x.key] = end.directory
		s.mu.Unlock()
	}
	return end
}

// Times that bound a cancel in a guest. guestGrace and clientGrace together keep
// the promise of 2.5 seconds.
const (
	guestGrace  = 1500 * time.Millisecond // for the guest's session to end
	clientGrace = 500 * time.Millisecond  // for the engine's program on the host, after that
	endTimeout  = 10 * time.Second        // for the engine's answer, whether or not it is still waited for
)

// endGuest asks the engine to end the session in the guest: the end of the
// engine's program on the host would leave it running. It does not wait.
func (s *Service) endGuest(eng engine.Engine, c engine.Cell, id string) {
	s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
		if err := eng.End(ctx, c, id); err != nil {
			s.opts.Log.Warn("end execution in guest", "id", id, "error", err)
		}
	})
}

// openHome opens the guest's home as the host sees it, and makes the directory
// for what executions leave there; nil when there is none. The guest can write
// in it: os.Root keeps its links from leading out.
func openHome(dir string) *os.Root {
	if dir == "" {
		return nil
	}
	home, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	if home.MkdirAll(cwdDir, 0o700) != nil {
		_ = home.Close()
		return nil
	}
	return home
}

func cwdFile(id string) string { return path.Join(cwdDir, id) }

// readCwd reads what the guest left: hostile input, of which only an absolute
// path in an ordinary file is taken.
func readCwd(home *os.Root, name string) string {
	if home == nil {
		return ""
	}
	// A named pipe must not block.
	f, err := home.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPath+1))
	if err != nil || len(data) > maxPath {
		return ""
	}
	dir := string(data)
	if !path.IsAbs(dir) && !filepath.IsAbs(dir) || strings.ContainsAny(dir, "\x00\n\x1b") {
		return ""
	}
	return dir
}
