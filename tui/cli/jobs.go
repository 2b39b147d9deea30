package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cellmux/engine/fleet"
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
				out = append(out, map[string]any{"id": j.ID, "ref": j.Ref.String(), "command": j.Command, "started": j.Started,
					"running": j.Running, "background": j.Background, "elsewhere": j.Elsewhere})
			}
			return c.printJSON(out)
		}
		if len(jobs) == 0 {
			c.say("No command and no background process is running.")
			return nil
		}
		rows := [][]string{{"ID", "REF", "AGE", "STATE", "COMMAND"}}
		for _, j := range jobs {
			rows = append(rows, []string{j.ID, j.Ref.String(), age(j.Started, time.Now()), jobState(j), oneLine(j.Command)})
		}
		return c.table(rows)
	}
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "List the ! commands that run, and what they left running",
		Long: `List the ! commands that run, and those that left background processes
running, of every cellmux of this user. Those of another one are ended by their
processes; it records what became of them.`,
		Example: `  cellmux jobs
  cellmux jobs kill ID`,
		Args: args(cobra.NoArgs),
		RunE: list,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.AddCommand(&cobra.Command{
		Use:   "kill ID...",
		Short: "End commands, or what they left running",
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

// jobState says what runs of a job.
func jobState(j fleet.Job) string {
	if j.Running {
		return "running"
	}
	return fmt.Sprintf("%d background", j.Background)
}
