package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"cellmux/cell/proc"
	"cellmux/engine/tmux"
)

// outsidePrefix marks the ID of a pane of the user's own tmux server: pane IDs
// of two servers look the same.
const outsidePrefix = "outside:"

// ErrOutside says that a pane is none of ours: it is looked at and switched to.
var ErrOutside = errors.New("it is a pane of your own tmux, which cellmux only looks at")

// Panes looks at panes and lends the terminal to them. It is safe for
// concurrent use.
type Panes struct {
	server  *tmux.Server
	outside *tmux.Outside // nil: the user stands in no tmux of his own
}

// NewPanes returns the panes of our server, and of the one that the user
// stands in.
func NewPanes(server *tmux.Server) *Panes {
	p := &Panes{server: server}
	if outside, has := server.Outside(); has {
		p.outside = outside
	}
	return p
}

// Capture returns the visible screen of a pane with its SGR colours, and offset
// lines of history above it when offset is positive.
func (p *Panes) Capture(ctx context.Context, pane string, offset int) (Screen, error) {
	if id, is := strings.CutPrefix(pane, outsidePrefix); is {
		if p.outside == nil {
			return Screen{}, fmt.Errorf("look at pane %s: %w", pane, tmux.ErrGone)
		}
		return toScreen(p.outside.Capture(ctx, id))
	}
	return toScreen(p.server.Capture(ctx, pane, offset))
}

func toScreen(s tmux.Screen, err error) (Screen, error) {
	if err != nil {
		return Screen{}, err
	}
	return Screen{Pane: s.Pane, Rows: s.Rows, Width: s.Width, Height: s.Height, Taken: s.Taken}, nil
}

// Attach returns what lends the terminal to a pane until the user detaches.
func (p *Panes) Attach(_ context.Context, pane string) (Attachment, error) {
	if id, is := strings.CutPrefix(pane, outsidePrefix); is {
		if p.outside == nil {
			return nil, fmt.Errorf("switch to pane %s: %w", pane, tmux.ErrGone)
		}
		command, err := p.outside.SwitchCommand(id)
		return &attachment{command: command}, err
	}
	command, err := p.server.AttachCommand(pane)
	if err != nil {
		return nil, err
	}
	return &attachment{command: command, reset: true}, nil
}

// Type sends keys as tmux names them.
func (p *Panes) Type(ctx context.Context, pane string, keys []string) error {
	if strings.HasPrefix(pane, outsidePrefix) {
		return fmt.Errorf("type into %s: %w", pane, ErrOutside)
	}
	return p.server.Keys(ctx, pane, keys...)
}

// SetSize says how large the terminal is, so that a new pane is born at its
// real size.
func (p *Panes) SetSize(width, height int) { p.server.SetSize(width, height) }

// Outside lists the panes of the tmux server that the user stands in; without
// an answer there are none.
func (p *Panes) Outside(ctx context.Context) []Outside {
	if p.outside == nil {
		return nil
	}
	var out []Outside
	for _, pane := range p.outside.List(ctx).Panes {
		out = append(out, Outside{
			Pane: outsidePrefix + pane.ID, Session: pane.Session, Command: pane.Command,
			Path: pane.Path, Title: pane.Title, Activity: pane.Activity,
		})
	}
	return out
}

// attachment runs a tmux client in the foreground.
type attachment struct {
	command  proc.Cmd
	in       io.Reader
	out, err io.Writer
	reset    bool // the terminal's modes are set back afterwards
}

func (a *attachment) SetStdin(r io.Reader)  { a.in = r }
func (a *attachment) SetStdout(w io.Writer) { a.out = w }
func (a *attachment) SetStderr(w io.Writer) { a.err = w }

// Run implements Attachment. What a program in the pane, or tmux, left on in
// the terminal is turned off: a keyboard mode that stays makes keys dead.
func (a *attachment) Run() error {
	foreground := proc.Foreground(a.command)
	foreground.SetStdin(a.in)
	// A tmux client draws on the terminal of its input. What it prints is a line
	// on the user's own screen for each time that somebody detached.
	foreground.SetStdout(io.Discard)
	foreground.SetStderr(a.err)
	err := foreground.Run()
	if a.reset && a.out != nil {
		_, resetErr := io.WriteString(a.out, tmux.ResetTerminal)
		err = errors.Join(err, resetErr)
	}
	return err
}
