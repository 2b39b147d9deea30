package agent

import (
	"slices"
	"strings"
	"testing"
)

// value is what a plan sets a variable to; ok is whether it does.
func value(env []string, name string) (value string, ok bool) {
	for _, pair := range env {
		if v, found := strings.CutPrefix(pair, name+"="); found {
			value, ok = v, true
		}
	}
	return value, ok
}

func TestWhatAParentAgentsSessionLeftIsDropped(t *testing.T) {
	for _, name := range New(Options{}).Names() {
		for _, headless := range []bool{false, true} {
			if name == "grok" && headless || name == "shell" && headless {
				continue // they have no turns without a pane
			}
			in := newInput(t, false)
			in.Headless = headless
			plan := mustPlan(t, name, in)
			for _, left := range []string{"CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ID", "CODEX_SANDBOX", "GEMINI_CLI", "OPENCODE", "OPENCODE_SERVER_PASSWORD"} {
				if !slices.Contains(plan.Drop, left) {
					t.Errorf("%s, headless %v, inherits %s", name, headless, left)
				}
			}
			for _, own := range []string{"ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK", "CODEX_HOME", "GEMINI_API_KEY", "GEMINI_CLI_HOME", "OPENCODE_CONFIG_CONTENT"} {
				if slices.Contains(plan.Drop, own) {
					t.Errorf("%s loses the user's own %s", name, own)
				}
			}
		}
	}
}

func TestAgentsAreQuietWhereTheUserHasSaidNothing(t *testing.T) {
	for name, switches := range map[string][]string{
		"claude":   {"DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"},
		"opencode": {"OPENCODE_DISABLE_AUTOUPDATE"},
	} {
		for _, variable := range switches {
			in := newInput(t, false)
			if got, _ := value(mustPlan(t, name, in).Env, variable); got != "1" {
				t.Errorf("%s: %s=%q", name, variable, got)
			}
			in.Env = []string{variable + "=0"}
			if got, ok := value(mustPlan(t, name, in).Env, variable); ok {
				t.Errorf("%s: the user's %s=0 was overruled by %q", name, variable, got)
			}
		}
	}
	// codex and gemini have switches in their settings.
	in := newInput(t, false)
	argv := strings.Join(mustPlan(t, "codex", in).Argv, " ")
	for _, quiet := range []string{"check_for_update_on_startup=false", "analytics.enabled=false", "--no-daemon"} {
		if !strings.Contains(argv, quiet) {
			t.Errorf("codex is not told %s: %s", quiet, argv)
		}
	}
	mustWrite(t, in.Home+"/.codex/config.toml", "check_for_update_on_startup = true\n[analytics]\nenabled = true\n")
	if argv = strings.Join(mustPlan(t, "codex", in).Argv, " "); strings.Contains(argv, "check_for_update") || strings.Contains(argv, "analytics") {
		t.Errorf("the user's own settings of codex are overruled: %s", argv)
	}
	settings := func() (s struct {
		General struct{ EnableAutoUpdate *bool }
		Privacy struct{ UsageStatisticsEnabled *bool }
	}) {
		mustPlan(t, "gemini", in)
		if _, err := readJSON(in.Config.WorkspaceHome, SlotDir(in.Config)+"/gemini/.gemini/settings.json", &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := settings(); s.General.EnableAutoUpdate == nil || *s.General.EnableAutoUpdate || *s.Privacy.UsageStatisticsEnabled {
		t.Errorf("gemini's settings are %+v", s)
	}
	mustWrite(t, in.Home+"/.gemini/settings.json", `{"general":{"enableAutoUpdate":true},"privacy":{"usageStatisticsEnabled":true}}`)
	if s := settings(); !*s.General.EnableAutoUpdate || !*s.Privacy.UsageStatisticsEnabled {
		t.Errorf("the user's own settings of gemini are overruled: %+v", s)
	}
}

func TestLoopbackNeedsNoProxy(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want string // "" is left alone
	}{
		{nil, "127.0.0.1,localhost"},
		{[]string{"NO_PROXY=corp.example"}, "corp.example,127.0.0.1,localhost"},
		{[]string{"NO_PROXY=localhost"}, "localhost,127.0.0.1"},
		{[]string{"NO_PROXY=127.0.0.1, localhost"}, ""},
		{[]string{"NO_PROXY=*"}, ""},
		{[]string{"NO_PROXY=old", "NO_PROXY=localhost,127.0.0.1"}, ""},
	} {
		for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
			in := newInput(t, false)
			in.Env = c.set
			env := mustPlan(t, name, in).Env
			if got, _ := value(env, "NO_PROXY"); got != c.want {
				t.Errorf("%s with %q: NO_PROXY=%q, want %q", name, c.set, got, c.want)
			}
			if got, _ := value(env, "no_proxy"); got != "127.0.0.1,localhost" {
				t.Errorf("%s with %q: no_proxy=%q", name, c.set, got)
			}
		}
	}
}

func TestReviewIsReadOnlyByEachAgentsOwnFlags(t *testing.T) {
	set := New(Options{Custom: []Custom{{Name: "fable", Command: []string{"fable"}}}})
	for name, flags := range map[string]string{
		"claude": "--permission-mode plan --tools Read,Grep,Glob --strict-mcp-config --setting-sources user",
		"codex":  `--sandbox read-only -c approval_policy="never" -c project_doc_max_bytes=0`,
		"gemini": "--approval-mode plan",
		"grok":   "--deny *",
	} {
		for _, headless := range []bool{false, true} {
			in := newInput(t, false)
			in.Review, in.Headless = true, headless
			if argv := strings.Join(mustPlan(t, name, in).Argv, " "); !strings.Contains(argv, flags) {
				t.Errorf("%s, headless %v: %s", name, headless, argv)
			}
			in.Review = false
			if argv := strings.Join(mustPlan(t, name, in).Argv, " "); strings.Contains(argv, flags) {
				t.Errorf("%s is read-only without a review: %s", name, argv)
			}
		}
		if a, _ := set.Lookup(name); a.ReadOnly() == "" {
			t.Errorf("%s is asked for no review", name)
		}
	}
	for _, name := range []string{"shell", "fable"} {
		if a, _ := set.Lookup(name); a.ReadOnly() != "" {
			t.Errorf("%s is asked for a review that may write", name)
		}
	}
}
