// Package git asks git about the working trees of cells.
//
// The rule it keeps: looking at a repository runs nothing of that repository. A
// guest that can write a repository can write its configuration, and git obeys
// configuration by running programs: monitors, filters, hooks, converters,
// external diffs, transports. So a Reader never gives git the repository's own
// configuration; it hands over a stand-in directory (see shadow.go).
//
// A Committer commits in the same way. A Client is the user's own git, for
// repositories that no guest writes.
package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cellmux/cell/proc"
)

// ErrNoRepository says that a directory is in no working tree of git.
var ErrNoRepository = errors.New("not in a git repository")

// Timeout bounds one git process that looks.
const Timeout = 10 * time.Second

// locationVariables are those that git sets for the hooks that it runs. cellmux
// started from a hook must read the repository that it is pointed at, not the one
// whose hook that is. Exactly these eight (spec/isolation-and-forge.txt): other
// GIT_ variables are the user's settings and reach git unchanged.
var locationVariables = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR",
	"GIT_PREFIX", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH",
}

// LocationVariables are the names of the variables that point git at a
// repository, in a slice of the caller's own.
func LocationVariables() []string { return slices.Clone(locationVariables) }

// Environ returns environ without the variables that name a repository.
func Environ(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(locationVariables, name)
	})
}

// Client runs the user's git, with the user's configuration and the repository's.
// It is safe for concurrent use.
type Client struct {
	Runner  proc.Runner
	Environ []string // of the host; the eight location variables are taken out
}

// Run returns what git prints in dir. It blocks, at most Timeout. A git that
// fails is an error with its own last words.
func (c Client) Run(ctx context.Context, dir string, args ...string) (string, error) {
	return run(ctx, c.Runner, proc.Cmd{
		Argv: append([]string{"git"}, args...),
		Dir:  dir,
		Env:  Environ(c.Environ),
	})
}

// maxOutput bounds what is kept of one git process, in bytes.
const maxOutput = 8 << 20

func run(ctx context.Context, runner proc.Runner, c proc.Cmd) (string, error) {
	if c.Timeout == 0 {
		c.Timeout = Timeout
	}
	c.MaxOutput = maxOutput
	result, err := runner.Run(ctx, c)
	switch {
	case err != nil:
		return "", fmt.Errorf("git in %s: %w", c.Dir, err)
	case result.ExitCode != 0:
		return "", &ExitError{Dir: c.Dir, Code: result.ExitCode, Message: lastLine(result.Stderr)}
	}
	return string(result.Stdout), nil
}

// ExitError is a git that ran and failed.
type ExitError struct {
	Dir     string
	Code    int
	Message string // the last line that git wrote to standard error, printable
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("git in %s: exit %d: %s", e.Dir, e.Code, e.Message)
}

// lastLine returns the last line of what git said, without control characters: a
// file name in it may hold anything.
func lastLine(stderr []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(stderr), "\uFFFD"))
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}
