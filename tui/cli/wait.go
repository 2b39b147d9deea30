package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cellmux/engine/fleet"
)

// wait blocks until a slot has a status.
func (c *commands) wait() *cobra.Command {
	var words []string
	var timeout time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "wait CELL[:SLOT]|DIR",
		Short: "Wait until a slot is idle, waits for you, or has ended",
		Long: `Wait until a slot's status is one of --for, and print it. By default that is
everything but running and unknown: the agent finished, asks something, failed,
or its program has ended.`,
		Example: `  cellmux send api:0 'Fix it' && cellmux wait api:0 --timeout 30m
  cellmux wait api:0 --for waiting && notify-send 'api wants an answer'`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			wanted := map[fleet.Status]bool{}
			for _, word := range words {
				for _, w := range strings.Split(word, ",") {
					status, err := fleet.ParseStatus(w)
					if err != nil {
						return exit{code: ExitUsage, err: err}
					}
					wanted[status] = true
				}
			}
			ctx := cmd.Context()
			if timeout > 0 {
				limited, cancel := context.WithTimeoutCause(ctx, timeout, context.DeadlineExceeded)
				defer cancel()
				ctx = limited
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			app, snap, err := c.snapshot(ctx)
			if err != nil {
				return err
			}
			s, err := c.slot(snap, given[0])
			if err != nil {
				return err
			}
			defer app.run(ctx)()
			for snap := range app.Fleet.Watch(ctx) {
				current, found := findSlot(snap, s.Ref)
				if !found {
					return fmt.Errorf("slot %s: %w any more", s.Ref, fleet.ErrNotFound)
				}
				s = current
				if wanted[s.Status] {
					if asJSON {
						return c.printJSON(toSlotJSON(s))
					}
					_, err := fmt.Fprintln(c.Stdout, s.Status)
					return err
				}
			}
			return fmt.Errorf("%s is %s: %w", s.Ref, s.Status, ctx.Err())
		},
	}
	cmd.Flags().StringSliceVar(&words, "for", []string{"idle", "waiting", "failed", "dead", "stopped"}, "statuses to wait for")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this long with exit code 124, such as 30m")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the slot as JSON")
	return cmd
}
