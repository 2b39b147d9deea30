package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cellmux/shellctx/convo"
)

// review asks for a review of uncommitted work.
func (c *commands) review() *cobra.Command {
	var wait time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "review CELL[:SLOT]|DIR",
		Short: "Have uncommitted work reviewed, read-only",
		Long: `Open a pane with the slot's agent in its read-only mode, in a slot of its own,
show it the uncommitted changes and ask for a review. The new slot stays
read-only at every later start. It is the word on standard output; the state of
the message is told as cellmux send tells it.`,
		Example: `  cellmux review api:0
  cellmux log "$(cellmux review api:0 --wait 10m)"`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			ctx := cmd.Context()
			app, snap, err := c.snapshot(ctx)
			if err != nil {
				return err
			}
			s, err := c.slot(snap, given[0])
			if err != nil {
				return err
			}
			ref, entry, err := app.Conversation.Review(ctx, s.Ref)
			if err != nil {
				return err
			}
			entry, err = settled(ctx, app, ref, entry, wait)
			if asJSON {
				if printErr := c.printOpened(cmd, app, ref); printErr != nil {
					return printErr
				}
			} else if _, printErr := fmt.Fprintln(c.Stdout, ref); printErr != nil {
				return printErr
			}
			c.say("the request is %s", entry.Delivery)
			if err == nil && entry.Delivery == convo.Failed {
				err = exit{code: ExitFailed}
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait up to this long until the request is handed over, such as 30s or 5m")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the slot as JSON")
	return cmd
}
