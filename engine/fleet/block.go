package fleet

import (
	"path/filepath"
	"slices"
	"strings"

	"cellmux/shellctx/shell"
)

// Blocks makes the block list of config.toml: each line is a program, or a
// program with its first arguments, that `!` refuses to run.
func Blocks(lines []string) []shell.BlockFunc {
	var out []shell.BlockFunc
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		out = append(out, func(args []string) bool {
			if len(args) < len(words) || filepath.Base(args[0]) != filepath.Base(words[0]) {
				return false
			}
			return slices.Equal(args[1:len(words)], words[1:])
		})
	}
	return out
}
