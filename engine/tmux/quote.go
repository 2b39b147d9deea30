package tmux

import (
	"fmt"
	"strings"
)

// command is one tmux command with its arguments, not yet quoted.
type command []string

// line writes commands as one line for control mode or for if-shell. The whole
// line runs within one turn of the server, and stops at the first error.
func line(cmds ...command) string {
	var b strings.Builder
	for i, c := range cmds {
		if i > 0 {
			b.WriteString(" ; ")
		}
		for j, arg := range c {
			if j > 0 {
				b.WriteByte(' ')
			}
			quote(&b, arg)
		}
	}
	return b.String()
}

// quote writes one argument so that tmux's parser (tmux(1), PARSING SYNTAX)
// yields exactly arg, on one line: within single quotes nothing is special,
// within double quotes an octal escape names any byte.
func quote(b *strings.Builder, arg string) {
	if arg == "" {
		b.WriteString("''")
		return
	}
	special := func(c byte) bool { return c < 0x20 || c == 0x7f || c == '\'' }
	for i := 0; i < len(arg); {
		j := i
		for j < len(arg) && !special(arg[j]) {
			j++
		}
		if j > i {
			b.WriteByte('\'')
			b.WriteString(arg[i:j])
			b.WriteByte('\'')
			i = j
			continue
		}
		b.WriteByte('"')
		for ; i < len(arg) && special(arg[i]); i++ {
			if arg[i] == '\'' {
				b.WriteByte('\'')
			} else {
				fmt.Fprintf(b, "\\%03o", arg[i])
			}
		}
		b.WriteByte('"')
	}
}

// argv writes commands as arguments of the tmux program, where an argument that
// ends in ';' ends a command unless the ';' is escaped.
func argv(cmds ...command) []string {
	var args []string
	for i, c := range cmds {
		if i > 0 {
			args = append(args, ";")
		}
		for _, arg := range c {
			if strings.HasSuffix(arg, ";") {
				arg = arg[:len(arg)-1] + `\;`
			}
			args = append(args, arg)
		}
	}
	return args
}
