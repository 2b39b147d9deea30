// Package cli is the command line: every action of the screen for scripts,
// over the same ports.
//
// The rule it keeps: standard output carries data, standard error carries talk;
// nothing asks a question where nobody can answer; the exit code says what kind
// of failure it was; and no command touches the database or tmux before it must.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"cellmux/cell"
	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/cell/state"
	"cellmux/engine/fleet"
	"cellmux/engine/tmux"
)

// Exit codes. `cellmux run` passes the exit code of its command on instead,
// and uses ExitRunFailed where there is none.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitRefused     = 4   // a confirmation or an approval is missing: --force, cellmux trust
	ExitUnavailable = 5   // tmux, the database or an engine gives no answer
	ExitTimeout     = 124 // as timeout(1)
	ExitRunFailed   = 125 // as env(1) and docker(1): the command itself never ran
	ExitInterrupted = 130
)

const exitCodesHelp = `Exit codes:
  0    done
  1    it failed; standard error says why
  2    wrong use: unknown command, flag or argument
  3    no such cell, slot, job or conversation
  4    refused: it needs --force or an approval (cellmux trust)
  5    tmux, the database or an engine is not available
  124  the time of --timeout or --wait is over
  130  interrupted
  run  passes on the exit code of its command; 125 means that the command never ran`

// Options is what the command line is made of. Nothing else of the process is
// read here.
type Options struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal tells that a person sits at standard input and output: the
	// screen and attach need it, and only then may a command ask.
	Terminal bool
	Dir      string // working directory, absolute; "" when it is gone
	Getenv   func(string) string
	Version  string
	// Open wires the application. It is called at most once, by the first
	// command that needs it; what it returns is closed at the end.
	// prompts is the flag tier of the prompts of what the command starts.
	Open func(ctx context.Context, prompts cell.ResolveOpts) (*App, error)
	// Screen runs the full-screen program until the user quits.
	Screen func(ctx context.Context) error
	// Handoff becomes the program that the launch file names; it returns only
	// when that failed.
	Handoff func(file string) error
	// Paths are where things are, for doctor, config and init.
	Paths Paths
	// Checks are doctor's, in the order in which they are shown. They open
	// themselves what they look at.
	Checks func() []Check
	// CheckSettings loads config.toml and says what is wrong with it.
	CheckSettings func() error
	// LoadCell loads the devcell.toml files for a project directory. It executes
	// nothing.
	LoadCell func(dir string) (*cfg.Effective, error)
}

// Paths are the files that commands name and write.
type Paths struct {
	State      string // directory of all that cellmux keeps
	Database   string
	Settings   string // config.toml
	GlobalCell string // the global devcell.toml
	Log        string
	Runtime    string // directory of sockets and launch files
	TmuxSocket string // name for tmux -L
	Workspaces string // ~/.devcell
}

// Main runs one command and returns the exit code.
func Main(ctx context.Context, o Options) int {
	c := &commands{Options: o}
	defer c.close()
	root := c.root()
	root.SetArgs(o.Args)
	root.SetIn(o.Stdin)
	root.SetOut(o.Stdout)
	root.SetErr(o.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	code, silent := exitCode(ctx, err)
	if !silent {
		fmt.Fprintf(o.Stderr, "cellmux: %v\n", err)
		if code == ExitUsage {
			fmt.Fprintln(o.Stderr, "cellmux --help shows the commands.")
		}
	}
	return code
}

// exit ends a command with a code; err nil says nothing more.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

// Exit is an error that ends cellmux with a code of its own.
func Exit(code int, err error) error { return exit{code: code, err: err} }

func usagef(format string, args ...any) error {
	return exit{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

func exitCode(ctx context.Context, err error) (code int, silent bool) {
	var e exit
	switch {
	case errors.As(err, &e):
		return e.code, e.err == nil
	case errors.Is(err, fleet.ErrNotFound):
		return ExitNotFound, false
	case errors.Is(err, fleet.ErrLive), errors.Is(err, fleet.ErrApproval):
		return ExitRefused, false
	case unavailable(err):
		return ExitUnavailable, false
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return ExitInterrupted, false
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout, false
	}
	return ExitFailed, false
}

// unavailable tells that something that every command needs gives no answer, or
// not this one.
func unavailable(err error) bool {
	for _, target := range []error{
		fleet.ErrUnavailable,
		tmux.ErrNoAnswer, tmux.ErrOld, proc.ErrNotFound,
		state.ErrReadOnly, state.ErrFull, state.ErrLocked, state.ErrDamaged, state.ErrNewer,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// commands holds what the commands of one invocation share.
type commands struct {
	Options
	prompts cell.ResolveOpts // filled by the flags of open and send
	once    sync.Once
	opened  *App
	openErr error
}

// app opens the application on first use.
func (c *commands) app(ctx context.Context) (*App, error) {
	c.once.Do(func() {
		c.opened, c.openErr = c.Open(ctx, c.prompts)
		if c.opened != nil {
			for _, notice := range c.opened.Notices {
				c.say("%s", notice)
			}
		}
	})
	return c.opened, c.openErr
}

func (c *commands) close() {
	if c.opened != nil && c.opened.Close != nil {
		if err := c.opened.Close(); err != nil {
			fmt.Fprintf(c.Stderr, "cellmux: closing the database: %v\n", err)
		}
	}
}

func (c *commands) say(format string, args ...any) { fmt.Fprintf(c.Stderr, format+"\n", args...) }

func (c *commands) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "cellmux",
		Short: "One keyboard-driven screen for all your coding agents",
		Long: `cellmux lists your cells (a project bound to a workspace and an engine) and the
panes in them, shows which agent works and which one waits for you, and runs
shell commands whose output becomes part of an agent's conversation.

Without a command it opens the screen, with the current directory offered as a
cell. A slot is written CELL:SLOT, such as api:0; CELL alone is enough where it
has one slot, and a directory or nothing at all means the cell of that directory.

` + exitCodesHelp,
		Example: `  cellmux                          # the screen
  cellmux ls --json                # the list, for scripts
  cellmux run api:0 'make test'    # run a command; its output becomes context
  cellmux send api:0 'Fix it'      # a message to the agent, with that context`,
		Version:       c.Version,
		Args:          unknownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,

		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !c.Terminal {
				return usagef("the screen needs a terminal on standard input and output; for scripts use a command, such as cellmux ls --json")
			}
			return c.Screen(cmd.Context())
		},
	}
	// cobra asks this itself, a moment later, and then calls it no usage error.
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
			return exit{code: ExitUsage, err: err}
		}
		return nil
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit{code: ExitUsage, err: err} })
	root.SetVersionTemplate("cellmux {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.AddGroup(
		&cobra.Group{ID: groupCells, Title: "Cells and panes:"},
		&cobra.Group{ID: groupTalk, Title: "Commands and conversations:"},
		&cobra.Group{ID: groupSetup, Title: "Setup and inspection:"},
	)
	for _, add := range []struct {
		group    string
		commands []*cobra.Command
	}{
		{groupCells, []*cobra.Command{c.ls(), c.status(), c.newCell(), c.open(), c.attach(), c.wait(), c.stop(), c.commit(), c.rm(), c.restore()}},
		{groupTalk, []*cobra.Command{c.run(), c.jobs(), c.send(), c.review(), c.message(), c.log(), c.search(), c.export(), c.importMessages(), c.sessionID()}},
		{groupSetup, []*cobra.Command{c.init(), c.trust(), c.env(), c.prompt(), c.engines(), c.image(), c.config(), c.doctor(), c.completion(), c.man()}},
	} {
		for _, sub := range add.commands {
			sub.GroupID = add.group
			root.AddCommand(sub)
		}
	}
	root.AddCommand(c.pane())
	return root
}

const (
	groupCells = "cells"
	groupTalk  = "talk"
	groupSetup = "setup"
)

// unknownCommand refuses words that are no command: "cellmux lss" must not open
// the screen.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	return usagef("no command is called %q%s", args[0], hint)
}

// args wraps cobra's argument checks so that a wrong count is a usage error.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := check(cmd, given); err != nil {
			return usagef("%w (usage: %s)", err, cmd.UseLine())
		}
		return nil
	}
}

// pane is the hidden hand-off: a pane's own process becomes its program.
func (c *commands) pane() *cobra.Command {
	return &cobra.Command{
		Use:    "__pane FILE",
		Short:  "Become the program that a launch file names (used inside panes)",
		Hidden: true,
		Args:   args(cobra.ExactArgs(1)),
		RunE:   func(_ *cobra.Command, given []string) error { return c.Handoff(given[0]) },
	}
}
