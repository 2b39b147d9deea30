package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"cellmux/engine/fleet"
)

// cellTemplate is what init writes: every line a comment, so that the file
// changes nothing until somebody edits it.
//
//go:embed devcell.toml
var cellTemplate string

// init writes a commented devcell.toml.
func (c *commands) init() *cobra.Command {
	var global bool
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a commented devcell.toml",
		Long: `Write a devcell.toml in which every setting is explained and commented out, so
that it changes nothing until you edit it. A file that is there is never
overwritten. None is needed to use cellmux.`,
		Example: `  cellmux init
  cellmux init --global            # for every project of yours`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			path := c.Paths.GlobalCell
			if global {
				if len(given) > 0 {
					return usagef("--global takes no directory")
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					return fmt.Errorf("make the directory of %s: %w", path, err)
				}
			} else {
				dir, err := c.projectDir(given)
				if err != nil {
					return err
				}
				path = filepath.Join(dir, "devcell.toml")
			}
			file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if errors.Is(err, os.ErrExist) {
				return exit{code: ExitRefused, err: fmt.Errorf("%s exists and is left as it is", path)}
			}
			if err != nil {
				return fmt.Errorf("write %s: %w", path, err)
			}
			_, err = file.WriteString(cellTemplate)
			if err := errors.Join(err, file.Close()); err != nil {
				return fmt.Errorf("write %s: %w", path, err)
			}
			c.say("Edit it, then approve it with cellmux trust.")
			_, err = fmt.Fprintln(c.Stdout, path)
			return err
		},
	}
	cmd.Flags().BoolVar(&global, "global", false, "the global file in place of the project's")
	return cmd
}

// trust approves a project's devcell.toml.
func (c *commands) trust() *cobra.Command {
	var yes, revoke, show bool
	cmd := &cobra.Command{
		Use:   "trust [CELL|DIR]",
		Short: "Show what a project's devcell.toml would do, and approve it",
		Long: `Show what a project's devcell.toml would do. Its commands, secrets, files outside
the project, volumes, ports and weaker isolation have no effect until you approve
the file, and again after each change. On a terminal it asks; elsewhere --yes
approves what was shown, and without it the exit code is 4 when something waits.
A directory need not be a cell yet.`,
		Example: `  cellmux trust
  cellmux trust --show
  cellmux trust api --yes
  cellmux trust api --revoke`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			ctx := cmd.Context()
			app, snap, err := c.snapshot(ctx)
			if err != nil {
				return err
			}
			ref, err := c.target(snap, first(given))
			if dir, isDir := c.directory(first(given)); isDir && errors.Is(err, fleet.ErrNotFound) {
				// It may be looked at and approved before it is a cell.
				ref.Cell, err = c.projectDir([]string{dir})
			}
			if err != nil {
				return err
			}
			if revoke {
				if err := app.Fleet.Revoke(ctx, ref.Cell); err != nil {
					return err
				}
				c.say("The project file of %s is no longer approved.", ref.Cell)
				return nil
			}
			approval, err := app.Fleet.Approval(ctx, ref.Cell)
			if err != nil {
				return err
			}
			if len(approval.Acts) == 0 {
				c.say("Nothing of %s waits for approval.", ref.Cell)
				return nil
			}
			fmt.Fprintf(c.Stdout, "%s would:\n", oneLine(approval.File))
			for _, act := range approval.Acts {
				fmt.Fprintf(c.Stdout, "  %s\n", oneLine(act))
			}
			switch {
			case show:
				return nil
			case yes:
			case !c.Terminal:
				return exit{code: ExitRefused, err: fmt.Errorf("%w: cellmux trust %s --yes approves what is shown above", fleet.ErrApproval, ref.Cell)}
			default:
				agreed, err := c.ask(ctx, "Approve this file?")
				if err != nil {
					return err
				}
				if !agreed {
					return exit{code: ExitRefused, err: errors.New("not approved")}
				}
			}
			if err := app.Fleet.Trust(ctx, ref.Cell, approval.Hash); err != nil {
				return err
			}
			c.say("Approved.")
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "approve without asking")
	cmd.Flags().BoolVar(&revoke, "revoke", false, "take the approval back")
	cmd.Flags().BoolVar(&show, "show", false, "show what waits, and ask nothing")
	cmd.MarkFlagsMutuallyExclusive("yes", "revoke", "show")
	return cmd
}

// ask puts a question whose default is No; only a terminal is asked.
func (c *commands) ask(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(c.Stderr, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // ends with the answer, or with the process: a terminal read cannot be cancelled
		var word string
		_, _ = fmt.Fscanln(c.Stdin, &word)
		answer <- word
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case word := <-answer:
		return word == "y" || word == "Y" || word == "yes", nil
	}
}

// env shows the environment of a slot.
func (c *commands) env() *cobra.Command {
	var asJSON, why bool
	cmd := &cobra.Command{
		Use:   "env [CELL[:SLOT]|DIR]",
		Short: "Show the environment that a slot's program gets",
		Long: `Show the environment that a slot's program gets, in its order, with the values of
secrets masked. Nothing is executed: commands in values are shown, not run. With
--why: each variable, who let it in, and which of the host's stay out and why.`,
		Example: `  cellmux env api:0
  cellmux env api:0 --why`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			app, snap, err := c.snapshot(cmd.Context())
			if err != nil {
				return err
			}
			ref, err := c.shellTarget(snap, first(given))
			if err != nil {
				return err
			}
			if why {
				variables, err := app.Fleet.Variables(cmd.Context(), ref)
				if err != nil {
					return err
				}
				return c.printVariables(variables, asJSON)
			}
			pairs, err := app.Fleet.Environment(cmd.Context(), ref)
			if err != nil {
				return err
			}
			if asJSON {
				return c.printJSON(pairs)
			}
			for _, pair := range pairs {
				fmt.Fprintln(c.Stdout, oneLine(pair))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write a JSON array of KEY=VALUE, or with --why of objects")
	cmd.Flags().BoolVar(&why, "why", false, "who let each variable in, and what stays out")
	return cmd
}

// printVariables writes what went in, then what stayed out.
func (c *commands) printVariables(variables []fleet.Variable, asJSON bool) error {
	if asJSON {
		type variableJSON struct {
			Name  string `json:"name"`
			Value string `json:"value,omitempty"`
			Kept  bool   `json:"kept"`
			Why   string `json:"why"`
		}
		out := make([]variableJSON, 0, len(variables))
		for _, v := range variables {
			out = append(out, variableJSON(v))
		}
		return c.printJSON(out)
	}
	var in, out [][]string
	for _, v := range variables {
		if v.Kept {
			in = append(in, []string{"in", v.Name, v.Why})
		} else {
			out = append(out, []string{"out", v.Name, v.Why})
		}
	}
	return c.table(append(in, out...))
}

// prompt shows the prompt layers of a slot.
func (c *commands) prompt() *cobra.Command {
	var base, asJSON bool
	cmd := &cobra.Command{
		Use:   "prompt [CELL[:SLOT]|DIR]",
		Short: "Show the prompt that a slot's agent gets",
		Long: `Show what is appended to the agent's prompt: the facts about the cell and the
append prompt of devcell.toml. With --base: what replaces the agent's built-in
prompt, empty when nothing does.`,
		Example: `  cellmux prompt api:0
  cellmux prompt api:0 --base`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			app, snap, err := c.snapshot(cmd.Context())
			if err != nil {
				return err
			}
			ref, err := c.shellTarget(snap, first(given))
			if err != nil {
				return err
			}
			prompts, err := app.Fleet.Prompts(cmd.Context(), ref)
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return c.printJSON(map[string]string{"base": prompts.Base, "overlay": prompts.Overlay})
			case base:
				_, err = fmt.Fprint(c.Stdout, clean(prompts.Base))
			default:
				_, err = fmt.Fprint(c.Stdout, clean(prompts.Overlay))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&base, "base", false, "the base prompt in place of the appended one")
	cmd.Flags().BoolVar(&asJSON, "json", false, "both, as JSON")
	return cmd
}

// engines probes the engines.
func (c *commands) engines() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "engines",
		Short:   "Say which engines can carry a cell here",
		Example: `  cellmux engines --json`,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			app, err := c.app(cmd.Context())
			if err != nil {
				return err
			}
			engines := app.Fleet.Probe(cmd.Context())
			if asJSON {
				out := []map[string]any{}
				for _, e := range engines {
					out = append(out, map[string]any{"engine": e.Kind, "usable": e.Usable, "detail": e.Detail})
				}
				return c.printJSON(out)
			}
			rows := [][]string{{"ENGINE", "USABLE", "DETAIL"}}
			for _, e := range engines {
				word := "no"
				if e.Usable {
					word = "yes"
				}
				rows = append(rows, []string{e.Kind, word, e.Detail})
			}
			return c.table(rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}
