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
	Stdin     io.Reader     // nil is /dev/null
	Timeout   time.Duration // 0: DefaultTimeout; negative: only the context bounds it
	Grace     time.Duration // between interrupt and kill; 0: DefaultGrace
	MaxOutput int           // bytes kept of each stream, the rest is read and counted; 0: DefaultMaxOutput
	Marker    string        // value of MarkerVariable; "": a fresh one
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
	// Start returns at once; the caller must call Wait, and owns both pipes.
	// Timeout and MaxOutput do not apply; ending the context ends the process.
	Start(ctx context.Context, c Cmd) (Process, error)
}

// Process is a running child with pipes to its standard streams.
type Process interface {
	PID() int
	Stdin() io.WriteCloser
	Stdout() io.Reader // combined with standard error
	// Wait reaps the process and ends what it left in its session.
	Wait() (Result, error)
	// End interrupts, then kills the whole tree; bounded by the Grace of its Cmd.
	End()
}
