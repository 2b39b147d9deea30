package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cellmux/engine/fleet"
)

// ls lists cells and their slots.
func (c *commands) ls() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "ls [CELL|DIR]",
		Short: "List cells and their panes",
		Long: `List cells and their panes, one line a slot. With --json: an object with "cells"
(an array) and "server" ("" when tmux answers, else a sentence). A slot's status
is unknown, waiting, failed, running, idle, dead or stopped.`,
		Example: `  cellmux ls
  cellmux ls --json | jq -r '.cells[].slots[] | select(.status=="waiting") | .ref'`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			_, snap, err := c.snapshot(cmd.Context())
			if err != nil {
				return err
			}
			only := ""
			if len(given) == 1 {
				ref, err := c.target(snap, given[0])
				if err != nil {
					return err
				}
				only = ref.Cell
			}
			var cells []fleet.Cell
			for _, cell := range snap.Cells {
				if cell.Offered || only != "" && cell.Name != only || cell.Archived && !all && only == "" {
					continue
				}
				cells = append(cells, cell)
			}
			if snap.Server != "" {
				c.say("%s", snap.Server)
			}
			if asJSON {
				out := struct {
					Cells  []cellJSON `json:"cells"`
					Server string     `json:"server"`
				}{Cells: []cellJSON{}, Server: snap.Server}
				for _, cell := range cells {
					out.Cells = append(out.Cells, toCellJSON(cell))
				}
				return c.printJSON(out)
			}
			if len(cells) == 0 {
				c.say("No cells yet. cellmux new makes one of the current directory.")
				return nil
			}
			rows := [][]string{{"REF", "AGENT", "STATUS", "AGE", "ENGINE", "DETAIL"}}
			for _, cell := range cells {
				detail := cmp.Or(cell.Problem, cell.Approval, cell.ProjectDir)
				if cell.Archived {
					detail = "archived  " + detail
				}
				rows = append(rows, []string{cell.Name, "", "", age(cell.Created, snap.Taken), cell.Engine, detail})
				for _, s := range cell.Slots {
					if s.Archived && !all {
						continue
					}
					rows = append(rows, []string{s.Ref.String(), s.Agent, s.Status.String(), age(s.Since, snap.Taken), "", slotDetail(s)})
				}
			}
			return c.table(rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "archived cells and slots too")
	return cmd
}

func slotDetail(s fleet.Slot) string {
	parts := []string{cmp.Or(s.Question, s.Detail)}
	if s.Queued > 0 {
		parts = append(parts, fmt.Sprintf("(%d queued)", s.Queued))
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// status counts, for a status bar.
func (c *commands) status() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [CELL[:SLOT]|DIR]",
		Short: "Say in one line what runs and what waits",
		Long: `Say in one line what runs and what waits, for a prompt or a status bar. With a
slot: its status alone. The line is empty when there is nothing.`,
		Example: `  cellmux status                   # 3 running, 2 waiting, 1 idle
  cellmux status api:0             # waiting
  set -g status-right '#(cellmux status)'   # in a tmux.conf`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			_, snap, err := c.snapshot(cmd.Context())
			if err != nil {
				return err
			}
			only := fleet.Ref{Slot: fleet.WholeCell}
			if len(given) == 1 {
				if only, err = c.target(snap, given[0]); err != nil {
					return err
				}
			}
			if only.Slot != fleet.WholeCell {
				s, _ := findSlot(snap, only)
				if asJSON {
					return c.printJSON(toSlotJSON(s))
				}
				_, err := fmt.Fprintln(c.Stdout, s.Status)
				return err
			}
			counts := map[string]int{}
			for _, cell := range snap.Cells {
				if cell.Archived || only.Cell != "" && cell.Name != only.Cell {
					continue
				}
				for _, s := range cell.Slots {
					if !s.Archived {
						counts[s.Status.String()]++
					}
				}
			}
			if asJSON {
				return c.printJSON(counts)
			}
			var words []string
			for _, s := range []fleet.Status{fleet.Running, fleet.Waiting, fleet.Failed, fleet.Idle, fleet.Dead, fleet.Stopped, fleet.Unknown} {
				if n := counts[s.String()]; n > 0 {
					words = append(words, fmt.Sprintf("%d %s", n, s))
				}
			}
			_, err = fmt.Fprintln(c.Stdout, strings.Join(words, ", "))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}
