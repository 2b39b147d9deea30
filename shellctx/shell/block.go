package shell

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// BlockFunc says whether a command must not run. args[0] is its name: first as
// it was written, then, when that is a path, its base name. A command that runs
// another is asked about for both. It is called from several goroutines at once.
//
// A block list is a guard-rail and not a sandbox: it keeps a command that is
// spelled out from running by accident. A script, another interpreter, a copy of
// the program or a variable in sh -c go past it.
type BlockFunc func(args []string) bool

// CommandsBlocker blocks commands by name, compared exactly.
func CommandsBlocker(commands []string) BlockFunc {
	names := slices.Clone(commands)
	return func(args []string) bool { return len(args) > 0 && slices.Contains(names, args[0]) }
}

// ArgumentsBlocker blocks a command that is called with certain arguments: its
// operands begin with args, in order, and all of flags are among its options, in
// any place before a "--". With neither it blocks every use of the command.
//
// Grouped short options hold each of their letters (-Sy is -S and -y), and
// --flag=value is --flag. What follows an option may be its value, so it may be
// passed over when operands are compared: `npm --prefix /p install -g` is
// `npm install -g`. In doubt a call is blocked.
func ArgumentsBlocker(command string, args []string, flags []string) BlockFunc {
	args, flags = slices.Clone(args), slices.Clone(flags)
	return func(call []string) bool {
		if len(call) == 0 || call[0] != command {
			return false
		}
		options, operands := splitCall(call[1:])
		for _, flag := range flags {
			if !slices.ContainsFunc(options, func(option string) bool { return holdsFlag(option, flag) }) {
				return false
			}
		}
		return beginWith(operands, args)
	}
}

// operand is a word that is no option.
type operand struct {
	word  string
	value bool // it follows an option, whose value it may be
}

func splitCall(words []string) (options []string, operands []operand) {
	after := false
	for i, w := range words {
		switch {
		case w == "--":
			for _, rest := range words[i+1:] {
				operands = append(operands, operand{word: rest})
			}
			return options, operands
		case len(w) > 1 && w[0] == '-':
			options = append(options, w)
			after = !strings.Contains(w, "=")
		default:
			operands = append(operands, operand{w, after})
			after = false
		}
	}
	return options, operands
}

func holdsFlag(option, flag string) bool {
	name, _, _ := strings.Cut(option, "=")
	if name == flag {
		return true
	}
	grouped := len(flag) == 2 && flag[0] == '-' && flag[1] != '-' && !strings.HasPrefix(name, "--")
	return grouped && strings.IndexByte(name[1:], flag[1]) >= 0
}

func beginWith(operands []operand, args []string) bool {
	if len(args) == 0 {
		return true
	}
	for i, o := range operands {
		if o.word == args[0] && beginWith(operands[i+1:], args[1:]) {
			return true
		}
		if !o.value {
			return false
		}
	}
	return false
}

// blocked returns why a command must not run, "" when it may.
func (x *execution) blocked(args []string) string {
	if len(x.blocks) == 0 {
		return ""
	}
	call, rule := findBlocked(seenThrough(args, 0), x.blocks, x.blockNames)
	switch {
	case call == nil:
		return ""
	case call[0] != args[0] && call[0] != baseName(args[0]):
		return fmt.Sprintf("%q is not allowed by %s", call[0], rule)
	}
	return "not allowed by " + rule
}

// Blocked returns why a script must not run: it spells out a call that one of
// the rules refuses, wherever it stands. "" is that it may, also when it cannot
// be parsed. It is for a script that another shell runs, of which nobody is
// asked call by call; names are as in RunOptions.BlockNames.
func Blocked(script string, rules []BlockFunc, names []string) string {
	if len(rules) == 0 {
		return ""
	}
	call, rule := findBlocked(callsIn(script, 0), rules, names)
	if call == nil {
		return ""
	}
	return fmt.Sprintf("%q is not allowed by %s", call[0], rule)
}

// findBlocked returns the first call that a rule refuses, with the rule's name.
func findBlocked(calls [][]string, rules []BlockFunc, names []string) (call []string, rule string) {
	for _, call := range calls {
		for i, blocks := range rules {
			if !blocks(call) {
				continue
			}
			if i < len(names) && names[i] != "" {
				return call, fmt.Sprintf("%q of the block list", names[i])
			}
			return call, fmt.Sprintf("rule %d of the block list", i+1)
		}
	}
	return nil, ""
}

// refuse is what a blocked builtin becomes.
func refuse(_ context.Context, hc interp.HandlerContext, args []string) error {
	_, _ = fmt.Fprintf(hc.Stderr, "%s: %s\n", args[1], args[2])
	return interp.ExitStatus(codeNotExec)
}

// maxDepth bounds how many commands within commands are looked at.
const maxDepth = 16

// seenThrough lists a command and those that it is told to run.
func seenThrough(args []string, depth int) [][]string {
	if len(args) == 0 || depth > maxDepth {
		return nil
	}
	calls := [][]string{args}
	name := baseName(args[0])
	if name != args[0] {
		calls = append(calls, append([]string{name}, args[1:]...))
	}
	if run, ok := runners[name]; ok {
		calls = append(calls, seenThrough(run(args[1:]), depth+1)...)
	}
	if slices.Contains(shells, name) {
		if script, ok := literalScript(args[1:]); ok {
			calls = append(calls, callsIn(script, depth+1)...)
		}
	}
	return calls
}

func baseName(name string) string {
	if runtime.GOOS == "windows" {
		name = strings.TrimSuffix(strings.ToLower(strings.ReplaceAll(name, `\`, "/")), ".exe")
	}
	if strings.Contains(name, "/") {
		return path.Base(name)
	}
	return name
}

var shells = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox"}

// runners are commands that run the command they are given; each takes what
// precedes it away.
var runners = map[string]func([]string) []string{
	"env": envCommand,
	"command": func(args []string) []string {
		if len(args) > 0 && (args[0] == "-v" || args[0] == "-V") {
			return nil // it only looks
		}
		return skipOptions("", "")(args)
	},
	"builtin": skipOptions("", ""),
	"exec":    skipOptions("a", ""),
	"nohup":   skipOptions("", ""),
	"setsid":  skipOptions("", ""),
	"time":    skipOptions("fo", ""),
	"nice":    skipOptions("n", "adjustment"),
	"ionice":  skipOptions("cnpPu", "class classdata"),
	"stdbuf":  skipOptions("ioe", "input output error"),
	"sudo":    skipOptions("CDghpRrtTUu", "user group host prompt chdir chroot role type"),
	"doas":    skipOptions("Cu", ""),
	"timeout": func(args []string) []string {
		rest := skipOptions("ks", "kill-after signal")(args)
		return rest[min(1, len(rest)):]
	},
	"xargs":   skipOptions("aEIdLnPs", "arg-file delimiter max-lines max-args max-procs max-chars process-slot-var"),
	"busybox": skipOptions("", ""),
}

// skipOptions takes options away: short ones of those in values have a value,
// in the same word or the next, as have the long ones.
func skipOptions(values, long string) func([]string) []string {
	longValues := strings.Fields(long)
	return func(args []string) []string {
		for len(args) > 0 {
			word := args[0]
			if word == "--" {
				return args[1:]
			}
			if len(word) < 2 || word[0] != '-' {
				return args
			}
			args = args[1:]
			if name, ok := strings.CutPrefix(word, "--"); ok {
				if slices.Contains(longValues, name) && len(args) > 0 {
					args = args[1:]
				}
				continue
			}
			if i := strings.IndexAny(word[1:], values); i >= 0 && i == len(word)-2 && len(args) > 0 {
				args = args[1:]
			}
		}
		return nil
	}
}

// envCommand takes env's options and assignments away; -S holds a command of
// its own.
func envCommand(args []string) []string {
	for len(args) > 0 {
		word := args[0]
		switch {
		case strings.HasPrefix(word, "-S"), strings.HasPrefix(word, "--split-string"):
			text := strings.TrimPrefix(strings.TrimPrefix(word, "-S"), "--split-string")
			text = strings.TrimPrefix(text, "=")
			rest := args[1:]
			if text == "" && len(rest) > 0 {
				text, rest = rest[0], rest[1:]
			}
			return envCommand(append(strings.Fields(text), rest...))
		case word == "--":
			args = args[1:]
			return skipAssignments(args)
		case len(word) > 1 && word[0] == '-':
			args = skipOne(args, "uC", "unset chdir")
		case strings.Contains(word, "="):
			args = args[1:]
		default:
			return args
		}
	}
	return nil
}

func skipOne(args []string, values, long string) []string {
	rest := skipOptions(values, long)(args[:min(2, len(args))])
	return append(slices.Clone(rest), args[min(2, len(args)):]...)
}

func skipAssignments(args []string) []string {
	for len(args) > 0 && strings.Contains(args[0], "=") {
		args = args[1:]
	}
	return args
}

// literalScript finds the script of sh -c, also of grouped options (-lc).
func literalScript(args []string) (string, bool) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if len(word) < 2 || word[0] != '-' && word[0] != '+' || word == "--" {
			return "", false
		}
		if strings.HasPrefix(word, "--") {
			if word == "--rcfile" || word == "--init-file" {
				i++
			}
			continue
		}
		if word[0] == '-' && strings.Contains(word, "c") {
			for _, rest := range args[i+1:] {
				if len(rest) > 1 && (rest[0] == '-' || rest[0] == '+') && rest != "--" {
					continue
				}
				if rest == "--" {
					continue
				}
				return rest, true
			}
			return "", false
		}
		if strings.HasSuffix(word, "o") || strings.HasSuffix(word, "O") {
			i++
		}
	}
	return "", false
}

// callsIn lists the commands that a script spells out. A word that is only known
// when it runs is the empty string.
func callsIn(script string, depth int) [][]string {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil
	}
	var calls [][]string
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			words := make([]string, len(call.Args))
			for i, w := range call.Args {
				words[i] = literalWord(w)
			}
			if words[0] != "" {
				calls = append(calls, seenThrough(words, depth)...)
			}
		}
		return true
	})
	return calls
}

func literalWord(w *syntax.Word) string {
	var out strings.Builder
	var add func(parts []syntax.WordPart) bool
	add = func(parts []syntax.WordPart) bool {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				out.WriteString(unescapeLit(part.Value))
			case *syntax.SglQuoted:
				out.WriteString(part.Value)
			case *syntax.DblQuoted:
				if !add(part.Parts) {
					return false
				}
			default:
				return false
			}
		}
		return true
	}
	if !add(w.Parts) {
		return ""
	}
	return out.String()
}

// unescapeLit takes the backslashes of an unquoted word away: c\url is curl.
func unescapeLit(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return withoutBackslashes(s)
}
