package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"cellmux/cell"
	"cellmux/cell/cfg"
	"cellmux/engine/fleet"
)

// sessionID prints a slot's session ID: a pure function of its name, so that
// nothing is opened for it.
func (c *commands) sessionID() *cobra.Command {
	return &cobra.Command{
		Use:   "session-id CELL:SLOT",
		Short: "Print the session ID of a slot",
		Long: `Print the session ID of a slot: a UUID that follows from the names alone, so the
same slot always resumes the same conversation. The slot need not exist.`,
		Example: `  claude --resume "$(cellmux session-id api:0)"`,
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			ref, err := fleet.ParseRef(given[0])
			if err != nil {
				return exit{code: ExitUsage, err: err}
			}
			if ref.Slot == fleet.WholeCell {
				return usagef("%q names no slot: write CELL:SLOT, such as %s:0", given[0], ref.Cell)
			}
			app := cfg.Config{Cell: ref.Cell, Slot: ref.Slot}.AppName()
			_, err = fmt.Fprintln(c.Stdout, cell.SessionID(app))
			return err
		},
	}
}
