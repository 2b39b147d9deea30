package tmux

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cellmux/cell/proc"
)

// Outside is the tmux server that the user stands in ($TMUX), to look at only:
// nothing here sends a key, changes a size or an option, or attaches a client.
// Each call is one process.
type Outside struct {
	server *Server
	socket string
	pane   string // the pane of cellmux itself
}

// Outside returns the user's own server, or false when cellmux stands in none
// or in its own.
func (s *Server) Outside() (*Outside, bool) {
	socket, _, _ := strings.Cut(s.getenv("TMUX"), ",")
	if socket == "" || s.inside() {
		return nil, false
	}
	return &Outside{server: s, socket: socket, pane: s.getenv("TMUX_PANE")}, true
}

// List lists the panes of the user's server, without that of cellmux.
func (o *Outside) List(ctx context.Context) List {
	lines, err := o.run(ctx, command{"display-message", "-p", serverFormat}, command{"display-message", "-p", o.server.rows.all()})
	if errors.Is(err, ErrNoServer) {
		return List{Known: true}
	}
	var rows rowsOf
	if err == nil {
		rows, err = o.server.rows.parseQuery(answer{blocks: []block{{lines: lines}}})
	}
	if err != nil {
		return List{Err: sentence(err)}
	}
	list := List{Known: true, ServerPID: rows.pid, Version: rows.version}
	for _, p := range rows.panes {
		if p.ID != o.pane {
			list.Panes = append(list.Panes, p)
		}
	}
	return list
}

// Capture returns the visible screen of one of its panes, as Server.Capture does.
func (o *Outside) Capture(ctx context.Context, pane string) (Screen, error) {
	if err := validPane(pane); err != nil {
		return Screen{}, err
	}
	lines, err := o.run(ctx,
		command{"display-message", "-p", "-t", pane, captureFormat},
		command{"capture-pane", "-p", "-e", "-t", pane})
	if err == nil && len(lines) == 0 {
		err = ErrGone
	}
	if err != nil {
		return Screen{}, fmt.Errorf("look at pane %s of your tmux: %w", pane, err)
	}
	return rawScreen{meta: lines[0], rows: lines[1:]}.screen(pane, 0)
}

// SwitchCommand shows one of its panes in the client that the user looks
// through, for proc.Foreground. It ends at once; the way back is the user's own
// key of tmux.
func (o *Outside) SwitchCommand(pane string) (proc.Cmd, error) {
	if err := validPane(pane); err != nil {
		return proc.Cmd{}, err
	}
	return proc.Cmd{Argv: o.argv("switch-client", "-t", pane), Dir: "/", Env: o.server.opts.Env}, nil
}

func (o *Outside) argv(args ...string) []string {
	return append([]string{o.server.program(), "-u", "-S", o.socket}, args...)
}

func (o *Outside) run(ctx context.Context, cmds ...command) ([]string, error) {
	res, err := o.server.opts.Runner.Run(ctx, proc.Cmd{
		Argv: o.argv(argv(cmds...)...), Dir: "/", Env: o.server.env(),
		Timeout: o.server.opts.Timeout, MaxOutput: maxLine, LeavesDaemon: true,
	})
	switch {
	case errors.Is(err, proc.ErrTimeout):
		return nil, fmt.Errorf("%w within %v", ErrNoAnswer, o.server.opts.Timeout)
	case err != nil:
		return nil, err
	case res.ExitCode != 0:
		return nil, refusal(strings.TrimSpace(string(res.Stderr)))
	}
	out := strings.TrimSuffix(string(res.Stdout), "\n")
	if out == "" {
		return nil, nil
	}
	return strings.Split(out, "\n"), nil
}
