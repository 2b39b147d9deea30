package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"unicode"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// NoUnset makes ExpandValue treat unset variables as an error. The default,
// false, is bash's: $UNSET is "". It is a switch for the whole process, for the
// case that the lenient default turns out wrong; nothing in the configuration
// sets it (spec/shell.txt).
var NoUnset atomic.Bool

// maxStderr is how much of a failed command's standard error an error quotes.
const maxStderr = 512

// ExpandValue expands $VAR, ${VAR} with its operators, $(command) and
// `command` in a single configuration value, and returns one string: nothing is
// split into fields, matched as a pattern or taken for a home directory.
//
// A value is not a command line: outside $( ) and ${ } quotes are ordinary
// characters, so that don't stays don't; inside they quote. A backslash escapes
// $, ` and itself. $( ) loses its trailing newlines and nothing else.
//
// An unset variable is "" unless NoUnset is true; ${VAR:?message} is an error
// either way. The error of a failed command wraps its exit code and quotes the
// start of its standard error, printable characters alone; it may quote the
// value, so callers that show it take that out first.
//
// env is the whole environment, KEY=VALUE. Commands run in the working
// directory of this process, with empty standard input, and end with ctx. It is
// safe for concurrent use.
func ExpandValue(ctx context.Context, value string, env []string) (string, error) {
	if !strings.ContainsAny(value, "$`\\") {
		return value, nil
	}
	word, err := syntax.NewParser().Document(strings.NewReader(value))
	if err != nil {
		return "", fmt.Errorf("could not parse value: %w", err)
	}
	cfg := &expand.Config{
		Env:     scratch{expand.ListEnviron(env...), make(map[string]expand.Variable)},
		NoUnset: NoUnset.Load(),
		CmdSubst: func(w io.Writer, cs *syntax.CmdSubst) error {
			return substituteCommand(ctx, w, cs, env)
		},
	}
	expanded, err := expand.Document(cfg, word)
	if err != nil {
		return "", err
	}
	return expanded, nil
}

// scratch lets ${VAR:=value} assign, for the rest of the value.
type scratch struct {
	expand.Environ
	set map[string]expand.Variable
}

func (s scratch) Get(name string) expand.Variable {
	if v, ok := s.set[name]; ok {
		return v
	}
	return s.Environ.Get(name)
}

func (s scratch) Set(name string, v expand.Variable) error {
	s.set[name] = v
	return nil
}

// substituteCommand runs the source of a substitution as Run would.
func substituteCommand(ctx context.Context, w io.Writer, cs *syntax.CmdSubst, env []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return notStarted("working directory: %w", err)
	}
	file := &syntax.File{Name: "sh", Stmts: cs.Stmts, Last: cs.Last}
	var stdout bytes.Buffer
	stderr := &prefix{limit: maxStderr}
	var params []string
	if NoUnset.Load() {
		params = []string{"-u"}
	}
	_, err = command{file: file, dir: dir, env: env, stdout: &stdout, stderr: stderr, params: params}.wait(ctx)
	if err != nil {
		if text := stderr.printable(); text != "" {
			return fmt.Errorf("%w: %s", err, text)
		}
		return err
	}
	_, err = w.Write(stdout.Bytes())
	return err
}

// prefix keeps the first bytes that are written to it.
type prefix struct {
	limit int
	data  []byte
}

func (p *prefix) Write(b []byte) (int, error) {
	p.data = append(p.data, b[:min(len(b), p.limit-len(p.data))]...)
	return len(b), nil
}

// printable replaces what a terminal would act on.
func (p *prefix) printable() string {
	text := strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			if r == '\n' || r == '\t' {
				return ' '
			}
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(p.data), "?"))
	return strings.TrimSpace(text)
}
