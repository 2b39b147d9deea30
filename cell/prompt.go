package cell

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cellmux/cell/cfg"
)

// maxPromptSize bounds a prompt file, in bytes. It is far above what any model
// takes; it keeps a mistaken path (a log, a device) from being read whole.
const maxPromptSize = 8 << 20

// ResolveOpts bundles every source of system prompts (spec/cell.txt). Callers
// fill in what they have: flags on open and send, the environment everywhere.
type ResolveOpts struct {
	// --system-prompt-file and --system-prompt
	FlagFile, FlagInline string
	// DEVCELL_SYSTEM_PROMPT_FILE and DEVCELL_SYSTEM_PROMPT
	EnvFile, EnvInline string
	// --append-system-prompt-file and --append-system-prompt
	AppendFlagFile, AppendFlagInline string
	// DEVCELL_APPEND_SYSTEM_PROMPT_FILE and DEVCELL_APPEND_SYSTEM_PROMPT
	AppendEnvFile, AppendEnvInline string
	// CellCfg supplies the four [llm] prompt keys.
	CellCfg cfg.CellConfig
	// CfgBaseDir is where a relative [llm] path starts; "" is the current
	// directory, like for the other tiers.
	CfgBaseDir string
	// SnapshotFlag says that the claude which will read the flags knows
	// --system-prompt-snapshot (see ClaudePromptFlags).
	SnapshotFlag bool
}

// PromptEnv fills in the environment tiers of o.
func (o ResolveOpts) PromptEnv(getenv func(string) string) ResolveOpts {
	o.EnvFile, o.EnvInline = getenv("DEVCELL_SYSTEM_PROMPT_FILE"), getenv("DEVCELL_SYSTEM_PROMPT")
	o.AppendEnvFile, o.AppendEnvInline = getenv("DEVCELL_APPEND_SYSTEM_PROMPT_FILE"), getenv("DEVCELL_APPEND_SYSTEM_PROMPT")
	return o
}

// promptTier is one place where a prompt may come from, as text or as a file.
type promptTier struct {
	inlineName, fileName string
	inline, file         string
	base                 string // directory that a relative file starts at
}

// ResolveSystemPrompt returns the base prompt, the one that replaces the
// agent's own: flags over environment over [llm]. The first tier that sets
// anything wins; text and file together in that tier are an error before any
// file is read, and conflicts below it stay hidden. "" means that no base
// prompt is configured. An empty file wins its tier and means the same.
func ResolveSystemPrompt(opts ResolveOpts) (string, error) {
	llm := opts.CellCfg.LLM
	return resolvePrompt(
		promptTier{"--system-prompt", "--system-prompt-file", opts.FlagInline, opts.FlagFile, ""},
		promptTier{"DEVCELL_SYSTEM_PROMPT", "DEVCELL_SYSTEM_PROMPT_FILE", opts.EnvInline, opts.EnvFile, ""},
		promptTier{"[llm].system_prompt", "[llm].system_prompt_file", llm.SystemPrompt, llm.SystemPromptFile, opts.CfgBaseDir},
	)
}

// ResolveAppendPrompt returns the prompt that stacks on top of whichever base is
// in effect: the tiers of ResolveSystemPrompt over the append sources alone.
func ResolveAppendPrompt(opts ResolveOpts) (string, error) {
	llm := opts.CellCfg.LLM
	return resolvePrompt(
		promptTier{"--append-system-prompt", "--append-system-prompt-file", opts.AppendFlagInline, opts.AppendFlagFile, ""},
		promptTier{"DEVCELL_APPEND_SYSTEM_PROMPT", "DEVCELL_APPEND_SYSTEM_PROMPT_FILE", opts.AppendEnvInline, opts.AppendEnvFile, ""},
		promptTier{"[llm].append_system_prompt", "[llm].append_system_prompt_file", llm.AppendSystemPrompt, llm.AppendSystemPromptFile, opts.CfgBaseDir},
	)
}

func resolvePrompt(tiers ...promptTier) (string, error) {
	for _, t := range tiers {
		switch {
		case t.inline != "" && t.file != "":
			return "", fmt.Errorf("%s and %s are mutually exclusive: set one of them", t.inlineName, t.fileName)
		case t.file != "":
			return t.read()
		case t.inline != "":
			return t.inline, nil
		}
	}
	return "", nil
}

func (t promptTier) read() (string, error) {
	path := t.file
	if t.base != "" && !filepath.IsAbs(path) {
		path = filepath.Join(t.base, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", t.fileName, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPromptSize+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", t.fileName, err)
	}
	if len(text) > maxPromptSize {
		return "", fmt.Errorf("read %s: %s holds more than %d MiB, which no prompt does", t.fileName, path, maxPromptSize>>20)
	}
	return string(text), nil
}
