package cli

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"
)

// promptFlags adds the flag tier of the two prompts (spec/cell.txt) to a command
// that starts agents. They hold for that start alone.
func (c *commands) promptFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.prompts.FlagInline, "system-prompt", "", "replace the agent's own system prompt by this text")
	flags.StringVar(&c.prompts.FlagFile, "system-prompt-file", "", "the same, from a file")
	flags.StringVar(&c.prompts.AppendFlagInline, "append-system-prompt", "", "add this text behind the description of the cell")
	flags.StringVar(&c.prompts.AppendFlagFile, "append-system-prompt-file", "", "the same, from a file")
}

// errPromptsTooLate says that prompts were given for an agent that runs.
var errPromptsTooLate = errors.New("it runs already, and an agent gets its prompts when it starts: stop it first")

// promptsGiven says whether a prompt flag was set, and lets its files start at the
// working directory. A text and a file of one prompt together are wrong use.
func (c *commands) promptsGiven() (bool, error) {
	p := &c.prompts
	for _, layer := range []struct {
		name   string
		inline string
		file   *string
	}{
		{"system-prompt", p.FlagInline, &p.FlagFile},
		{"append-system-prompt", p.AppendFlagInline, &p.AppendFlagFile},
	} {
		if layer.inline != "" && *layer.file != "" {
			return false, usagef("--%s and --%s-file are mutually exclusive: set one of them", layer.name, layer.name)
		}
		if *layer.file != "" && c.Dir != "" && !filepath.IsAbs(*layer.file) {
			*layer.file = filepath.Join(c.Dir, *layer.file)
		}
	}
	return p.FlagInline != "" || p.FlagFile != "" || p.AppendFlagInline != "" || p.AppendFlagFile != "", nil
}
