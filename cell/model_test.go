package cell

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"cellmux/cell/cfg"
)

func TestModelForEachAgent(t *testing.T) {
	own := map[string]cfg.ProviderSection{"lab": {BaseURL: "http://lab:8080/v1/", Models: []string{"a"}}}
	for _, tt := range []struct {
		name                string
		in                  ModelInput
		env, secrets, flags string
		config              string
		notes               int
	}{
		{"nothing is asked", ModelInput{Agent: "claude"}, "", "", "", "null", 0},
		{"the default provider", ModelInput{Agent: "codex", LLM: cfg.LLMSection{Provider: "default"}}, "", "", "", "null", 0},
		{"claude, a model", ModelInput{Agent: "claude", LLM: cfg.LLMSection{Model: "opus"}}, "ANTHROPIC_MODEL=opus", "", "", "null", 0},
		{"claude, ollama in a guest", ModelInput{Agent: "claude", Isolated: true, LLM: cfg.LLMSection{Provider: "ollama", Model: "ollama/qwen3"}},
			"ANTHROPIC_BASE_URL=http://host.docker.internal:11434 ANTHROPIC_API_KEY= ANTHROPIC_AUTH_TOKEN=ollama CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY=1 ANTHROPIC_MODEL=qwen3", "", "", "null", 0},
		{"claude, openrouter", ModelInput{Agent: "claude", Key: "sk", LLM: cfg.LLMSection{Provider: "openrouter", Model: "anthropic/opus"}},
			"ANTHROPIC_BASE_URL=https://openrouter.ai/api ANTHROPIC_API_KEY= ANTHROPIC_MODEL=anthropic/opus", "ANTHROPIC_AUTH_TOKEN=sk", "", "null", 0},
		{"claude, a provider of one's own", ModelInput{Agent: "claude", LLM: cfg.LLMSection{Provider: "lab", Providers: own}},
			"ANTHROPIC_BASE_URL=http://lab:8080 ANTHROPIC_API_KEY=", "", "", "null", 0},
		{"a provider without an address", ModelInput{Agent: "claude", LLM: cfg.LLMSection{Provider: "lab", Model: "x"}}, "", "", "", "null", 1},
		{"codex, a model", ModelInput{Agent: "codex", LLM: cfg.LLMSection{Model: "gpt"}}, "", "", "--model gpt", "null", 0},
		{"codex, ollama on the host", ModelInput{Agent: "codex", LLM: cfg.LLMSection{Provider: "ollama", Model: "q"}},
			"CODEX_OSS_BASE_URL=http://127.0.0.1:11434/v1", "", "--oss --local-provider ollama --model q", "null", 0},
		{"codex, openrouter", ModelInput{Agent: "codex", Key: "sk", LLM: cfg.LLMSection{Provider: "openrouter"}}, "", "",
			`-c model_provider="openrouter" -c model_providers.openrouter={name="openrouter",base_url="https://openrouter.ai/api/v1",wire_api="responses",env_key="OPENROUTER_API_KEY"}`, "null", 0},
		{"gemini, a model", ModelInput{Agent: "gemini", LLM: cfg.LLMSection{Model: "pro"}}, "", "", "--model pro", "null", 0},
		{"gemini, another provider", ModelInput{Agent: "gemini", LLM: cfg.LLMSection{Provider: "ollama", Model: "q"}}, "", "", "", "null", 1},
		{"opencode, openrouter", ModelInput{Agent: "opencode", LLM: cfg.LLMSection{Provider: "openrouter", Model: "x/y"}}, "", "", "", `{"model":"openrouter/x/y"}`, 0},
		{"opencode, a provider of one's own", ModelInput{Agent: "opencode", LLM: cfg.LLMSection{Provider: "lab", Model: "lab/b", Providers: own}}, "", "", "",
			`{"model":"lab/b","provider":{"lab":{"models":{"a":{},"b":{}},"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"http://lab:8080/v1"}}}}`, 0},
		{"opencode, a model without provider", ModelInput{Agent: "opencode", LLM: cfg.LLMSection{Model: "x"}}, "", "", "", `{}`, 1},
		{"a shell", ModelInput{Agent: "shell", LLM: cfg.LLMSection{Model: "x"}}, "", "", "", "null", 0},
	} {
		m := ModelFor(tt.in)
		config, _ := json.Marshal(m.Config)
		if got := strings.Join(m.Env, " "); got != tt.env {
			t.Errorf("%s: env %s, want %s", tt.name, got, tt.env)
		}
		if got := strings.Join(m.Secrets, " "); got != tt.secrets {
			t.Errorf("%s: secrets %s", tt.name, got)
		}
		if got := strings.Join(m.Flags, " "); got != tt.flags {
			t.Errorf("%s: flags %s, want %s", tt.name, got, tt.flags)
		}
		if string(config) != tt.config || len(m.Notes) != tt.notes {
			t.Errorf("%s: config %s, notes %q", tt.name, config, m.Notes)
		}
		if slices.ContainsFunc(m.Flags, func(f string) bool { return tt.in.Key != "" && strings.Contains(f, tt.in.Key) }) {
			t.Errorf("%s: the key is in argv", tt.name)
		}
	}
}

func TestCodexProviderIsTOML(t *testing.T) {
	own := map[string]cfg.ProviderSection{"my-lab": {BaseURL: `http://x/"\`}}
	flags := ModelFor(ModelInput{Agent: "codex", LLM: cfg.LLMSection{Provider: "my-lab", Providers: own}}).Flags
	var parsed struct {
		ModelProviders map[string]map[string]string `toml:"model_providers"`
	}
	if _, err := toml.Decode(flags[3], &parsed); err != nil || parsed.ModelProviders["my-lab"]["base_url"] != `http://x/"\/v1` {
		t.Errorf("%q: %+v, %v", flags[3], parsed, err)
	}
	bad := map[string]cfg.ProviderSection{"a.b": {BaseURL: "u"}}
	if m := ModelFor(ModelInput{Agent: "codex", LLM: cfg.LLMSection{Provider: "a.b", Providers: bad}}); len(m.Flags) != 0 || len(m.Notes) != 1 {
		t.Errorf("%+v", m)
	}
}

func TestMergeConfigKeepsOtherProviders(t *testing.T) {
	config := map[string]any{"provider": map[string]any{"mine": 1}, "theme": "x"}
	ModelFor(ModelInput{Agent: "opencode", LLM: cfg.LLMSection{Provider: "ollama", Model: "q"}}).MergeConfig(config)
	providers := config["provider"].(map[string]any)
	if len(providers) != 2 || config["model"] != "ollama/q" || config["theme"] != "x" {
		t.Errorf("%v", config)
	}
}
