package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"cellmux/engine/fleet"
)

// attach lends the terminal to a pane.
func (c *commands) attach() *cobra.Command {
	return &cobra.Command{
		Use:   "attach [CELL[:SLOT]|DIR]",
		Short: "Attach the terminal to a pane (ctrl-q comes back)",
		Example: `  cellmux attach api:0
  cellmux attach                   # the one slot of the current directory's cell`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if !c.Terminal {
				return usagef("attach needs a terminal on standard input and output")
			}
			app, snap, err := c.snapshot(cmd.Context())
			if err != nil {
				return err
			}
			s, err := c.slot(snap, first(given))
			if err != nil {
				return err
			}
			return c.attachTo(cmd.Context(), app, s.Ref)
		},
	}
}

func (c *commands) attachTo(ctx context.Context, app *App, ref fleet.Ref) error {
	if !c.Terminal {
		return usagef("attaching needs a terminal on standard input and output")
	}
	snap, err := app.Fleet.Refresh(ctx)
	if err != nil {
		return err
	}
	s, _ := findSlot(snap, ref)
	if s.Pane == "" {
		return fmt.Errorf("%s has no pane (%s); cellmux open %s starts it again", ref, s.Status, ref)
	}
	attachment, err := app.Panes.Attach(ctx, s.Pane)
	if err != nil {
		return err
	}
	attachment.SetStdin(c.Stdin)
	attachment.SetStdout(c.Stdout)
	attachment.SetStderr(c.Stderr)
	return attachment.Run()
}

// first is the only argument, or "".
func first(given []string) string {
	if len(given) == 0 {
		return ""
	}
	return given[0]
}
