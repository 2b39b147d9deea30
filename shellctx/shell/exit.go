package shell

import (
	"context"
	"errors"
	"fmt"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Exit codes that the shell itself gives.
const (
	NotStarted    = -1 // the command never ran; no program can return it
	codeSyntax    = 2
	codeNotExec   = 126
	codeNotFound  = 127
	codeSignal    = 128 // plus the signal's number
	codeCancelled = 130
)

// ErrNotStarted is wrapped by errors of commands of which nothing ran because
// their surroundings were missing, such as the working directory.
var ErrNotStarted = errors.New("the command was not started")

func notStarted(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrNotStarted, fmt.Errorf(format, args...))
}

// ExitCode tells the exit code that an error of Run, Exec or ExecStream stands
// for: 0 for nil, 130 for a cancelled command, 2 for a syntax error, NotStarted
// for a command that never ran, else the command's own code; 1 for an error
// that carries none.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if errors.Is(err, ErrNotStarted) {
		return NotStarted
	}
	if IsInterrupt(err) {
		return codeCancelled
	}
	if IsSyntax(err) {
		return codeSyntax
	}
	if status, ok := errors.AsType[interp.ExitStatus](err); ok {
		return int(status)
	}
	return 1
}

// IsInterrupt tells whether a command ended because its context did, by
// cancellation or deadline.
func IsInterrupt(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// IsSyntax tells whether a command did not run because it cannot be parsed. The
// error's text names line and column.
func IsSyntax(err error) bool {
	if _, ok := errors.AsType[syntax.ParseError](err); ok {
		return true
	}
	_, ok := errors.AsType[syntax.LangError](err)
	return ok
}
