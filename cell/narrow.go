package cell

import (
	"path"
	"runtime"
	"slices"
	"strings"
)

// baseNames are the 27 host variables that every known agent gets
// (spec/isolation-and-forge.txt). Names are exact and case-sensitive.
var baseNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "ALL_PROXY", "all_proxy",
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
	"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
}

// agentPrefixes are the prefixes of a provider's own variables, by agent.
var agentPrefixes = map[string][]string{
	"claude": {"ANTHROPIC_", "CLAUDE_"},
	"codex":  {"OPENAI_", "CODEX_"},
	"gemini": {"GEMINI_", "GOOGLE_"},
	"grok":   {"XAI_", "GROK_"},
	"opencode": {"OPENCODE_", "OPENROUTER_", "ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_",
		"GEMINI_", "GOOGLE_", "XAI_", "GROK_"},
}

// openCodeReview denies OpenCode everything, its built-in agents included: a
// repository's own opencode.json beats a bare top-level deny, and may name
// another default agent.
const openCodeReview = `{"permission":{"*":"deny"},"agent":{"build":{"permission":{"*":"deny"}},"plan":{"permission":{"*":"deny"}}},"default_agent":"build"}`

// KnownAgent returns the agent that a command line starts, when it is one whose
// needs are known: the last path segment of its first word, exactly one of
// claude, codex, gemini, grok and opencode. "env claude", "claude.exe" and
// "claude-next" are commands of the user's own.
func KnownAgent(command string) (name string, known bool) {
	words := strings.Fields(command)
	if len(words) == 0 {
		return "", false
	}
	name = path.Base(words[0])
	_, known = agentPrefixes[name]
	if !known {
		return "", false
	}
	return name, true
}

// NarrowInput is what Narrow decides from.
type NarrowInput struct {
	Environ []string // of the host, KEY=VALUE
	Command string   // the agent's name or command line
	Pass    []string // names that the user lets in besides; a final * matches any ending
	Review  bool     // read-only: OpenCode is denied every permission
	GOOS    string   // "" is this one
}

// Decision says why one variable went in or stayed out.
type Decision struct {
	Name   string
	Kept   bool
	Reason string // who let it in, or why it stayed out; one phrase, for cellmux env --why
}

// Narrow returns the part of the host's environment that an agent may see, in
// the host's order, and a decision for each of its variables, sorted by name.
//
// A known agent gets the base names, its provider's own prefixes and the user's
// pass-list; everything else (cloud keys, tokens, database URLs) stays out. A
// command of the user's own inherits everything, since its needs are unknowable,
// and so does every process on Windows, where a narrow environment can break the
// start itself.
func Narrow(in NarrowInput) (env []string, decisions []Decision) {
	rule := narrowRule(in)
	for _, pair := range in.Environ {
		name, _, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			continue
		}
		d := rule(name)
		d.Name = name
		if d.Kept {
			env = append(env, pair)
		}
		decisions = append(decisions, d)
	}
	if agent, _ := KnownAgent(in.Command); in.Review && agent == "opencode" && !isSet(in.Environ, "OPENCODE_CONFIG_CONTENT") {
		env = append(env, "OPENCODE_CONFIG_CONTENT="+openCodeReview)
		decisions = append(decisions, Decision{"OPENCODE_CONFIG_CONTENT", true, "set by cellmux: a review may change nothing"})
	}
	slices.SortStableFunc(decisions, func(a, b Decision) int { return strings.Compare(a.Name, b.Name) })
	return env, decisions
}

// narrowRule returns the decision of in for a name.
func narrowRule(in NarrowInput) func(name string) Decision {
	goos := firstSet(in.GOOS, runtime.GOOS)
	agent, known := KnownAgent(in.Command)
	switch {
	case goos == "windows":
		return func(string) Decision { return Decision{Kept: true, Reason: "everything is inherited on Windows"} }
	case !known:
		return func(string) Decision {
			return Decision{Kept: true, Reason: "a command of your own inherits everything"}
		}
	}
	prefixes := slices.Clone(agentPrefixes[agent])
	reasons := make(map[string]string)
	var names []string
	widen := func(variable string, add ...string) {
		if agent != "claude" || lookup(in.Environ, variable) == "" {
			return
		}
		for _, prefix := range add {
			prefixes = append(prefixes, prefix)
			reasons[prefix] = variable + " is set"
		}
	}
	widen("CLAUDE_CODE_USE_BEDROCK", "AWS_")
	widen("CLAUDE_CODE_USE_VERTEX", "GOOGLE_", "GCP_")
	if agent == "claude" && lookup(in.Environ, "CLAUDE_CODE_USE_VERTEX") != "" {
		names = append(names, "CLOUD_ML_REGION")
	}
	return func(name string) Decision {
		if slices.Contains(baseNames, name) {
			return Decision{Kept: true, Reason: "base: every agent gets it"}
		}
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				return Decision{Kept: true, Reason: agent + ": " + firstSet(reasons[prefix], "its own prefix "+prefix)}
			}
		}
		if slices.Contains(names, name) {
			return Decision{Kept: true, Reason: agent + ": CLAUDE_CODE_USE_VERTEX is set"}
		}
		for _, pass := range in.Pass {
			if start, wild := strings.CutSuffix(pass, "*"); name == pass || wild && strings.HasPrefix(name, start) {
				return Decision{Kept: true, Reason: "your pass-list: " + pass}
			}
		}
		return Decision{Reason: agent + " does not need it"}
	}
}

// lookup returns the last value of name in environ, the one that a process sees
// when env(1) or docker set it twice.
func lookup(environ []string, name string) string {
	for _, pair := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

func isSet(environ []string, name string) bool {
	return slices.ContainsFunc(environ, func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
}
