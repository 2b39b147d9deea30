package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cellmux/cell"
	"cellmux/engine/fleet"
	"cellmux/shellctx/run"
)

// run runs one shell command in a cell, as `!` does on the screen.
func (c *commands) run() *cobra.Command {
	var private, ask, onHost, asJSON bool
	cmd := &cobra.Command{
		Use:   "run [flags] CELL[:SLOT]|DIR COMMAND...",
		Short: "Run a shell command; its output becomes the agent's context",
		Long: `Run a shell command where the cell runs, as ! does on the screen: its output is
shown, recorded, and rides in front of the next message to the slot's agent.
One COMMAND word is shell source; several are one command with its arguments,
each taken literally. The exit code is the command's own; 125 means that it
never ran. Standard input of the command is empty. What the command left in the
background ends with cellmux run, and it says so.`,
		Example: `  cellmux run api:0 'npm test | tail -20'
  cellmux run api:0 -- git log -3
  cellmux run --private api:0 'cat .env'
  cellmux run --ask api:0 'make lint'        # and let the agent answer`,
		Args: args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, given []string) error {
			ctx := cmd.Context()
			mode := run.Context
			switch {
			case private && ask:
				return usagef("--private and --ask exclude each other")
			case private:
				mode = run.Private
			case ask:
				mode = run.Ask
			}
			app, snap, err := c.snapshot(ctx)
			if err != nil {
				return neverRan(err)
			}
			ref, err := c.shellTarget(snap, given[0])
			if err != nil {
				return neverRan(err)
			}
			words := given[1:]
			if words[0] == "--" && len(words) > 1 {
				words = words[1:]
			}
			line := words[0]
			if len(words) > 1 {
				line = cell.ShellJoin(words)
			}
			if strings.TrimSpace(line) == "" {
				return neverRan(usagef("the command is empty"))
			}
			handle, err := app.Shell.Start(ctx, ref, line, mode, onHost)
			if err != nil {
				return neverRan(err)
			}
			var live io.Writer = c.Stdout
			if asJSON {
				live = c.Stderr
			}
			ended, err := follow(ctx, handle, live)
			if err != nil {
				return neverRan(err)
			}
			if ended.Record.Error != "" {
				c.say("cellmux: %s", oneLine(ended.Record.Error))
			}
			if ended.Leftover > 0 {
				c.say("%d background %s still running; cellmux run ends what it started. For what should live on, use ! on the screen or a pane.", ended.Leftover, plural(ended.Leftover, "process", "processes"))
			}
			if mode == run.Ask {
				if err := app.Conversation.Deliver(ctx, ref); err != nil {
					c.say("cellmux: the agent was not asked yet: %v", err)
				}
			}
			if asJSON {
				if err := c.printJSON(toExecutionJSON(ended)); err != nil {
					return err
				}
			}
			switch {
			case ctx.Err() != nil:
				return exit{code: ExitInterrupted}
			case ended.State == run.NeverStarted:
				return exit{code: ExitRunFailed}
			case ended.Record.ExitCode != 0:
				return exit{code: ended.Record.ExitCode}
			}
			return nil
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().BoolVar(&private, "private", false, "keep it out of the conversation (!!)")
	cmd.Flags().BoolVar(&ask, "ask", false, "let the agent answer (!?)")
	cmd.Flags().BoolVar(&onHost, "host", false, "run on the host although the cell is a guest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the execution as JSON to standard output, its live output to standard error")
	return cmd
}

// shellTarget is a slot where the argument names one or the cell has exactly
// one, else the cell's own shell.
func (c *commands) shellTarget(snap fleet.Snapshot, text string) (fleet.Ref, error) {
	ref, err := c.target(snap, text)
	if err != nil || ref.Slot != fleet.WholeCell {
		return ref, err
	}
	if cell, _ := find(snap, ref.Cell); len(cell.Slots) == 0 {
		return ref, nil
	}
	s, err := c.slot(snap, text)
	return s.Ref, err
}

// follow shows output as it comes and returns when the record is stored. When
// ctx ends the execution is cancelled, and its record still waited for.
func follow(ctx context.Context, handle run.Handle, to io.Writer) (run.Execution, error) {
	stop := context.AfterFunc(ctx, handle.Cancel)
	defer stop()
	// The unfinished last line may come again, longer or replaced (a progress
	// bar): it is held back until it is whole.
	unfinished := ""
	for chunk := range handle.Chunks() {
		if chunk.Skipped > 0 {
			unfinished += fmt.Sprintf("… %d bytes not shown …\n", chunk.Skipped)
		}
		if chunk.Rewind {
			unfinished = ""
		}
		text := unfinished + chunk.Text
		end := strings.LastIndexByte(text, '\n') + 1
		unfinished = text[end:]
		if _, err := io.WriteString(to, text[:end]); err != nil {
			handle.Cancel() // nobody reads: as a pipe that broke
		}
	}
	if _, err := io.WriteString(to, unfinished); err != nil {
		handle.Cancel()
	}
	// The record outlives the caller's patience: it is part of a conversation.
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordPatience)
	defer cancel()
	return handle.Wait(wait)
}

// recordPatience bounds the wait for a record after the output has ended; a
// cancelled tree has a grace of seconds before it is killed.
const recordPatience = 30 * time.Second

// neverRan gives 125 to failures that came before the command, except wrong use.
func neverRan(err error) error {
	code, _ := exitCode(context.Background(), err)
	if code == ExitUsage {
		return err
	}
	return exit{code: ExitRunFailed, err: err}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

type executionJSON struct {
	ID       string     `json:"id"`
	Cell     string     `json:"cell"`
	Slot     int        `json:"slot"`
	Mode     run.Mode   `json:"mode"`
	OnHost   bool       `json:"on_host"`
	State    run.State  `json:"state"`
	Command  string     `json:"command"`
	CWD      string     `json:"cwd"`
	ExitCode int        `json:"exit_code"`
	Error    string     `json:"error,omitempty"`
	Lines    int        `json:"lines"`
	Leftover int        `json:"leftover,omitempty"`
	Started  time.Time  `json:"started"`
	Ended    *time.Time `json:"ended,omitempty"`
	Output   string     `json:"output"`
	Bytes    int        `json:"output_bytes"`
	Cut      bool       `json:"output_truncated"`
	Spill    string     `json:"spill,omitempty"`
}

func toExecutionJSON(e run.Execution) executionJSON {
	out := executionJSON{
		ID: e.ID, Cell: e.Cell, Slot: e.Slot, Mode: e.Mode, OnHost: e.OnHost, State: e.State,
		Command: e.Record.Command, CWD: e.Record.CWD, ExitCode: e.Record.ExitCode, Error: e.Record.Error,
		Lines: e.Lines, Leftover: e.Leftover, Started: e.Started, Output: e.Record.Output,
		Bytes: e.Record.OutputBytes, Cut: e.Record.OutputTruncated, Spill: e.Spill,
	}
	if !e.Ended.IsZero() {
		out.Ended = &e.Ended
	}
	return out
}
