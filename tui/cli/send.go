package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cellmux/engine/fleet"
	"cellmux/shellctx"
	"cellmux/shellctx/convo"
)

// send sends a message to a slot's agent.
func (c *commands) send() *cobra.Command {
	var wait time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "send CELL[:SLOT]|DIR [TEXT|-]",
		Short: "Send a message to a slot's agent",
		Long: `Store a message for a slot's agent and hand it over when the agent can take it,
with the shell context that no agent has seen yet in front. Without TEXT, or with
-, the message is read from standard input. The word on standard output is its
state: queued, typed, unconfirmed, submitted, answered or failed. A queued
message is handed over by whichever cellmux runs next, or by this command while
it waits (--wait).

A message is text, also where it begins with / or !: the agent reads it and runs
nothing. Commands of the agent's own, such as /compact, are typed into its pane.`,
		Example: `  cellmux send api:0 'Fix the failing test'
  git diff | cellmux send api:0 -
  cellmux send api:0 --wait 5m 'Go on'`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			ctx := cmd.Context()
			text := strings.Join(given[1:], " ")
			if text == "" || text == "-" {
				read, err := c.readAll()
				if err != nil {
					return err
				}
				text = read
			}
			if strings.TrimSpace(text) == "" {
				return usagef("the message is empty")
			}
			prompts, err := c.promptsGiven()
			if err != nil {
				return err
			}
			app, snap, err := c.snapshot(ctx)
			if err != nil {
				return err
			}
			s, err := c.slot(snap, given[0])
			if err != nil {
				return err
			}
			if prompts && s.Status.Live() {
				return usagef("%s: %w", s.Ref, errPromptsTooLate)
			}
			entry, err := app.Conversation.Send(ctx, s.Ref, text)
			if err != nil {
				return err
			}
			entry, err = settled(ctx, app, s.Ref, entry, wait)
			if printErr := c.printSent(entry, asJSON); printErr != nil {
				return printErr
			}
			if err == nil && entry.Delivery == convo.Failed {
				err = exit{code: ExitFailed}
			}
			return err
		},
	}
	c.promptFlags(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait up to this long until it is handed over, such as 30s or 5m")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// readAll reads the message from standard input; a terminal there would wait
// for someone who expects the command to be done.
func (c *commands) readAll() (string, error) {
	if c.Terminal {
		return "", usagef("no message: write it after the slot, or pipe it in")
	}
	read, err := io.ReadAll(io.LimitReader(c.Stdin, maxMessage+1))
	if err != nil {
		return "", fmt.Errorf("read the message from standard input: %w", err)
	}
	if len(read) > maxMessage {
		return "", usagef("the message is longer than %d bytes; write it to a file of the project and name that", maxMessage)
	}
	return strings.TrimRight(string(read), "\n"), nil
}

const maxMessage = 1 << 20 // bytes

func (c *commands) printSent(entry convo.Entry, asJSON bool) error {
	if asJSON {
		return c.printJSON(toEntryJSON(entry))
	}
	if entry.Reason != "" {
		c.say("%s", oneLine(entry.Reason))
	}
	_, err := fmt.Fprintln(c.Stdout, entry.Delivery)
	return err
}

// settled waits up to a time until a message has left the queue, trying again
// after each change of the list; 0 does not wait.
func settled(ctx context.Context, app *App, ref fleet.Ref, entry convo.Entry, wait time.Duration) (convo.Entry, error) {
	if wait <= 0 {
		return entry, nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	stop := app.run(ctx)
	defer stop()
	changes := app.Fleet.Watch(ctx)
	for {
		if done(entry.Delivery) {
			return entry, nil
		}
		select {
		case <-ctx.Done():
			return entry, ctx.Err()
		case _, open := <-changes:
			if !open {
				return entry, ctx.Err()
			}
		}
		if err := app.Conversation.Deliver(ctx, ref); err != nil {
			return entry, err
		}
		page, err := app.Conversation.Page(ctx, ref, 0, 50)
		if err != nil {
			return entry, err
		}
		for _, e := range page {
			if e.Seq == entry.Seq {
				entry = e
			}
		}
	}
}

func done(d convo.Delivery) bool {
	switch d {
	case convo.Submitted, convo.Answered, convo.Unconfirmed, convo.Failed:
		return true
	}
	return false
}

// log shows a conversation, or the shell log.
func (c *commands) log() *cobra.Command {
	var n int
	var asJSON, shell bool
	cmd := &cobra.Command{
		Use:   "log [CELL[:SLOT]|DIR]",
		Short: "Show a slot's conversation, or its shell log",
		Long: `Show the newest messages of a slot's conversation, oldest first. With --shell:
the ! commands, private ones too. With --json: one object a line.`,
		Example: `  cellmux log api:0 -n 20
  cellmux log api:0 --json > api.jsonl
  cellmux log api:0 --shell`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if n < 1 {
				return usagef("-n takes a number from 1")
			}
			app, snap, err := c.snapshot(cmd.Context())
			if err != nil {
				return err
			}
			if shell {
				ref, err := c.shellTarget(snap, first(given))
				if err != nil {
					return err
				}
				return c.printShellLog(cmd.Context(), app, ref, n, asJSON)
			}
			s, err := c.slot(snap, first(given))
			if err != nil {
				return err
			}
			page, err := app.Conversation.Page(cmd.Context(), s.Ref, 0, n)
			if err != nil {
				return err
			}
			for _, entry := range page {
				if asJSON {
					if err := c.printJSONLine(toEntryJSON(entry)); err != nil {
						return err
					}
					continue
				}
				state := became(entry)
				if used := convo.UsageText(entry.Message); used != "" {
					state = used
				}
				fmt.Fprintf(c.Stdout, "%s  %s  %s\n%s\n\n", entry.Stored.Local().Format("2006-01-02 15:04:05"), who(entry), state, clean(display(entry)))
			}
			return nil
		},
	}
	cmd.Flags().IntVarP(&n, "number", "n", 50, "how many, the newest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON lines")
	cmd.Flags().BoolVar(&shell, "shell", false, "the shell log in place of the conversation")
	return cmd
}

// became is what became of a message, and why where that is known.
func became(entry convo.Entry) string {
	if entry.Reason == "" {
		return string(entry.Delivery)
	}
	return string(entry.Delivery) + ": " + oneLine(entry.Reason)
}

func (c *commands) printShellLog(ctx context.Context, app *App, ref fleet.Ref, n int, asJSON bool) error {
	executions, err := app.Shell.Log(ctx, ref, n)
	if err != nil {
		return err
	}
	for _, e := range executions {
		if asJSON {
			if err := c.printJSONLine(toExecutionJSON(e)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(c.Stdout, "%s  %s  %s  exit %d  %d %s  %s\n%s", e.Started.Local().Format("2006-01-02 15:04:05"),
			oneLine(e.Record.Command), e.State, e.Record.ExitCode, e.Lines, plural(e.Lines, "line", "lines"), e.Mode, clean(e.Record.Output))
		if e.Record.Output != "" && !strings.HasSuffix(e.Record.Output, "\n") {
			fmt.Fprintln(c.Stdout)
		}
	}
	return nil
}

// search searches all conversations.
func (c *commands) search() *cobra.Command {
	var limit, exitCode, exitNot int
	var before int64
	var cell, agent string
	var best bool
	var since time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "search TEXT...",
		Short: "Search all conversations",
		Long: `Find messages, commands and their output in all cells, newest first. All words
must be there, in any case and without regard to accents. "Two words" in quotes
are a phrase, beg* is the beginning of a word. Filters may stand among the words,
as on the screen: cell:api agent:codex exit:!=0 since:3d; or be given as flags.`,
		Example: `  cellmux search jwt ttl
  cellmux search 'exit:!=0 since:today npm'
  cellmux search --cell api --exit-not 0 npm
  cellmux search --since 24h --json migration
  cellmux search --before 81234 jwt      # the next older ones`,
		Args: args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, given []string) error {
			q, err := convo.ParseQuery(strings.Join(given, " "), time.Now())
			if err != nil {
				return usagef("%v", err)
			}
			q.Limit, q.Ranked, q.Before = limit, q.Ranked || best, before
			if limit < 1 || before < 0 {
				return usagef("-n and --before take numbers from 1")
			}
			if q.Ranked && before > 0 {
				return usagef("--before goes on where a search by time ended; ask for more of the best matches with -n")
			}
			if cell != "" {
				q.Cell = cell
			}
			if agent != "" {
				q.Agent = agent
			}
			if cmd.Flags().Changed("exit") {
				q.Exit = &exitCode
			}
			if cmd.Flags().Changed("exit-not") {
				q.ExitNot = &exitNot
			}
			if q.Text == "" && q.Exit == nil && q.ExitNot == nil && q.Cell == "" && q.Agent == "" && q.Since.IsZero() && since == 0 {
				return usagef("say what to search for")
			}
			if since > 0 {
				q.Since = time.Now().Add(-since)
			}
			app, err := c.app(cmd.Context())
			if err != nil {
				return err
			}
			hits, err := app.Conversation.Search(cmd.Context(), q)
			if err != nil {
				return err
			}
			for _, hit := range hits {
				if asJSON {
					out := struct {
						entryJSON
						Snippet string `json:"snippet"`
					}{toEntryJSON(hit.Entry), unmark(hit.Snippet)}
					if err := c.printJSONLine(out); err != nil {
						return err
					}
					continue
				}
				ref := fleet.Ref{Cell: hit.Entry.Cell, Slot: hit.Entry.Slot}
				fmt.Fprintf(c.Stdout, "%s  %s  %s  %s\n", ref, hit.Entry.Stored.Local().Format("2006-01-02 15:04"), who(hit.Entry), oneLine(unmark(hit.Snippet)))
			}
			switch {
			case len(hits) == 0:
				c.say("Nothing found.")
			case len(hits) == limit && q.Ranked:
				c.say("These are the best %d; for more: -n %d", limit, 4*limit)
			case len(hits) == limit:
				c.say("These are the newest %d; for older ones: --before %d", limit, hits[limit-1].Entry.Seq)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&cell, "cell", "", "only this cell")
	cmd.Flags().StringVar(&agent, "agent", "", "only this agent")
	cmd.Flags().IntVar(&exitCode, "exit", 0, "only commands with this exit code")
	cmd.Flags().IntVar(&exitNot, "exit-not", 0, "only commands with another exit code")
	cmd.Flags().DurationVar(&since, "since", 0, "only the newest, such as 24h")
	cmd.Flags().BoolVar(&best, "best", false, "best match first in place of newest first")
	cmd.Flags().IntVarP(&limit, "number", "n", 50, "at most this many")
	cmd.Flags().Int64Var(&before, "before", 0, "only those older than the message with this seq, to go on where a search ended")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON lines")
	return cmd
}

// unmark drops the marks around matches.
func unmark(snippet string) string {
	return strings.NewReplacer("\x02", "", "\x03", "").Replace(snippet)
}

type entryJSON struct {
	Seq       int64           `json:"seq"`
	Ref       string          `json:"ref"`
	SessionID string          `json:"session_id"`
	Role      string          `json:"role"`
	Delivery  convo.Delivery  `json:"delivery"`
	Reason    string          `json:"reason,omitempty"`
	Stored    time.Time       `json:"stored"`
	Text      string          `json:"text"`
	Message   json.RawMessage `json:"message"` // the stored message itself, every field of it
}

func toEntryJSON(e convo.Entry) entryJSON {
	raw, err := json.Marshal(e.Message)
	if err != nil {
		raw = json.RawMessage("null")
	}
	return entryJSON{
		Seq: e.Seq, Ref: fleet.Ref{Cell: e.Cell, Slot: e.Slot}.String(), SessionID: e.Session, Role: string(e.Message.Role),
		Delivery: e.Delivery, Reason: e.Reason, Stored: e.Stored, Text: display(e), Message: raw,
	}
}

// display is a message's compact form: shell executions as the screen shows
// them, all else as its text.
func display(e convo.Entry) string {
	if record, is := shellctx.FromMessage(e.Message); is {
		return shellctx.DisplayText(record)
	}
	return e.Message.Text()
}

func who(e convo.Entry) string {
	if _, is := shellctx.FromMessage(e.Message); is {
		return "shell"
	}
	return string(e.Message.Role)
}
