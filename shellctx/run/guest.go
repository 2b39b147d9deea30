package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
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
const guestScript = `
__cellmux_line=$1 __cellmux_cwd=$3
__cellmux_at=$2
while [ -n "$__cellmux_at" ] && ! cd -- "$__cellmux_at" 2>/dev/null; do
	case $__cellmux_at in
	/) break ;;
	/*/*) __cellmux_at=${__cellmux_at%/*} ;;
	*) __cellmux_at=/ ;;
	esac
done
shift 3
[ -z "$__cellmux_cwd" ] || trap '__cellmux_code=$?
	(umask 077; printf "%s" "$PWD" >"$__cellmux_cwd") 2>/dev/null
	exit "$__cellmux_code"' EXIT
eval "$__cellmux_line"
`

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

	inside, outside := cwdFile(eng.Guest(c).Home, c.WorkspaceHome, x.e.ID)
	if outside != "" {
		defer func() { _ = os.Remove(outside) }()
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
		Argv: launch.Argv, Dir: launch.Dir, Env: launch.Env, Timeout: -1, Marker: x.e.ID,
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
			s.endGuest(eng, c, x.e.ID, over)
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
	end.directory = readCwd(outside)
	if end.directory != "" {
		if s.opts.Engines != nil && end.directory != x.e.Record.CWD {
			s.mu.Lock()
			s.guests[x.key] = end.directory
			s.mu.Unlock()
		}
	}
	return end
}

// endTimeout is what the engine gets to end a session in its guest, before the
// program on the host is ended.
const endTimeout = 2 * time.Second

// endGuest ends the session in the guest: the end of the engine's program on
// the host would leave it running.
func (s *Service) endGuest(eng engine.Engine, c engine.Cell, id string, over <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := eng.End(ctx, c, id); err != nil {
		s.opts.Log.Warn("end execution in guest", "id", id, "error", err)
		return
	}
	await(over, time.Second)
}

// cwdFile names the file in which the guest leaves its directory, as the guest
// and as the host see it. Without a shared home there is none.
func cwdFile(guestHome, hostHome, id string) (inside, outside string) {
	if guestHome == "" || hostHome == "" {
		return "", ""
	}
	dir := filepath.Join(hostHome, filepath.FromSlash(cwdDir))
	if os.MkdirAll(dir, 0o700) != nil {
		return "", ""
	}
	return path.Join(guestHome, cwdDir, id), filepath.Join(dir, id)
}

// readCwd reads what the guest left: hostile input, of which only an absolute
// path in an ordinary file is taken.
func readCwd(file string) string {
	if file == "" {
		return ""
	}
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPath {
		return ""
	}
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxPath+1))
	if err != nil && !errors.Is(err, io.EOF) || len(data) > maxPath {
		return ""
	}
	dir := string(data)
	if !path.IsAbs(dir) && !filepath.IsAbs(dir) || strings.ContainsAny(dir, "\x00\n\x1b") {
		return ""
	}
	return dir
}
