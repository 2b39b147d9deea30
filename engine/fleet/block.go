package fleet

import (
	"path/filepath"
	"strings"

	"cellmux/shellctx/shell"
)

// Blocks makes the rules of the block list of config.toml, with their names for
// messages. Each line is a program that `!` refuses to run, or a program with
// the arguments and options that make a call of it one to refuse: "git push
// --force" is met by "git -C /src push origin --force" too
// (shell.ArgumentsBlocker). Empty lines make no rule.
func Blocks(lines []string) (rules []shell.BlockFunc, names []string) {
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		program := filepath.Base(words[0]) // every call is asked about by its base name, too
		var args, flags []string
		for _, word := range words[1:] {
			if len(word) > 1 && word[0] == '-' {
				flags = append(flags, word)
			} else {
				args = append(args, word)
			}
		}
		rule := shell.CommandsBlocker([]string{program})
		if len(words) > 1 {
			rule = shell.ArgumentsBlocker(program, args, flags)
		}
		rules = append(rules, rule)
		names = append(names, strings.Join(words, " "))
	}
	return rules, names
}
