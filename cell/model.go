package cell

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cellmux/cell/cfg"
)

// The providers that [llm] provider names without a section of their own.
const (
	providerDefault    = "default" // the agent's own
	providerOllama     = "ollama"
	providerOpenRouter = "openrouter"
)

// ModelInput is what ModelFor decides from.
type ModelInput struct {
	Agent    string // name of its declaration
	LLM      cfg.LLMSection
	Isolated bool   // the host's loopback is somewhere else
	Key      string // OPENROUTER_API_KEY, where the provider needs it
}

// Model is how an agent is told which model to use and where. Everything in it is
// empty where [llm] says nothing.
type Model struct {
	Env      []string       // KEY=VALUE, above the guest's environment
	Secrets  []string       // the same, for values that must not be shown
	Flags    []string       // before any subcommand of the agent
	Config   map[string]any // of an agent that is configured by JSON
	Provider string         // the agent's own word for where the model is; "" is its default
	Notes    []string       // what [llm] asks for and this agent cannot do
}

// ModelFor says how [llm] reaches an agent: claude by environment, codex and
// gemini by flags, OpenCode by its configuration. An agent that cannot use the
// provider keeps its own, and a note says so. A model may be written with its
// provider in front ("ollama/qwen3"), which selects nothing.
func ModelFor(in ModelInput) Model {
	var m Model
	provider := in.LLM.Provider
	if provider == providerDefault {
		provider = ""
	}
	if provider == "" && in.LLM.Model == "" {
		return m
	}
	name := in.LLM.Model
	if provider != "" {
		name = strings.TrimPrefix(name, provider+"/")
	}
	own, declared := in.LLM.Providers[provider]
	if provider != "" && provider != providerOllama && provider != providerOpenRouter && (!declared || own.BaseURL == "") {
		m.note("[llm] provider %q is unknown: write its base_url under [llm.providers.%s]", provider, provider)
		return m
	}
	address := in.address(provider, own)
	switch in.Agent {
	case "claude":
		m.claude(provider, name, address, in.Key)
	case "codex":
		m.codex(provider, name, address)
	case "gemini":
		if provider != "" {
			m.note("gemini knows no other provider: [llm] provider has no effect on it")
		} else {
			m.Flags = []string{"--model", name}
		}
	case "opencode":
		m.openCode(provider, name, address, own.Models)
	}
	return m
}

func (m *Model) note(format string, args ...any) {
	m.Notes = append(m.Notes, fmt.Sprintf(format, args...))
}

// address is where a provider listens, without a final /v1; "" is the agent's own
// choice.
func (in ModelInput) address(provider string, own cfg.ProviderSection) string {
	switch {
	case own.BaseURL != "":
		return strings.TrimSuffix(strings.TrimRight(own.BaseURL, "/"), "/v1")
	case provider == providerOllama && in.Isolated:
		return "http://host.docker.internal:11434"
	case provider == providerOllama:
		return "http://127.0.0.1:11434"
	case provider == providerOpenRouter:
		return "https://openrouter.ai/api"
	}
	return ""
}

// claude takes a gateway by environment. The host's own key must not be sent to
// another provider, so it is emptied.
func (m *Model) claude(provider, name, address, key string) {
	if provider != "" {
		m.Env = append(m.Env, "ANTHROPIC_BASE_URL="+address, "ANTHROPIC_API_KEY=")
	}
	switch provider {
	case "":
	case providerOllama:
		m.Env = append(m.Env, "ANTHROPIC_AUTH_TOKEN=ollama", "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY=1")
	case providerOpenRouter:
		m.Secrets = append(m.Secrets, "ANTHROPIC_AUTH_TOKEN="+key)
	}
	if name != "" {
		m.Env = append(m.Env, "ANTHROPIC_MODEL="+name)
	}
}

// codexProviderName is what codex takes for a key in a dotted -c.
var codexProviderName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (m *Model) codex(provider, name, address string) {
	switch provider {
	case "":
	case providerOllama:
		m.Flags = append(m.Flags, "--oss", "--local-provider", "ollama")
		m.Env = append(m.Env, "CODEX_OSS_BASE_URL="+address+"/v1")
		m.Provider = provider
	default:
		if !codexProviderName.MatchString(provider) {
			m.note("codex takes letters, digits, _ and - in a provider's name: [llm] provider has no effect on it")
			return
		}
		definition := fmt.Sprintf(`{name=%s,base_url=%s,wire_api="responses"`, cfg.QuoteTOML(provider), cfg.QuoteTOML(address+"/v1"))
		if provider == providerOpenRouter {
			definition += `,env_key="` + openRouterKey + `"`
		}
		m.Flags = append(m.Flags, "-c", "model_provider="+cfg.QuoteTOML(provider), "-c", "model_providers."+provider+"="+definition+"}")
		m.Provider = provider
	}
	if name != "" {
		m.Flags = append(m.Flags, "--model", name)
	}
}

// openCode knows OpenRouter itself; other providers are declared for it.
func (m *Model) openCode(provider, name, address string, models []string) {
	m.Config = make(map[string]any)
	m.Provider = provider
	if provider != "" && provider != providerOpenRouter {
		offered := make(map[string]any)
		for _, model := range append(slices.Clone(models), name) {
			if model != "" {
				offered[model] = map[string]any{}
			}
		}
		m.Config["provider"] = map[string]any{provider: map[string]any{
			"npm":     "@ai-sdk/openai-compatible",
			"options": map[string]any{"baseURL": address + "/v1"},
			"models":  offered,
		}}
	}
	switch {
	case name != "" && provider != "":
		m.Config["model"] = provider + "/" + name
	case strings.Contains(name, "/"):
		m.Config["model"] = name
	case name != "":
		m.note("opencode needs the provider of a model: write [llm] model as PROVIDER/MODEL")
	}
}

// MergeConfig puts the configuration of a model into an agent's own, whose other
// providers stay.
func (m Model) MergeConfig(config map[string]any) {
	for key, value := range m.Config {
		if added, ok := value.(map[string]any); ok {
			if have, ok := config[key].(map[string]any); ok {
				maps.Copy(have, added)
				continue
			}
		}
		config[key] = value
	}
}
