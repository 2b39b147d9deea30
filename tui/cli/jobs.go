package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// jobs lists and ends what `!` commands left running.
func (c *commands) jobs() *cobra.Command {
	var asJSON bool
	list := func(cmd *cobra.Command, _ []string) error {
		app, err := c.app(cmd.Context())
		if err != nil {
			return err
		}
		jobs, err := app.Jobs.Jobs(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			out := []map[string]any{}
			for _, j := range jobs {
				out = append(out, map[string]any{"id": j.ID, "ref": j.Ref.String(), "command": j.Command, "started": j.Started})
			}
			return c.printJSON(out)
		}
		if len(jobs) == 0 {
			c.say("No background process is running.")
			return nil
		}
		rows := [][]string{{"ID", "REF", "AGE", "COMMAND"}}
		for _, j := range jobs {
			rows = append(rows, []string{j.ID, j.Ref.String(), age(j.Started, time.Now()), j.Command})
		}
		return c.table(rows)
	}
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "List background processes of ! commands",
		Example: `  cellmux jobs
  cellmux jobs kill ID`,
		Args: args(cobra.NoArgs),
		RunE: list,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.AddCommand(&cobra.Command{
		Use:   "kill ID...",
		Short: "End background processes",
		Args:  args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			app, err := c.app(cmd.Context())
			if err != nil {
				return err
			}
			for _, id := range given {
				if err := app.Jobs.KillJob(cmd.Context(), id); err != nil {
					return fmt.Errorf("end job %s: %w", id, err)
				}
				c.say("Ended %s.", id)
			}
			return nil
		},
	})
	return cmd
}
