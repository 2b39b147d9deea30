package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cellmux/engine/fleet"
)

// stop ends the program of a slot, or of all slots of a cell.
func (c *commands) stop() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "stop CELL[:SLOT]|DIR",
		Short: "Stop a slot's program, or a whole cell's",
		Long: `Stop a slot's program, or those of all slots of a cell. The conversation stays,
and cellmux open CELL:SLOT resumes it. A slot whose agent works, waits for an
answer or cannot be judged is stopped only with --force.`,
		Example: `  cellmux stop api:0
  cellmux stop api --force`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			app, snap, err := c.snapshot(cmd.Context())
			if err != nil {
				return err
			}
			ref, err := c.target(snap, given[0])
			if err != nil {
				return err
			}
			slots := slotsOf(snap, ref)
			if err := refuseLive(slots, "stop", force); err != nil {
				return err
			}
			var failed []error
			for _, s := range slots {
				if s.Pane == "" && s.Status == fleet.Stopped {
					continue
				}
				if err := app.Fleet.Stop(cmd.Context(), s.Ref); err != nil {
					failed = append(failed, err)
					continue
				}
				c.say("Stopped %s.", s.Ref)
			}
			return errors.Join(failed...)
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also when the agent works or waits")
	return cmd
}

// rm moves a slot or a cell to the trash.
func (c *commands) rm() *cobra.Command {
	var force, empty bool
	var older time.Duration
	cmd := &cobra.Command{
		Use:   "rm CELL[:SLOT]... | rm --empty-trash",
		Short: "Move slots or cells to the trash",
		Long: `Move slots or cells to the trash; cellmux restore takes them out again, with
their conversations. The project directory is not touched. What runs is stopped;
a slot whose agent works or waits goes only with --force.

With --empty-trash what lies in the trash is removed for good: containers,
conversations, shell logs, slots and cells. That cannot be undone. Project directories and the
agents' own files are not touched.`,
		Example: `  cellmux rm api:1
  cellmux rm old-project
  cellmux rm --empty-trash --older 720h`,
		Args: args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, given []string) error {
			switch {
			case empty && len(given) > 0:
				return usagef("--empty-trash takes no names; cellmux restore --list shows what it would remove")
			case empty:
				return c.emptyTrash(cmd.Context(), older)
			case older != 0:
				return usagef("--older belongs to --empty-trash")
			case len(given) == 0:
				return usagef("say what to move to the trash")
			}
			app, snap, err := c.snapshot(cmd.Context())
			if err != nil {
				return err
			}
			var refs []fleet.Ref
			var slots []fleet.Slot
			for _, text := range given {
				ref, err := c.target(snap, text)
				if err != nil {
					return err
				}
				refs = append(refs, ref)
				slots = append(slots, slotsOf(snap, ref)...)
			}
			if err := refuseLive(slots, "rm", force); err != nil {
				return err
			}
			for _, ref := range refs {
				if err := app.Fleet.Delete(cmd.Context(), ref); err != nil {
					return err
				}
				c.say("%s is in the trash; cellmux restore %s takes it out.", ref, ref)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also when the agent works or waits")
	cmd.Flags().BoolVar(&empty, "empty-trash", false, "remove for good what is in the trash")
	cmd.Flags().DurationVar(&older, "older", 0, "with --empty-trash: only what has been there for longer, such as 720h")
	return cmd
}

func (c *commands) emptyTrash(ctx context.Context, older time.Duration) error {
	if older < 0 {
		return usagef("--older takes an age, such as 720h")
	}
	app, err := c.app(ctx)
	if err != nil {
		return err
	}
	n, err := app.Fleet.EmptyTrash(ctx, time.Now().Add(-older))
	if err != nil {
		return err
	}
	c.say("%d %s removed for good.", n, plural(n, "slot", "slots"))
	return nil
}

// restore takes something out of the trash.
func (c *commands) restore() *cobra.Command {
	var list, asJSON bool
	cmd := &cobra.Command{
		Use:   "restore CELL[:SLOT]",
		Short: "Take a slot or a cell out of the trash",
		Example: `  cellmux restore --list
  cellmux restore api`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			app, err := c.app(cmd.Context())
			if err != nil {
				return err
			}
			if list || asJSON && len(given) == 0 {
				return c.listTrash(cmd, app, asJSON)
			}
			if len(given) == 0 {
				return usagef("say what to restore; cellmux restore --list shows the trash")
			}
			ref, err := fleet.ParseRef(given[0])
			if err != nil {
				return exit{code: ExitUsage, err: err}
			}
			if err := app.Fleet.Restore(cmd.Context(), ref); err != nil {
				return err
			}
			c.say("Restored %s.", ref)
			return nil
		},
	}
	cmd.Flags().BoolVarP(&list, "list", "l", false, "list the trash")
	cmd.Flags().BoolVar(&asJSON, "json", false, "list the trash as JSON")
	return cmd
}

func (c *commands) listTrash(cmd *cobra.Command, app *App, asJSON bool) error {
	trash, err := app.Fleet.Trash(cmd.Context())
	if err != nil {
		return err
	}
	if asJSON {
		out := []map[string]any{}
		for _, t := range trash {
			out = append(out, map[string]any{"ref": t.Ref.String(), "title": t.Title, "deleted": t.Deleted})
		}
		return c.printJSON(out)
	}
	if len(trash) == 0 {
		c.say("The trash is empty.")
		return nil
	}
	rows := [][]string{{"REF", "DELETED", "TITLE"}}
	for _, t := range trash {
		rows = append(rows, []string{t.Ref.String(), t.Deleted.Local().Format("2006-01-02 15:04"), t.Title})
	}
	return c.table(rows)
}

// slotsOf are the slots that a reference covers.
func slotsOf(snap fleet.Snapshot, ref fleet.Ref) []fleet.Slot {
	if ref.Slot == fleet.WholeCell {
		cell, _ := find(snap, ref.Cell)
		return cell.Slots
	}
	if s, found := findSlot(snap, ref); found {
		return []fleet.Slot{s}
	}
	return nil
}

// refuseLive names what would be lost.
func refuseLive(slots []fleet.Slot, verb string, force bool) error {
	if force {
		return nil
	}
	var busy []string
	for _, s := range slots {
		if wouldLose(s) {
			busy = append(busy, strings.TrimSpace(fmt.Sprintf("%s (%s, %s) %s", s.Ref, s.Agent, s.Status, oneLine(cmp.Or(s.Question, s.Detail)))))
		}
	}
	if len(busy) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s; cellmux %s --force ends it", fleet.ErrLive, strings.Join(busy, "; "), verb)
}

// wouldLose tells whether ending a slot may lose work. An idle shell's prompt
// or an idle agent's box may not.
func wouldLose(s fleet.Slot) bool {
	return s.Pane != "" && (s.Status == fleet.Running || s.Status == fleet.Waiting || s.Status == fleet.Unknown)
}
