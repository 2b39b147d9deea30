package shell

import (
	"slices"
	"strings"
)

// briefBuiltins end at once whatever their arguments are.
var briefBuiltins = []string{":", "true", "false", "echo", "printf", "pwd", "cd", "export", "unset", "exit", "type"}

// Brief tells whether a line is one call of a builtin that ends at once and
// starts nothing: it needs no goroutine that could be left behind. It looks at
// the text alone; in doubt a line is not brief.
func Brief(line string) bool {
	if len(line) > 4096 || strings.ContainsAny(line, "$`|&;<>()\n*?[~\\") {
		return false
	}
	words := strings.Fields(line)
	return len(words) > 0 && slices.Contains(briefBuiltins, words[0])
}
