package cell

import (
	"fmt"

	"cellmux/cell/cfg"
)

// maxArgument is the longest argument that Linux takes, in bytes: MAX_ARG_STRLEN
// less its final NUL (execve(2)).
const maxArgument = 128<<10 - 1

// ClaudePromptFlags writes both prompts and returns the flags that point claude
// at them: --system-prompt-file where a base prompt is configured (it discards
// claude's own, which an unconfigured cell must keep), and always
// --append-system-prompt-file. claude refuses a text and a file flag of one layer
// together, so only the file forms are used.
//
// On resume claude sends the overlay of the first launch again, unless it is
// started with --system-prompt-snapshot off. opts.SnapshotFlag says whether the
// installed claude knows that flag; one that does not would refuse to start.
func ClaudePromptFlags(c cfg.Config, cellCfg cfg.CellConfig, opts ResolveOpts) ([]string, error) {
	base, err := WriteBasePrompt(c, opts)
	if err != nil {
		return nil, err
	}
	overlay, err := WriteOverlayPrompt(c, cellCfg, opts)
	if err != nil {
		return nil, err
	}
	var flags []string
	if base != "" {
		flags = append(flags, "--system-prompt-file", base)
	}
	flags = append(flags, "--append-system-prompt-file", overlay)
	if opts.SnapshotFlag {
		flags = append(flags, "--system-prompt-snapshot", "off")
	}
	return flags, nil
}

// CodexPromptFlags returns the overlay as -c developer_instructions="…", the only
// form that codex has; the value is a TOML basic string. A prompt over the
// kernel's limit for one argument is an error: a part of it would be worse than
// none. A base prompt has no place in codex and is not looked at.
func CodexPromptFlags(c cfg.Config, cellCfg cfg.CellConfig, opts ResolveOpts) ([]string, error) {
	text, err := AssembleOverlayPrompt(c, cellCfg, opts)
	if err != nil {
		return nil, err
	}
	argument := "developer_instructions=" + cfg.QuoteTOML(text)
	if len(argument) > maxArgument {
		return nil, fmt.Errorf("the prompt for codex takes %d bytes as an argument and the kernel allows %d: shorten the append prompt", len(argument), maxArgument)
	}
	return []string{"-c", argument}, nil
}
