// Package proc is the one way cellmux starts a process.
//
// The rule it keeps: every process has an explicit directory, an explicit and
// complete environment, a deadline, bounded output, a session of its own, and
// an end. When a call returns, the process has been reaped and what it started
// in its session has been ended. Nothing here reads os.Environ or the current
// directory of cellmux.
package proc

import (
	"context"
	"errors"
	"io"
	"time"
)

// Limits that apply where a Cmd leaves the field zero.
const (
	DefaultTimeout   = 10 * time.Second
	DefaultGrace     = 2 * time.Second
	DefaultMaxOutput = 1 << 20 // bytes a stream
)

// MarkerVariable names the environment variable that every process started
// here carries, with a value unique to that execution. What escaped both the
// process group and the session is found by it in /proc/*/environ.
const MarkerVariable = "CELLMUX_EXECUTION"

// Errors of Run and Start. A program that ran and failed is not an error: its
// Result says so.
var (
	ErrNotFound = errors.New("program not found")
	ErrTimeout  = errors.New("no answer within the deadline")
)

// Cmd says what to run. The zero value of each optional field has the stated
// meaning; Argv and Dir are required.
type Cmd struct {
	Argv      []string      // Argv[0]: a path, or a name looked up on the PATH of Env
	Dir       string        // absolute; it must exist
	Env       []string      // KEY=VALUE, complete; nil is an empty environment
	Stdin     io.Reader     // nil is /dev/null; else read until the process ends or it does, so its last Read must return
	Timeout   time.Duration // 0: DefaultTimeout; negative: only the context bounds it
	Grace     time.Duration // between SIGTERM and SIGKILL; 0: DefaultGrace
	MaxOutput int           // bytes kept of each stream, the rest is read and counted; 0: DefaultMaxOutput
	Marker    string        // value of MarkerVariable; "": a fresh one
	// LeavesDaemon is for a program that leaves a daemon behind on purpose, such
	// as the first tmux client: the daemon, in a session of its own, lives on. The
	// marker is removed from the environment, so that no other execution's end
	// finds the daemon either.
	LeavesDaemon bool
}

// Result is how a process that ran ended.
type Result struct {
	Stdout, Stderr []byte
	Dropped        int64 // bytes produced beyond MaxOutput, both streams
	ExitCode       int   // 128+n when signal n ended it
	Signaled       bool
}

// Runner starts processes. It is safe for concurrent use.
type Runner interface {
	// Run blocks until the process has ended and its tree is gone. The error is
	// ErrNotFound, ErrTimeout, the context's, or says why it could not start;
	// with ErrTimeout and the context's error the Result holds what was printed.
	Run(ctx context.Context, c Cmd) (Result, error)
	// Start returns at once. The caller reads Stdout to its end, which comes when
	// the tree has ended, and closes Stdin when it has written all. Timeout,
	// MaxOutput and Cmd.Stdin do not apply; ending the context ends the process.
	Start(ctx context.Context, c Cmd) (Process, error)
}

// Process is a running child with pipes to its standard streams.
type Process interface {
	PID() int
	Stdin() io.WriteCloser
	Stdout() io.Reader // combined with standard error
	// Wait blocks until the process has been reaped and what it left has been
	// ended; both happen without Wait, too. It may be called more than once. The
	// error is the context's when that ended the process.
	Wait() (Result, error)
	// End terminates, then kills the whole tree; bounded by the Grace of its Cmd.
	End()
}
