package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cellmux/engine/fleet"
)

// commit commits the work of a cell on the host.
func (c *commands) commit() *cobra.Command {
	var message string
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "commit [CELL|DIR]",
		Short: "Show a guest's work and commit it on the host",
		Long: `Show the uncommitted work of a cell whose own git can only read (a linked working
tree in a container), and commit it on the host, in your name. The repository may
be hostile by now: no hook, filter, monitor, signing program or editor runs.
Exactly what was shown is committed; work that has changed meanwhile is refused.
On a terminal it asks; elsewhere it needs --message and --yes, and without them
the exit code is 4. Where git works inside, use git there.`,
		Example: `  cellmux commit api
  cellmux commit api --message 'Handle expired sessions' --yes`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			ctx := cmd.Context()
			app, ref, err := c.namedCell(ctx, given)
			if err != nil {
				return err
			}
			shown, err := app.Fleet.Proposal(ctx, ref.Cell)
			if err != nil {
				return err
			}
			if !asJSON {
				if _, err := fmt.Fprint(c.Stdout, clean(shown.Diff)); err != nil {
					return err
				}
			}
			for _, note := range shown.Notes {
				c.say("%s", oneLine(note))
			}
			c.say("%d files of %s to %s: +%d -%d", shown.Files, ref.Cell, oneLine(shown.Branch), shown.Added, shown.Deleted)
			if message, err = c.agreed(ctx, message, yes); err != nil {
				return err
			}
			commit, err := app.Fleet.Commit(ctx, ref.Cell, shown, message)
			if err != nil {
				return err
			}
			if asJSON {
				return c.printJSON(map[string]any{
					"cell": ref.Cell, "commit": commit, "branch": shown.Branch, "tree": shown.Tree,
					"files": shown.Files, "added": shown.Added, "deleted": shown.Deleted,
				})
			}
			c.say("Committed %s.", commit)
			return nil
		},
	}
	cmd.Flags().StringVarP(&message, "message", "m", "", "the commit's message")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "commit without asking")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the commit as JSON in place of the diff")
	return cmd
}

// agreed returns the message, once the user has agreed to commit.
func (c *commands) agreed(ctx context.Context, message string, yes bool) (string, error) {
	refused := exit{code: ExitRefused, err: errors.New("not committed")}
	switch {
	case yes && message == "":
		return "", usagef("--yes needs --message")
	case yes:
		return message, nil
	case !c.Terminal:
		return "", exit{code: ExitRefused, err: fmt.Errorf("%w: --message and --yes commit what is shown above", fleet.ErrApproval)}
	case message != "":
		agreed, err := c.ask(ctx, "Commit this?")
		if err == nil && !agreed {
			err = refused
		}
		return message, err
	}
	fmt.Fprint(c.Stderr, "Message (empty: do not commit): ")
	line := make(chan string, 1)
	go func() { // ends with the answer, or with the process: a terminal read cannot be cancelled
		text, _ := bufio.NewReader(c.Stdin).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case text := <-line:
		if text == "" {
			return "", refused
		}
		return text, nil
	}
}
