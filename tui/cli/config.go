package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

// config says what holds for a cell and where settings are.
func (c *commands) config() *cobra.Command {
	cmd := c.effective()
	var asJSON bool
	paths := &cobra.Command{
		Use:   "path",
		Short: "Print the paths of settings, state and sockets",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			rows := [][]string{
				{"settings", c.Paths.Settings}, {"global_cell", c.Paths.GlobalCell}, {"workspaces", c.Paths.Workspaces},
				{"database", c.Paths.Database}, {"log", c.Paths.Log}, {"runtime", c.Paths.Runtime}, {"tmux_socket", c.Paths.TmuxSocket},
			}
			if asJSON {
				out := map[string]string{}
				for _, row := range rows {
					out[row[0]] = row[1]
				}
				return c.printJSON(out)
			}
			return c.table(rows)
		},
	}
	paths.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	check := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Check config.toml and the devcell.toml files; nothing is executed",
		Args:  args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			dir := c.Dir
			if len(given) == 1 {
				var err error
				if dir, err = c.projectDir(given); err != nil {
					return err
				}
			}
			cell, err := c.LoadCell(dir)
			if err := errors.Join(c.CheckSettings(), err); err != nil {
				return err
			}
			c.remarks(cell)
			c.say("The settings are good.")
			return nil
		},
	}
	show := &cobra.Command{
		Use:   "show",
		Short: "Print config.toml as it is",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			content, err := os.ReadFile(c.Paths.Settings)
			if errors.Is(err, fs.ErrNotExist) {
				c.say("There is no %s; every setting has its default.", c.Paths.Settings)
				return nil
			}
			if err != nil {
				return fmt.Errorf("read the settings: %w", err)
			}
			_, err = c.Stdout.Write(content)
			return err
		},
	}
	cmd.AddCommand(paths, check, show)
	return cmd
}
