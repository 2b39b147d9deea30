package agenttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Variable names the directory that .ci/agents has filled: its bin holds the
// four programs.
const Variable = "CELLMUX_TEST_AGENTS"

// Names are the agents that can be run for real.
var Names = []string{"claude", "codex", "gemini", "opencode"}

// Bin returns the directory of the real programs, or skips the test.
func Bin(t testing.TB, agent string) string {
	t.Helper()
	dir := os.Getenv(Variable)
	if dir == "" {
		t.Skipf("needs the real %s: set %s to what .ci/agents prints", agent, Variable)
	}
	bin := filepath.Join(dir, "bin")
	if _, err := os.Stat(filepath.Join(bin, agent)); err != nil {
		t.Skipf("needs the real %s: %v", agent, err)
	}
	return bin
}

// Key is the API key of scratch homes.
const Key = "mock-key-for-tests-0123456789"

// Home makes home what a user of the agent has who is logged in at the mock, has
// been welcomed and trusts the project directory. It returns the variables that
// such a user has set.
func Home(t testing.TB, agent, home, url, project string) []string {
	t.Helper()
	write := func(name string, v any) {
		t.Helper()
		text, ok := v.(string)
		if !ok {
			data, err := json.MarshalIndent(v, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
		}
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	switch agent {
	case "claude":
		write(".claude.json", object{
			"hasCompletedOnboarding": true,
			"theme":                  "dark",
			"customApiKeyResponses":  object{"approved": []string{Key[len(Key)-20:]}, "rejected": []string{}},
			"projects":               object{project: object{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
		})
		// Its own default, auto, lets a model judge in place of the user, and is
		// offered in a dialog to those who chose another.
		write(".claude/settings.json", object{"permissions": object{"disableAutoMode": "disable"}})
		return []string{"ANTHROPIC_API_KEY=" + Key, "ANTHROPIC_BASE_URL=" + url, "CLAUDE_CODE_MAX_RETRIES=1"}
	case "codex":
		write(".codex/config.toml", `
model = "gpt-5.5"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "`+url+`/v1"
env_key = "CODEX_MOCK_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
[projects."`+project+`"]
trust_level = "trusted"
`)
		return []string{"CODEX_MOCK_KEY=" + Key}
	case "gemini":
		write(".gemini/settings.json", object{
			"security": object{"auth": object{"selectedType": "gemini-api-key"}},
			"model":    object{"name": "gemini-2.5-flash"},
		})
		write(".gemini/trustedFolders.json", object{project: "TRUST_FOLDER"})
		return []string{"GEMINI_API_KEY=" + Key, "GOOGLE_GEMINI_BASE_URL=" + url}
	case "opencode":
		write(".config/opencode/opencode.json", object{
			"provider": object{"mock": object{
				"npm": "@ai-sdk/openai-compatible", "name": "mock",
				"options": object{"baseURL": url + "/v1", "apiKey": Key},
				"models":  object{"mock-model": object{"name": "mock-model"}},
			}},
			"model": "mock/mock-model", "small_model": "mock/mock-model",
		})
		return []string{"OPENCODE_DISABLE_MODELS_FETCH=1"}
	}
	t.Fatalf("no scratch home for %s", agent)
	return nil
}
