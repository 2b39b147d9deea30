package run

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
	"time"

	"cellmux/cell/proc"
	"cellmux/shellctx/shell"
)

// programScript is what the user's own shell runs for a line on the host: the
// changes that earlier lines made to the environment, over what the profile made
// of it; the line as it is; and at the end, however it ends, its directory and
// its environment into files. It is one line, so that the shell counts the lines
// of messages from the user's.
const programScript = `__cellmux_line=$1 __cellmux_at=$2 __cellmux_cwd=$2/` + cwdName + `; shift 2; ` +
	`eval "$__cellmux_restore"; unset __cellmux_restore; ` +
	`(umask 077; command -p env -0 >"$__cellmux_at/` + beforeName + `") 2>/dev/null; ` +
	`trap '__cellmux_code=$?; (umask 077; printf "%s" "$PWD" >"$__cellmux_cwd"; ` +
	`command -p env -0 >"$__cellmux_at/` + afterName + `") 2>/dev/null; exit "$__cellmux_code"' EXIT; ` +
	`eval "$__cellmux_line"`

// The files of one line, in a directory of its own.
const (
	cwdName    = "cwd"
	beforeName = "before"
	afterName  = "after"
)

// leaveCwd makes a POSIX shell leave its directory in $__cellmux_cwd at its end.
const leaveCwd = `trap '__cellmux_code=$?; (umask 077; printf "%s" "$PWD" >"$__cellmux_cwd") 2>/dev/null; exit "$__cellmux_code"' EXIT`

// posixShells are those that understand programScript. Another one gets the line
// alone, and its directory does not persist.
var posixShells = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"}

// probeTime is what a user's profile may take.
const probeTime = 5 * time.Second

// program is the user's own shell, if [shell] program names one. It is probed
// once, when it is first needed: a profile that prints, changes the directory,
// sets -e or replaces the shell would spoil every command.
type program struct {
	name string

	once  sync.Once
	argv  []string // before the script; nil: the interpreter runs the lines
	posix bool

	mu   sync.Mutex
	note string // what the user must know, until it has been said
}

// use returns the words that run a line, nil for the interpreter, and what is
// to be said about it, once.
func (p *program) use(ctx context.Context, dir string, env []string) (argv []string, posix bool, note string) {
	if p.name == "" {
		return nil, false, ""
	}
	p.once.Do(func() { p.probe(ctx, dir, env) })
	p.mu.Lock()
	defer p.mu.Unlock()
	note, p.note = p.note, ""
	return p.argv, p.posix, note
}

func (p *program) probe(ctx context.Context, dir string, env []string) {
	p.posix = slices.Contains(posixShells, strings.TrimSuffix(filepath.Base(p.name), ".exe"))
	login, why := []string{p.name, "-l", "-c"}, ""
	if why = tryProgram(ctx, dir, env, login); why == "" {
		p.argv = login
		return
	}
	plain := []string{p.name, "-c"}
	if whyPlain := tryProgram(ctx, dir, env, plain); whyPlain != "" {
		p.note = fmt.Sprintf("%s cannot run commands (%s); cellmux's own shell does", p.name, whyPlain)
		return
	}
	p.argv = plain
	p.note = fmt.Sprintf("the login profile of %s %s; commands run without it", p.name, why)
}

// tryProgram runs a command whose answer is known; "" is the right answer, else
// what was wrong, as the end of a sentence.
func tryProgram(ctx context.Context, dir string, env, argv []string) string {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	const word = "cellmux-probe-3f9a"
	var out bytes.Buffer
	err := shell.Run(ctx, shell.RunOptions{
		Command: commandLine(append(slices.Clone(argv), "false; printf '%s\\n' "+word+"; pwd; exit 7")),
		Cwd:     dir, Env: env, Stdout: &out,
	})
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	switch code := shell.ExitCode(err); {
	case shell.IsInterrupt(err):
		return "does not end"
	case code == 127:
		return "is not there"
	case !slices.Contains(lines, word):
		return "ends the shell or replaces it"
	case lines[0] != word:
		return "prints on its own"
	case code != 7 || len(lines) != 2:
		return "changes how commands end"
	}
	if here, err := filepath.EvalSymlinks(dir); err == nil && lines[1] != dir && lines[1] != here {
		return "changes the directory"
	}
	return ""
}

// commandLine quotes words for the interpreter.
func commandLine(argv []string) string {
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

// programLine is the source that runs a line in the user's shell, and the
// directory in which that leaves its state; "" none.
func programLine(argv []string, posix bool, line string, exported exports) (source, at string, err error) {
	if !posix {
		return commandLine(append(slices.Clone(argv), line)), "", nil
	}
	if at, err = os.MkdirTemp("", "cellmux-line-"); err != nil {
		return "", "", fmt.Errorf("keep the shell's directory: %w", err)
	}
	words := append(slices.Clone(argv), programScript, filepath.Base(argv[0]), line, at)
	return exported.assignments() + commandLine(words), at, nil
}

// takeState reads what a line left in its directory, and removes that.
func takeState(at string) (cwd string, before, after map[string]string) {
	if at == "" {
		return "", nil, nil
	}
	defer func() { _ = os.RemoveAll(at) }()
	if dir := readState(filepath.Join(at, cwdName), maxPath); filepath.IsAbs(dir) {
		cwd = dir
	}
	return cwd, environment(readState(filepath.Join(at, beforeName), maxEnvironment)), environment(readState(filepath.Join(at, afterName), maxEnvironment))
}

// maxEnvironment bounds what is read of an environment.
const maxEnvironment = 4 << 20

// readState reads a whole file; "" is none, or one that is too long.
func readState(path string, limit int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil || int64(len(data)) > limit {
		return ""
	}
	return string(data)
}

// environment reads env -0; nil is that there is none, such as where env does
// not know -0.
func environment(text string) map[string]string {
	if text == "" {
		return nil
	}
	env := make(map[string]string)
	for pair := range strings.SplitSeq(strings.TrimSuffix(text, "\x00"), "\x00") {
		if name, value, ok := strings.Cut(pair, "="); ok && exportable(name) {
			env[name] = value
		}
	}
	return env
}

// exportable tells whether a variable is one that lines keep: a shell's own are
// not, nor is an exported function, whose name is none of a variable.
func exportable(name string) bool {
	switch name {
	case "", "_", "PWD", "OLDPWD", "SHLVL", proc.MarkerVariable:
		return false
	}
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return !strings.HasPrefix(name, "__cellmux_")
}

// exports are the changes that lines in the user's shell made to the
// environment, by name; nil is a variable that was unset. They are kept as
// differences, since each line's shell reads the profile anew.
type exports map[string]*string

// with returns the changes together with those of another line.
func (x exports) with(before, after map[string]string) exports {
	if before == nil || after == nil {
		return x
	}
	next := maps.Clone(x)
	if next == nil {
		next = exports{}
	}
	for name, value := range after {
		if old, was := before[name]; !was || old != value {
			next[name] = &value
		}
	}
	for name := range before {
		if _, still := after[name]; !still {
			next[name] = nil
		}
	}
	return next
}

// assignments stand before the command in its source, so that no value is an
// argument, which every user of the machine could read.
func (x exports) assignments() string {
	var values, restore strings.Builder
	for _, name := range slices.Sorted(maps.Keys(x)) {
		if value := x[name]; value == nil {
			fmt.Fprintf(&restore, "unset %s; ", name)
		} else {
			fmt.Fprintf(&restore, `export %s="$__cellmux_set_%s"; unset __cellmux_set_%s; `, name, name, name)
			fmt.Fprintf(&values, "__cellmux_set_%s=%s ", name, commandLine([]string{*value}))
		}
	}
	return "__cellmux_restore=" + commandLine([]string{restore.String()}) + " " + values.String()
}
