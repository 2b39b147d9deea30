package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// ShellType says what interprets a Shell's commands.
type ShellType string

// POSIX is the one type there is: the interpreter of mvdan.cc/sh, on every
// platform.
const POSIX ShellType = "posix"

// Logger receives what happens inside a Shell; *slog.Logger is one. Commands,
// output and environment are never logged.
type Logger interface {
	Info(msg string, keysAndValues ...any)
	Error(msg string, keysAndValues ...any)
}

// Options configures a Shell. Every field may be zero.
type Options struct {
	WorkingDir string   // "" is the working directory of this process
	Env        []string // KEY=VALUE; nil is the environment of this process
	Logger     Logger
	BlockFuncs []BlockFunc
	BlockNames []string // of the rules, by position, for messages; without, they are numbered
	// NoTerminal is what is said, with exit code 126, in place of starting a
	// program that would draw a full screen and wait for keys that cannot come
	// (FullScreen); "" starts it.
	NoTerminal string
}

// Shell runs commands one after the other or at the same time, and keeps the
// working directory and the exported variables that they leave behind. Commands
// that overlap start from what is known when they start; each one's changes are
// applied when it ends. Reading and setting state never waits for a command. It
// is safe for concurrent use.
type Shell struct {
	log        Logger
	noTerminal string

	mu     sync.Mutex
	dir    string
	env    variables // replaced, never changed: running commands hold it
	list   []string  // of env
	blocks []BlockFunc
	names  []string // of blocks
}

// NewShell returns a Shell; opts may be nil. EnvMarkers are added to its
// environment, which is copied.
func NewShell(opts *Options) *Shell {
	if opts == nil {
		opts = &Options{}
	}
	env := opts.Env
	if env == nil {
		env = os.Environ()
	}
	s := &Shell{
		log:        opts.Logger,
		noTerminal: opts.NoTerminal,
		dir:        opts.WorkingDir,
		env:        parseEnv(slices.Concat(env, EnvMarkers())),
		blocks:     slices.Clone(opts.BlockFuncs),
		names:      slices.Clone(opts.BlockNames),
	}
	s.list = s.env.list()
	if s.dir == "" {
		// Without a working directory each command says that there is none.
		s.dir, _ = os.Getwd()
	}
	return s
}

// Type says what interprets the commands.
func (s *Shell) Type() ShellType { return POSIX }

// Exec runs a command with empty standard input and returns what it printed on
// standard output and standard error. It blocks as Run does, and its error is
// Run's. The output is kept in memory, whole: use ExecStream where it may be
// large.
func (s *Shell) Exec(ctx context.Context, command string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	err = s.ExecStream(ctx, command, &out, &errs)
	return out.String(), errs.String(), err
}

// ExecStream is Exec with the output written as it comes; see RunOptions for
// what is asked of the writers.
func (s *Shell) ExecStream(ctx context.Context, command string, stdout, stderr io.Writer) error {
	return s.Do(ctx, Command{Source: command, Stdout: stdout, Stderr: stderr})
}

// Command is one command line for a Shell. The fields mean what they mean in
// RunOptions.
type Command struct {
	Source         string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Marker         string
	// Unblocked says that the block list is not asked: the caller has (Blocked).
	Unblocked bool
	// OnExit is called with Do's error as soon as the foreground has ended, before
	// its last output has arrived.
	OnExit     func(error)
	OnLeftover func(*Leftover)
}

// Do runs a command as Run does, in the Shell's state, and keeps the state that
// the command leaves behind, also when it failed or was cancelled; `exit` ends
// the command alone.
func (s *Shell) Do(ctx context.Context, c Command) error {
	command, applied := s.begin(c)
	left, err := command.wait(ctx)
	applied(left, err)
	return err
}

// DoThen is Do for a goroutine that has nothing else to do: the interpreter runs
// on it, and then is called when Do would return. That happens on this
// goroutine, or on another one while this one is stuck, if the interpreter does
// not end in time after a cancel.
func (s *Shell) DoThen(ctx context.Context, c Command, then func(error)) {
	command, applied := s.begin(c)
	execute(ctx, command, func(left *state, err error) {
		applied(left, err)
		then(err)
	})
}

// begin returns a command in the Shell's state, and what is to be called with
// its end.
func (s *Shell) begin(c Command) (command, func(*state, error)) {
	s.mu.Lock()
	dir, env, list, blocks, names := s.dir, s.env, s.list, s.blocks, s.names
	s.mu.Unlock()
	if c.Unblocked {
		blocks, names = nil, nil
	}
	return command{
			source:     c.Source,
			dir:        dir,
			env:        list,
			stdin:      c.Stdin,
			stdout:     c.Stdout,
			stderr:     c.Stderr,
			blocks:     blocks,
			blockNames: names,
			noTerminal: s.noTerminal,
			marker:     c.Marker,
			onExit:     c.OnExit,
			onLeft:     c.OnLeftover,
		}, func(left *state, err error) {
			if left != nil {
				s.keep(env, dir, *left)
			}
			if s.log != nil && ExitCode(err) == NotStarted {
				s.log.Error("shell command was not started", "error", err)
			}
		}
}

// keep applies what one command changed, and nothing else, so that commands
// that overlap do not take back each other's changes.
func (s *Shell) keep(env variables, dir string, now state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.dir != dir {
		s.dir = now.dir
	}
	var merged variables
	change := func() variables {
		if merged == nil {
			merged = maps.Clone(s.env)
		}
		return merged
	}
	for name, value := range now.env {
		if old, was := env[name]; !was || old != value {
			change()[name] = value
		}
	}
	for name := range env {
		if _, still := now.env[name]; !still {
			delete(change(), name)
		}
	}
	if merged != nil {
		s.env, s.list = merged, merged.list()
	}
}

// GetWorkingDir returns the directory in which the next command starts.
func (s *Shell) GetWorkingDir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dir
}

// SetWorkingDir sets the directory in which the next command starts. A relative
// one is taken from the present one. What is not a directory is an error.
func (s *Shell) SetWorkingDir(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.dir, dir)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("set working directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("set working directory: %s is not a directory", dir)
	}
	s.dir = dir
	return nil
}

// GetEnv returns the environment of the next command, KEY=VALUE, sorted.
func (s *Shell) GetEnv() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// SetEnv sets a variable of the next command. A name that cannot be one, empty
// or with "=" or NUL in it, is ignored.
func (s *Shell) SetEnv(key, value string) {
	if key == "" || strings.ContainsAny(key, "=\x00") || strings.Contains(value, "\x00") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := maps.Clone(s.env)
	env[key] = value
	s.env, s.list = env, env.list()
}

// SetBlockFuncs replaces the block list of the next command; its rules are
// numbered.
func (s *Shell) SetBlockFuncs(blockFuncs []BlockFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocks, s.names = slices.Clone(blockFuncs), nil
}
