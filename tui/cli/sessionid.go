package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cellmux/cell"
	"cellmux/cell/cfg"
	"cellmux/engine/fleet"
)

// sessionID prints a slot's session ID: a pure function of its name, so that
// nothing is opened for it.
func (c *commands) sessionID() *cobra.Command {
	return &cobra.Command{
		Use:   "session-id CELL:SLOT | NAME",
		Short: "Print the session ID of a slot",
		Long: `Print the session ID of a slot: a UUID that follows from the names alone, so the
same slot always resumes the same conversation. The slot need not exist. NAME is
a slot as its guest sees it, in CELL_NAME: "<cell>-<slot>".`,
		Example: `  claude --resume "$(cellmux session-id api:0)"`,
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			app := given[0]
			if !strings.Contains(app, ":") {
				name, slot := app, -1
				if dash := strings.LastIndexByte(app, '-'); dash > 0 {
					if n, err := strconv.Atoi(app[dash+1:]); err == nil {
						name, slot = app[:dash], n
					}
				}
				if slot < 0 {
					return usagef("%q names no slot: write CELL:SLOT, such as %s:0", app, name)
				}
			} else {
				ref, err := fleet.ParseRef(app)
				if err != nil {
					return exit{code: ExitUsage, err: err}
				}
				app = cfg.Config{Cell: ref.Cell, Slot: ref.Slot}.AppName()
			}
			_, err := fmt.Fprintln(c.Stdout, cell.SessionID(app))
			return err
		},
	}
}
