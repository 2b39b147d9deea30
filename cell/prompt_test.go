package cell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellmux/cell/cfg"
)

func promptFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prompt.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPromptTiers(t *testing.T) {
	file := promptFile(t, "from file\n")
	empty := promptFile(t, "")
	llm := func(base, appended string) cfg.CellConfig {
		return cfg.CellConfig{LLM: cfg.LLMSection{SystemPrompt: base, AppendSystemPrompt: appended}}
	}
	conflict := cfg.CellConfig{LLM: cfg.LLMSection{SystemPrompt: "a", SystemPromptFile: "/nowhere", AppendSystemPrompt: "a", AppendSystemPromptFile: "/nowhere"}}
	for _, tt := range []struct {
		name         string
		opts         ResolveOpts
		base, append string
	}{
		{"nothing is configured", ResolveOpts{}, "", ""},
		{"flag file", ResolveOpts{FlagFile: file, AppendFlagFile: file}, "from file\n", "from file\n"},
		{"flags over environment", ResolveOpts{FlagInline: "flag", EnvInline: "env", AppendFlagInline: "flag+", AppendEnvInline: "env+"}, "flag", "flag+"},
		{"environment over [llm]", ResolveOpts{EnvInline: "env", AppendEnvFile: file, CellCfg: llm("toml", "toml+")}, "env", "from file\n"},
		{"[llm] is last", ResolveOpts{CellCfg: llm("toml", "toml+")}, "toml", "toml+"},
		{"append never reads the base", ResolveOpts{FlagInline: "a", EnvInline: "b", CellCfg: llm("toml", "")}, "a", ""},
		{"base never reads the append", ResolveOpts{AppendFlagInline: "a", AppendEnvInline: "b", CellCfg: llm("", "toml+")}, "", "a"},
		{"a higher tier hides a conflict below", ResolveOpts{FlagInline: "flag", EnvFile: "x", EnvInline: "y", AppendFlagInline: "flag+", CellCfg: conflict}, "flag", "flag+"},
		{"an empty file wins its tier and configures nothing", ResolveOpts{FlagFile: empty, EnvInline: "env", CellCfg: llm("toml", "")}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base, err := ResolveSystemPrompt(tt.opts)
			if err != nil || base != tt.base {
				t.Errorf("base: %q, %v; want %q", base, err, tt.base)
			}
			appended, err := ResolveAppendPrompt(tt.opts)
			if err != nil || appended != tt.append {
				t.Errorf("append: %q, %v; want %q", appended, err, tt.append)
			}
		})
	}
}

func TestPromptConflictNamesBothSourcesAndReadsNothing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	conflict := cfg.CellConfig{LLM: cfg.LLMSection{SystemPrompt: "a", SystemPromptFile: missing, AppendSystemPrompt: "a", AppendSystemPromptFile: missing}}
	base, appended := ResolveSystemPrompt, ResolveAppendPrompt
	for _, tt := range []struct {
		resolve func(ResolveOpts) (string, error)
		opts    ResolveOpts
		want    string
	}{
		{base, ResolveOpts{FlagInline: "a", FlagFile: missing}, "--system-prompt and --system-prompt-file are mutually exclusive"},
		{base, ResolveOpts{EnvInline: "a", EnvFile: missing}, "DEVCELL_SYSTEM_PROMPT and DEVCELL_SYSTEM_PROMPT_FILE are mutually exclusive"},
		{base, ResolveOpts{CellCfg: conflict}, "[llm].system_prompt and [llm].system_prompt_file are mutually exclusive"},
		{appended, ResolveOpts{AppendFlagInline: "a", AppendFlagFile: missing}, "--append-system-prompt and --append-system-prompt-file are mutually exclusive"},
		{appended, ResolveOpts{AppendEnvInline: "a", AppendEnvFile: missing}, "DEVCELL_APPEND_SYSTEM_PROMPT and DEVCELL_APPEND_SYSTEM_PROMPT_FILE are mutually exclusive"},
		{appended, ResolveOpts{CellCfg: conflict}, "[llm].append_system_prompt and [llm].append_system_prompt_file are mutually exclusive"},
	} {
		_, err := tt.resolve(tt.opts)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), missing) {
			t.Errorf("a conflict must be found before any file is read: %v", err)
		}
	}
}

func TestPromptFileErrorNamesSourceAndPath(t *testing.T) {
	_, err := ResolveSystemPrompt(ResolveOpts{EnvFile: "/nowhere/at/all.md"})
	if err == nil || !strings.Contains(err.Error(), "DEVCELL_SYSTEM_PROMPT_FILE") || !strings.Contains(err.Error(), "/nowhere/at/all.md") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyTheConfiguredPathStartsAtTheProject(t *testing.T) {
	file := promptFile(t, "here")
	dir, name := filepath.Split(file)
	opts := ResolveOpts{CfgBaseDir: dir, CellCfg: cfg.CellConfig{LLM: cfg.LLMSection{SystemPromptFile: name}}}
	if got, err := ResolveSystemPrompt(opts); err != nil || got != "here" {
		t.Errorf("[llm]: %q, %v", got, err)
	}
	if _, err := ResolveSystemPrompt(ResolveOpts{CfgBaseDir: dir, FlagFile: name}); err == nil {
		t.Error("a flag's path must start at the current directory")
	}
	t.Chdir(dir)
	if got, err := ResolveSystemPrompt(ResolveOpts{CfgBaseDir: "/elsewhere", EnvFile: name}); err != nil || got != "here" {
		t.Errorf("environment: %q, %v", got, err)
	}
}
