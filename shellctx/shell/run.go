package shell

import (
	"context"
	"io"
)

// RunOptions is one stateless execution. Command and Cwd are required.
type RunOptions struct {
	// Command is the shell source to parse and run.
	Command string
	// Cwd is the working directory. There is no default: callers differ in what
	// theirs is, and each owns that decision.
	Cwd string
	// Env is the whole environment of the command, KEY=VALUE; nil is empty.
	Env []string
	// Stdin is the standard input; nil is an empty one.
	Stdin io.Reader
	// Stdout and Stderr receive the output; nil discards it. When both are the
	// same writer its Write is never called concurrently. An *os.File is handed
	// to programs as it is, and what they leave running may write to it later.
	Stdout io.Writer
	Stderr io.Writer
	// BlockFuncs refuse commands; nil refuses none.
	BlockFuncs []BlockFunc
	// BlockNames name the rules in messages, by position; without, they are
	// numbered.
	BlockNames []string
	// Marker is the value of proc.MarkerVariable in the environment of all that
	// the command starts; "" is a fresh one.
	Marker string
	// OnLeftover is called before Run returns when the command left background
	// processes running; nil lets them run unattended until ctx ends.
	OnLeftover func(*Leftover)
}

// Run parses and runs a command. It blocks until the command's foreground has
// ended, and for at most a second more when background statements still run.
// It shares no state with other calls and is safe for concurrent use.
//
// A command that ran and failed is an error too: ask ExitCode, IsInterrupt and
// IsSyntax. Background processes are ended when ctx ends, also after Run has
// returned.
func Run(ctx context.Context, opts RunOptions) error {
	if opts.Cwd == "" {
		return notStarted("shell.Run: Cwd is required")
	}
	_, err := command{
		source:     opts.Command,
		dir:        opts.Cwd,
		env:        opts.Env,
		stdin:      opts.Stdin,
		stdout:     opts.Stdout,
		stderr:     opts.Stderr,
		blocks:     opts.BlockFuncs,
		blockNames: opts.BlockNames,
		marker:     opts.Marker,
		onLeft:     opts.OnLeftover,
	}.wait(ctx)
	return err
}
