package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"cellmux/cell/cfg"
)

// effective is `cellmux config`: each value of a cell's configuration and where it
// came from.
func (c *commands) effective() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config [DIR]",
		Short: "Show what holds for a project's cells and where it came from",
		Long: `Show each value of the devcell.toml files that has effect in a project, and the
file and line, variable or default that it came from. What of the project's file
waits for approval has none and is listed apart. Nothing is executed: references
and commands are shown as they are written.`,
		Example: `  cellmux config
  cellmux config ~/src/api --json
  cellmux config check`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			dir := c.Dir
			if len(given) == 1 {
				var err error
				if dir, err = c.projectDir(given); err != nil {
					return err
				}
			}
			cell, err := c.LoadCell(dir)
			if err != nil {
				return err
			}
			c.remarks(cell)
			values := cell.Values()
			if asJSON {
				return c.printJSON(valuesJSON(values))
			}
			rows := make([][]string, 0, len(values))
			for _, v := range values {
				rows = append(rows, []string{v.Key, v.Text, v.Origin.String()})
			}
			return c.table(rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

type valueJSON struct {
	Key    string `json:"key"`
	Value  string `json:"value"` // as TOML
	Source string `json:"source"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
}

func valuesJSON(values []cfg.Value) []valueJSON {
	out := make([]valueJSON, 0, len(values))
	for _, v := range values {
		source := v.Origin.Layer
		if v.Origin.Name != "" {
			source = fmt.Sprintf("%s %s", v.Origin.Layer, v.Origin.Name)
		}
		out = append(out, valueJSON{Key: v.Key, Value: v.Text, Source: source, File: v.Origin.File, Line: v.Origin.Line})
	}
	return out
}

// remarks says, apart from the data, what of the files has no effect.
func (c *commands) remarks(cell *cfg.Effective) {
	for _, notice := range cell.Notices {
		c.say("%s", oneLine(notice.String()))
	}
	if cell.Pending == nil || len(cell.Pending.Waiting) == 0 {
		return
	}
	c.say("%s waits for approval (cellmux trust); until then it has no effect:", oneLine(cell.Pending.Path))
	for _, line := range cell.Pending.Lines() {
		c.say("  %s", oneLine(line))
	}
}
