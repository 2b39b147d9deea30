package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
)

// message says the user's word about a message whose fate is open.
func (c *commands) message() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "message again|arrived|drop NUMBER",
		Short: "Say what is to become of an unconfirmed or queued message",
		Long: `A message is unconfirmed when nothing proves that the agent took it: cellmux ended
while it was typed, or the agent said nothing of it. It is never sent a second
time unless you say so here.

  again    send it once more, with the context that rode with it
           (also one that failed)
  arrived  the agent has it
  drop     it is not to be sent (also one that is still queued)

NUMBER is the seq of cellmux log --json and cellmux send --json.`,
		Example: `  cellmux log api:0 --json | jq 'select(.delivery == "unconfirmed") | .seq'
  cellmux message again 412`,
		Args:      args(cobra.ExactArgs(2)),
		ValidArgs: []string{string(fleet.Again), string(fleet.Arrived), string(fleet.Drop)},
		RunE: func(cmd *cobra.Command, given []string) error {
			word := fleet.Word(given[0])
			switch word {
			case fleet.Again, fleet.Arrived, fleet.Drop:
			default:
				return usagef("the word is again, arrived or drop, not %q", given[0])
			}
			seq, err := strconv.ParseInt(given[1], 10, 64)
			if err != nil || seq < 1 {
				return usagef("%q is no number of a message; cellmux log --json shows them as seq", given[1])
			}
			app, err := c.app(cmd.Context())
			if err != nil {
				return err
			}
			entry, err := app.Conversation.Decide(cmd.Context(), seq, word)
			if err != nil {
				return err
			}
			return c.printSent(entry, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// export writes conversations as JSON lines.
func (c *commands) export() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "export [CELL:SLOT|DIR]...",
		Short: "Write conversations as JSON lines",
		Long: `Write the conversations of the named slots, or all of them, as JSON lines: a
header, then one message a line, in order. Private commands (!!) are in no
conversation, and so in no export.`,
		Example: `  cellmux export > conversations.jsonl
  cellmux export api:0 -o api.jsonl`,
		Args: args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, given []string) (err error) {
			app, snap, err := c.snapshot(cmd.Context())
			if err != nil {
				return err
			}
			var refs []fleet.Ref
			for _, name := range given {
				s, err := c.slot(snap, name)
				if err != nil {
					return err
				}
				refs = append(refs, s.Ref)
			}
			out := c.Stdout
			if file != "" && file != "-" {
				// Conversations hold what commands printed: they are for their owner.
				created, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
				if err != nil {
					return fmt.Errorf("write the export: %w", err)
				}
				defer func() {
					if closeErr := created.Close(); err == nil && closeErr != nil {
						err = fmt.Errorf("write the export: %w", closeErr)
					}
				}()
				out = created
			}
			return app.Conversation.Export(cmd.Context(), out, refs...)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this file (0600) in place of standard output")
	return cmd
}

// importMessages reads what export wrote.
func (c *commands) importMessages() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Read conversations that export wrote",
		Long: `Store the messages of an export. Those that are there already stay as they are,
so that importing twice changes nothing. Nothing that is imported is delivered.`,
		Example: `  cellmux import conversations.jsonl
  ssh old cellmux export | cellmux import -`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			var in io.Reader = c.Stdin
			if given[0] != "-" {
				file, err := os.Open(given[0])
				if err != nil {
					return fmt.Errorf("read the export: %w", err)
				}
				defer file.Close()
				in = file
			}
			app, err := c.app(cmd.Context())
			if err != nil {
				return err
			}
			done, err := app.Conversation.Import(cmd.Context(), in)
			if printErr := c.printImported(done, asJSON); printErr != nil {
				return printErr
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func (c *commands) printImported(done convo.Imported, asJSON bool) error {
	if asJSON {
		return c.printJSON(struct {
			Messages int `json:"messages"`
			Known    int `json:"known"`
		}{done.Messages, done.Known})
	}
	_, err := fmt.Fprintf(c.Stdout, "%d %s stored, %d were there already\n", done.Messages, plural(done.Messages, "message", "messages"), done.Known)
	return err
}
