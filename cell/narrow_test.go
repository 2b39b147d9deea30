package cell

import (
	"slices"
	"strings"
	"testing"
)

func names(env []string) []string {
	var names []string
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	return names
}

func TestTheBaseNamesAreTwentySeven(t *testing.T) {
	if unique := slices.Compact(slices.Sorted(slices.Values(baseNames))); len(baseNames) != 27 || len(unique) != 27 {
		t.Errorf("%d names, %d unique", len(baseNames), len(unique))
	}
	var host []string
	for _, name := range baseNames {
		host = append(host, name+"=x")
	}
	outsiders := []string{"SSH_AUTH_SOCK=x", "JAVA_HOME=x", "XDG_STATE_HOME=x", "path=x", "Http_Proxy=x", "AWS_SECRET_ACCESS_KEY=x", "DATABASE_URL=x"}
	env, _ := Narrow(NarrowInput{Environ: append(outsiders, host...), Command: "claude", GOOS: "linux"})
	if !slices.Equal(env, host) {
		t.Errorf("got %q", names(env))
	}
}

func TestPrefixesByAgent(t *testing.T) {
	host := []string{"ANTHROPIC_API_KEY=1", "CLAUDE_X=1", "OPENAI_API_KEY=1", "CODEX_HOME=1", "GEMINI_API_KEY=1", "GOOGLE_API_KEY=1",
		"XAI_API_KEY=1", "GROK_X=1", "OPENCODE_X=1", "OPENROUTER_API_KEY=1", "ANTHROPIC=1", "MISTRAL_API_KEY=1"}
	for agent, want := range map[string]string{
		"claude":   "ANTHROPIC_API_KEY CLAUDE_X",
		"codex":    "OPENAI_API_KEY CODEX_HOME",
		"gemini":   "GEMINI_API_KEY GOOGLE_API_KEY",
		"grok":     "XAI_API_KEY GROK_X",
		"opencode": "ANTHROPIC_API_KEY CLAUDE_X OPENAI_API_KEY CODEX_HOME GEMINI_API_KEY GOOGLE_API_KEY XAI_API_KEY GROK_X OPENCODE_X OPENROUTER_API_KEY",
	} {
		env, _ := Narrow(NarrowInput{Environ: host, Command: agent, GOOS: "linux"})
		if got := strings.Join(names(env), " "); got != want {
			t.Errorf("%s gets %s, want %s", agent, got, want)
		}
	}
}

func TestBedrockAndVertexWidenClaudeAlone(t *testing.T) {
	cloud := []string{"AWS_PROFILE=1", "GOOGLE_X=1", "GCP_X=1", "CLOUD_ML_REGION=1"}
	for _, tt := range []struct{ command, set, want string }{
		{"claude", "CLAUDE_CODE_USE_BEDROCK=0", "CLAUDE_CODE_USE_BEDROCK AWS_PROFILE"},
		{"claude", "CLAUDE_CODE_USE_BEDROCK=", "CLAUDE_CODE_USE_BEDROCK"},
		{"codex exec", "CLAUDE_CODE_USE_BEDROCK=1", ""},
		{"opencode", "CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CODE_USE_BEDROCK GOOGLE_X"},
		{"claude", "CLAUDE_CODE_USE_VERTEX=false", "CLAUDE_CODE_USE_VERTEX GOOGLE_X GCP_X CLOUD_ML_REGION"},
		{"gemini", "CLAUDE_CODE_USE_VERTEX=1", "GOOGLE_X"},
	} {
		env, _ := Narrow(NarrowInput{Environ: append([]string{tt.set}, cloud...), Command: tt.command, GOOS: "linux"})
		if got := strings.Join(names(env), " "); got != tt.want {
			t.Errorf("%s with %s gets %q, want %q", tt.command, tt.set, got, tt.want)
		}
	}
}

func TestKnownAgent(t *testing.T) {
	for command, want := range map[string]string{
		"claude": "claude", "  /opt/bin/claude -p": "claude", "codex\texec": "codex", "grok": "grok",
		"": "", "env claude": "", "claude-next": "", "claude.exe": "", "npx claude": "", "'claude'": "", "opencode-x": "", "shell": "", "Claude": "",
	} {
		if got, known := KnownAgent(command); got != want || known != (want != "") {
			t.Errorf("KnownAgent(%q) = %q, %v; want %q", command, got, known, want)
		}
	}
}

func TestACommandOfOnesOwnAndWindowsInheritEverythingAndSaySo(t *testing.T) {
	host := []string{"AWS_SECRET_ACCESS_KEY=1", "PATH=/bin"}
	for _, in := range []NarrowInput{{Command: "my-agent", GOOS: "linux"}, {Command: "claude", GOOS: "windows"}} {
		in.Environ = host
		env, decisions := Narrow(in)
		if !slices.Equal(env, host) {
			t.Errorf("%+v gives %q", in, env)
		}
		for _, d := range decisions {
			if !d.Kept || !strings.Contains(d.Reason, "everything") && !strings.Contains(d.Reason, "Windows") {
				t.Errorf("%+v: %+v", in, d)
			}
		}
	}
}

func TestThePassListLetsNamesIn(t *testing.T) {
	host := []string{"SSH_AUTH_SOCK=/s", "JAVA_HOME=/j", "MY_A=1", "MY_B=2", "OTHER=3"}
	env, decisions := Narrow(NarrowInput{Environ: host, Command: "claude", Pass: []string{"SSH_AUTH_SOCK", "MY_*"}, GOOS: "linux"})
	if got := strings.Join(names(env), " "); got != "SSH_AUTH_SOCK MY_A MY_B" {
		t.Errorf("got %s", got)
	}
	want := []Decision{
		{"JAVA_HOME", false, "claude does not need it"},
		{"MY_A", true, "your pass-list: MY_*"},
		{"MY_B", true, "your pass-list: MY_*"},
		{"OTHER", false, "claude does not need it"},
		{"SSH_AUTH_SOCK", true, "your pass-list: SSH_AUTH_SOCK"},
	}
	if !slices.Equal(decisions, want) {
		t.Errorf("got %+v", decisions)
	}
}

func TestReviewDeniesOpenCodeEverythingUnlessTheUserSetIt(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   NarrowInput
		want string
	}{
		{"unset", NarrowInput{Command: "opencode run", GOOS: "linux"}, openCodeReview},
		{"set but empty stays", NarrowInput{Command: "opencode", GOOS: "linux", Environ: []string{"OPENCODE_CONFIG_CONTENT="}}, ""},
		{"set stays", NarrowInput{Command: "opencode", GOOS: "linux", Environ: []string{"OPENCODE_CONFIG_CONTENT={}"}}, "{}"},
		{"on Windows too", NarrowInput{Command: "opencode", GOOS: "windows"}, openCodeReview},
		{"not another agent's", NarrowInput{Command: "claude", GOOS: "linux"}, ""},
		{"not a command of one's own", NarrowInput{Command: "opencode-x", GOOS: "linux"}, ""},
	} {
		tt.in.Review = true
		env, _ := Narrow(tt.in)
		if got := lookup(env, "OPENCODE_CONFIG_CONTENT"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		tt.in.Review = false
		if env, _ := Narrow(tt.in); !slices.Equal(env, tt.in.Environ) && len(env) > len(tt.in.Environ) {
			t.Errorf("%s: without review %q", tt.name, env)
		}
	}
}
