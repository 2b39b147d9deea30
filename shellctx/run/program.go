package run

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cellmux/shellctx/shell"
)

// programScript is what the user's own shell runs for a line on the host: the
// line as it is, and at the end, however it ends, the directory into a file. It
// is one line, so that the shell counts the lines of messages from the user's.
const programScript = `__cellmux_line=$1 __cellmux_cwd=$2; shift 2; ` + leaveCwd + `; eval "$__cellmux_line"`

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

// programLine is the source that runs a line in the user's shell, and the file
// in which that leaves its directory; "" none.
func programLine(argv []string, posix bool, line string) (source, cwd string, err error) {
	if !posix {
		return commandLine(append(slices.Clone(argv), line)), "", nil
	}
	f, err := os.CreateTemp("", "cellmux-cwd-")
	if err != nil {
		return "", "", fmt.Errorf("keep the shell's directory: %w", err)
	}
	_ = f.Close()
	words := append(slices.Clone(argv), programScript, filepath.Base(argv[0]), line, f.Name())
	return commandLine(words), f.Name(), nil
}

// takeCwd reads the directory that a line left, and removes the file.
func takeCwd(file string) string {
	if file == "" {
		return ""
	}
	defer func() { _ = os.Remove(file) }()
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxPath))
	if err != nil || !filepath.IsAbs(string(data)) {
		return ""
	}
	return string(data)
}
