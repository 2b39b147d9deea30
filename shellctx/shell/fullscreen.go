package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// fullScreen knows the programs that draw a full screen although there is no
// terminal, and then wait for keys that cannot come: vim reads them from
// standard error once standard input has ended, watch never ends by itself.
// Those that look for a terminal first (top, less, nano, emacs, fzf) say so and
// end; they are none of these. Each value tells whether a call of it does
// without a screen.
var fullScreen = map[string]func(args []string) bool{
	"vim": vimWithoutScreen, "vi": vimWithoutScreen, "view": vimWithoutScreen, "vimdiff": vimWithoutScreen,
	"rvim": vimWithoutScreen, "rview": vimWithoutScreen, "nvim": vimWithoutScreen,
	"vim.basic": vimWithoutScreen, "vim.tiny": vimWithoutScreen, "vim.nox": vimWithoutScreen,
	"watch": watchWithoutScreen,
}

// vimQuits matches an ex command that ends the editor: +q, -c 'wqa!', -c ':w | x'.
var vimQuits = regexp.MustCompile(`(^|[|:])\s*(w?q(a|all|uit)?|wqall|qu|quita(ll)?|xa?|xit|xall|exit?|cq(uit)?)!?\s*$`)

func vimWithoutScreen(args []string) bool {
	for i, arg := range args {
		switch arg {
		case "--":
			return false
		case "-h", "-?", "--help", "--version", "--headless", "--not-a-term", "--api-info", "--embed", "-l":
			return true
		case "-c":
			if i+1 < len(args) && vimQuits.MatchString(args[i+1]) {
				return true
			}
			continue
		}
		command, isCommand := strings.CutPrefix(arg, "+")
		if !isCommand {
			command, isCommand = strings.CutPrefix(arg, "-c")
		}
		if isCommand && vimQuits.MatchString(command) {
			return true
		}
		// -e and -E are ex: it reads commands from standard input, to its end.
		if len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.ContainsAny(arg[1:2], "eE") {
			return true
		}
	}
	return false
}

func watchWithoutScreen(args []string) bool {
	return len(args) == 0 || slices.ContainsFunc(args[:1], func(arg string) bool {
		return arg == "-h" || arg == "--help" || arg == "-v" || arg == "--version"
	})
}

// drawsFullScreen returns the program that a call would start only to hang, also
// behind env, sudo, sh -c and the like; "" is none.
func drawsFullScreen(args []string) string {
	for _, call := range seenThrough(args, 0) {
		name := baseName(call[0])
		if without, known := fullScreen[name]; known && !without(call[1:]) {
			return name
		}
	}
	return ""
}

// FullScreen returns the first program that a script is certain to name and that
// draws a full screen without a terminal, and then hangs: vim, watch and their
// like, not in a form that ends by itself (vim -es, vim +q, --version). What
// stands in a condition, a loop or a function is passed over, as is what is only
// known when it runs. "" is none, also for what cannot be parsed.
func FullScreen(script string) string {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return ""
	}
	found := ""
	var look func(stmts ...*syntax.Stmt)
	look = func(stmts ...*syntax.Stmt) {
		for _, st := range stmts {
			if st == nil || found != "" {
				return
			}
			switch c := st.Cmd.(type) {
			case *syntax.CallExpr:
				words := make([]string, len(c.Args))
				for i, w := range c.Args {
					words[i] = literalWord(w)
				}
				if len(words) > 0 && words[0] != "" {
					found = drawsFullScreen(words)
				}
			case *syntax.BinaryCmd:
				look(c.X, c.Y)
			case *syntax.Block:
				look(c.Stmts...)
			case *syntax.Subshell:
				look(c.Stmts...)
			case *syntax.TimeClause:
				look(c.Stmt)
			}
		}
	}
	look(file.Stmts...)
	return found
}
