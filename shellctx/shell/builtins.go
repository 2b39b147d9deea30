package shell

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// call is the interpreter's call handler: it sees every simple command before
// it runs, builtins and functions too, and may put another in its place.
func (x *execution) call(ctx context.Context, args []string) ([]string, error) {
	hc := interp.HandlerCtx(ctx)
	x.noteFIFOs(args)
	if x.background {
		if sig := x.jobKilled(hc.Env.Get(varIn).String()); sig != 0 {
			return []string{"exit", strconv.Itoa(codeSignal + sig)}, nil
		}
	}
	if reason := x.blocked(args); reason != "" {
		return []string{cmdRefuse, args[0], reason}, nil
	}
	switch args[0] {
	case "kill":
		// The interpreter has no kill of its own; programs know no jobs.
		return append([]string{cmdKill}, args[1:]...), nil
	case "wait":
		return x.waitArgs(args), nil
	case "disown":
		return []string{"true"}, nil // what is left running is never sent a hangup
	case "jobs":
		return []string{cmdJobs}, nil
	case "trap":
		return trapArgs(args), nil
	case "return":
		if len(args) == 1 {
			return []string{"return", strconv.Itoa(hc.LastExitStatus)}, nil
		}
	case "cd":
		return cdArgs(hc.Dir, args), nil
	case "eval":
		return x.evalArgs(args), nil
	case "read":
		if readNeedsOurs(args) {
			return append([]string{cmdRead}, args[1:]...), nil
		}
	case "echo", "printf", "pwd", "type", "command", "dirs":
		// A program would be ended by SIGPIPE; a builtin has to look.
		if x.pipes {
			if f, ok := unwrap(hc.Stdout).(*os.File); ok && noReader(f) {
				return []string{"exit", strconv.Itoa(codeSignal + sigPipe)}, nil
			}
		}
		switch args[0] {
		case "echo":
			return echoArgs(args), nil
		case "printf":
			return append([]string{cmdPrintf}, args[1:]...), nil
		}
	}
	return args, nil
}

// echoArgs takes grouped flags apart: the interpreter knows -n, -e and -E alone.
func echoArgs(args []string) []string {
	if len(args) < 2 || len(args[1]) < 3 || args[1][0] != '-' || strings.Trim(args[1][1:], "neE") != "" {
		return args
	}
	out := []string{"echo"}
	for _, flag := range args[1][1:] {
		out = append(out, "-"+string(flag))
	}
	return append(out, args[2:]...)
}

// cdArgs takes out the options that the interpreter does not know.
func cdArgs(dir string, args []string) []string {
	rest, physical := args[1:], false
options:
	for len(rest) > 0 {
		switch rest[0] {
		case "-L":
			physical = false
		case "-P":
			physical = true
		case "--":
			rest = rest[1:]
			break options
		default:
			break options
		}
		rest = rest[1:]
	}
	if physical && len(rest) == 1 && rest[0] != "-" {
		path := rest[0]
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			rest = []string{real}
		}
	}
	return append([]string{"cd"}, rest...)
}

// evalArgs instruments what is evaluated. What cannot be parsed is left to the
// interpreter to report.
func (x *execution) evalArgs(args []string) []string {
	source := strings.Join(args[1:], " ")
	if !strings.ContainsAny(source, "&\\") && !strings.Contains(source, ">|") && !strings.Contains(source, "${") {
		return args
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(source), "")
	if err != nil {
		return args
	}
	if !x.instrument(file, true) {
		return args
	}
	var out strings.Builder
	if err := syntax.NewPrinter().Print(&out, file); err != nil {
		return args
	}
	return []string{"eval", out.String()}
}

const sigPipe = 13

// jobKilled returns the signal that a background statement was ended with.
func (x *execution) jobKilled(id string) int {
	n, err := strconv.Atoi(id)
	if err != nil {
		return 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if j := x.named[n]; j != nil {
		return j.killed
	}
	return 0
}

// waitArgs names background statements as the interpreter does.
func (x *execution) waitArgs(args []string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := slices.Clone(args)
	for i, arg := range out[1:] {
		if j := x.jobNamed(arg); j != nil && j.shellID != "" {
			out[i+1] = j.shellID
		}
	}
	return out
}

// trapArgs leaves out the signals that an interpreter without a process of its
// own never gets, so that `trap cleanup EXIT INT TERM` sets the trap on EXIT.
func trapArgs(args []string) []string {
	if len(args) < 3 || strings.HasPrefix(args[1], "-") && args[1] != "-" && args[1] != "--" {
		return args
	}
	out := slices.Clone(args[:2])
	rest := args[2:]
	if args[1] == "--" && len(args) > 3 {
		out, rest = slices.Clone(args[:3]), args[3:]
	}
	kept := 0
	for _, name := range rest {
		switch upper := strings.TrimPrefix(strings.ToUpper(name), "SIG"); {
		case name == "0":
			out = append(out, "EXIT")
			kept++
		case signalNumber(upper) != 0:
		default:
			out = append(out, name)
			kept++
		}
	}
	if kept == 0 {
		return []string{"true"}
	}
	return out
}

// kill is the builtin: it knows background statements beside processes.
func (x *execution) kill(_ context.Context, hc interp.HandlerContext, args []string) error {
	args = args[1:]
	sig := 15
	usage := func(format string, a ...any) error {
		_, _ = fmt.Fprintf(hc.Stderr, "kill: "+format+"\n", a...)
		return interp.ExitStatus(2)
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--" {
		name := args[0][1:]
		args = args[1:]
		switch {
		case name == "l" || name == "L":
			return listSignals(hc, args)
		case name == "s" || name == "n":
			if len(args) == 0 {
				return usage("-%s needs a signal", name)
			}
			name, args = args[0], args[1:]
		case strings.HasPrefix(name, "s") && signalNumber(name[1:]) != 0:
			name = name[1:]
		}
		n, err := strconv.Atoi(name)
		if err != nil {
			n = signalNumber(strings.TrimPrefix(strings.ToUpper(name), "SIG"))
			if n == 0 && strings.ToUpper(name) != "EXIT" {
				return usage("%s: invalid signal specification", name)
			}
		}
		sig = n
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return usage("usage: kill [-s SIGNAL | -SIGNAL] PID | JOB ...")
	}
	failed := false
	for _, target := range args {
		if err := x.killOne(target, sig); err != nil {
			_, _ = fmt.Fprintf(hc.Stderr, "kill: (%s) - %v\n", target, err)
			failed = true
		}
	}
	if failed {
		return interp.ExitStatus(1)
	}
	return nil
}

func (x *execution) killOne(target string, sig int) error {
	x.mu.Lock()
	j := x.jobNamed(target)
	running := j != nil && x.jobs[j.id] != nil
	if running {
		if sig != 0 && sig != sigCont && sig != sigStop {
			j.killed = sig
		}
		for pid := range j.members {
			if x.leaders[pid] != nil {
				signalGroup(pid, sig)
			}
		}
	}
	x.mu.Unlock()
	if j != nil {
		if !running {
			return os.ErrProcessDone
		}
		return nil
	}
	pid, err := strconv.Atoi(target)
	if err != nil {
		return fmt.Errorf("no such job")
	}
	if pid == os.Getpid() || pid == 0 || pid == -os.Getpid() {
		// $$ is cellmux itself here: `kill $$` must not take the screen down.
		return fmt.Errorf("that is cellmux itself; use exit to end the command")
	}
	return killPID(pid, sig)
}

func listSignals(hc interp.HandlerContext, args []string) error {
	if len(args) == 0 {
		var names []string
		for n := 1; n < 32; n++ {
			if name := signalName(n); name != "" {
				names = append(names, name)
			}
		}
		_, _ = fmt.Fprintln(hc.Stdout, strings.Join(names, " "))
		return nil
	}
	for _, arg := range args {
		n, err := strconv.Atoi(arg)
		if err != nil {
			if n = signalNumber(strings.TrimPrefix(strings.ToUpper(arg), "SIG")); n == 0 {
				_, _ = fmt.Fprintf(hc.Stderr, "kill: %s: invalid signal specification\n", arg)
				return interp.ExitStatus(1)
			}
			_, _ = fmt.Fprintln(hc.Stdout, n)
			continue
		}
		if n > codeSignal {
			n -= codeSignal // an exit code
		}
		_, _ = fmt.Fprintln(hc.Stdout, signalName(n))
	}
	return nil
}

// listJobs is the builtin jobs: the background statements that run.
func (x *execution) listJobs(_ context.Context, hc interp.HandlerContext, _ []string) error {
	x.mu.Lock()
	ids := slices.Sorted(maps.Keys(x.jobs))
	var out strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&out, "[%d]  Running  %s &\n", id, x.jobs[id].source)
	}
	x.mu.Unlock()
	_, _ = io.WriteString(hc.Stdout, out.String())
	return nil
}
