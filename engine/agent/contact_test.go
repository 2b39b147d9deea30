package agent

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFirstContactIsWhatTheAgentWouldAsk(t *testing.T) {
	const (
		trust = "whether you trust the directory"
		key   = "whether to use the API key of your environment"
	)
	for _, test := range []struct {
		name, agent string
		files       map[string]string
		env         map[string]string
		want        []string
		file        string // that Yes writes
	}{
		{"claude, a fresh home", "claude", nil, nil, []string{"its welcome and its colours", trust}, ".claude.json"},
		{"claude, welcomed", "claude", map[string]string{".claude.json": `{"hasCompletedOnboarding":true}`}, nil, []string{trust}, ".claude.json"},
		{"claude, trusted", "claude", map[string]string{".claude.json": `{"hasCompletedOnboarding":true,"projects":{"/home/dev/proj":{"hasTrustDialogAccepted":true}}}`}, nil, nil, ""},
		{"claude, a trusted parent", "claude", map[string]string{".claude.json": `{"hasCompletedOnboarding":true,"projects":{"/home/dev":{"hasTrustDialogAccepted":true}}}`}, nil, nil, ""},
		{"claude, a name with the same beginning", "claude", map[string]string{".claude.json": `{"hasCompletedOnboarding":true,"projects":{"/home/dev/pro":{"hasTrustDialogAccepted":true}}}`}, nil, []string{trust}, ".claude.json"},
		{"claude, a key", "claude", map[string]string{".claude.json": `{"hasCompletedOnboarding":true,"projects":{"/home":{"hasTrustDialogAccepted":true}}}`},
			map[string]string{"ANTHROPIC_API_KEY": "sk-ant-0123456789-abcdefghijklmnopqrst"}, []string{key}, ".claude.json"},
		{"claude, a rejected key", "claude", map[string]string{".claude.json": `{"hasCompletedOnboarding":true,"projects":{"/home":{"hasTrustDialogAccepted":true}},"customApiKeyResponses":{"rejected":["abcdefghijklmnopqrst"]}}`},
			map[string]string{"ANTHROPIC_API_KEY": "sk-ant-0123456789-abcdefghijklmnopqrst"}, nil, ""},
		{"claude, a damaged file is its own to tell", "claude", map[string]string{".claude.json": `{"has`}, nil, nil, ""},
		{"claude, a directory of its own", "claude", map[string]string{"conf/.claude.json": `{"hasCompletedOnboarding":true}`}, map[string]string{"CLAUDE_CONFIG_DIR": "HOME/conf"}, []string{trust}, "conf/.claude.json"},
		{"codex, no config", "codex", map[string]string{"proj/.git/HEAD": ""}, nil, []string{trust}, ""},
		{"codex, below a repository", "codex", map[string]string{".git": "gitdir: elsewhere"}, nil, []string{trust}, ""},
		{"codex, no repository", "codex", nil, nil, nil, ""},
		{"codex, trusted", "codex", map[string]string{".codex/config.toml": "[projects.\"HOME/proj\"]\ntrust_level=\"trusted\"\n", "proj/.git": ""}, nil, nil, ""},
		{"codex, not trusted is an answer", "codex", map[string]string{".codex/config.toml": "[projects.\"HOME\"]\ntrust_level=\"untrusted\"\n", "proj/.git": ""}, nil, nil, ""},
		{"gemini, no config", "gemini", nil, nil, []string{trust}, ""},
		{"gemini, trusted", "gemini", map[string]string{".gemini/trustedFolders.json": `{"/home/dev/proj":"TRUST_FOLDER"}`}, nil, nil, ""},
		{"gemini, not trusted is an answer", "gemini", map[string]string{".gemini/trustedFolders.json": `{"/home/dev/proj":"DO_NOT_TRUST"}`}, nil, nil, ""},
		{"gemini, no folder trust", "gemini", map[string]string{".gemini/settings.json": `{"security":{"folderTrust":{"enabled":false}}}`}, nil, nil, ""},
		{"opencode", "opencode", nil, nil, nil, ""},
		{"shell", "shell", nil, nil, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			home, dir := t.TempDir(), "/home/dev/proj"
			for name, text := range test.files {
				mustWrite(t, filepath.Join(home, name), strings.ReplaceAll(text, "HOME", home))
			}
			if test.agent == "codex" {
				dir = filepath.Join(home, "proj")
			}
			a, _ := New(Options{}).Lookup(test.agent)
			got := a.FirstContact(home, dir, func(name string) string { return strings.ReplaceAll(test.env[name], "HOME", home) })
			if !slices.Equal(got.Asks, test.want) {
				t.Errorf("it asks %q, want %q", got.Asks, test.want)
			}
			if want := filepath.Join(home, test.file); test.file != "" && got.File != want {
				t.Errorf("Yes writes %q, want %q", got.File, want)
			}
		})
	}
}

// hostFiles are the user's own settings, as a user may have them.
func hostFiles(t *testing.T, home string) {
	t.Helper()
	for name, text := range map[string]string{
		".claude.json":                     "{\n  \"numStartups\": 12345678901234567890,\n  \"hasCompletedOnboarding\": true,\n  \"projects\": {\n    \"/other\": {\"x\": 1.0}\n  },\n  \"zebra\": [1, 2]\n}\n",
		".claude/settings.json":            `{"permissions":{}}`,
		".codex/config.toml":               "# mine\nmodel = \"x\"\n",
		".gemini/settings.json":            `{ "model": {"name": "x"} }`,
		".gemini/trustedFolders.json":      `{"/other":"TRUST_FOLDER"}`,
		".config/opencode/opencode.json":   `{"model":"x/y"}`,
		".gemini/GEMINI.md":                "mine\n",
		".local/share/opencode/auth.json":  `{}`,
		".config/opencode/AGENTS.md":       "mine\n",
		".codex/AGENTS.md":                 "mine\n",
		".claude/CLAUDE.md":                "mine\n",
		".gemini/google_accounts.json":     `{}`,
		".config/opencode/package.json":    `{}`,
		".codex/auth.json":                 `{}`,
		".claude/.credentials.json":        `{}`,
		".config/devcell/devcell.toml":     "",
		".local/share/opencode/opencode.x": "x",
	} {
		mustWrite(t, filepath.Join(home, name), text)
	}
}

// contentsOf reads every file below a home but for cellmux's own folder.
func contentsOf(t *testing.T, home string) map[string]string {
	t.Helper()
	contents := map[string]string{}
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".devcell" {
				return fs.SkipDir
			}
			return err
		}
		data, err := os.ReadFile(path)
		contents[strings.TrimPrefix(path, home+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

func TestNoFileOfTheUsersOwnIsChangedWithoutAsking(t *testing.T) {
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		for _, trusted := range []bool{false, true} {
			in := newInput(t, false)
			in.Trusted = trusted
			in.Env = []string{"ANTHROPIC_API_KEY=sk-ant-0123456789-abcdefghijklmnopqrst"}
			hostFiles(t, in.Home)
			before := contentsOf(t, in.Home)
			plan := mustPlan(t, name, in)
			after := contentsOf(t, in.Home)
			// codex's conversation is no setting of the user's.
			maps.DeleteFunc(after, func(file, _ string) bool { return strings.HasPrefix(file, ".codex/sessions/") })
			for file := range after {
				if before[file] != after[file] && !(trusted && name == "claude" && file == ".claude.json") {
					t.Errorf("%s, trusted %v: %s was changed to %q", name, trusted, file, after[file])
				}
			}
			if len(after) != len(before) {
				t.Errorf("%s, trusted %v: %d files became %d", name, trusted, len(before), len(after))
			}
			// The others are told by flags of this launch, with the user's word alone.
			joined := strings.Join(plan.Argv, " ")
			for agent, flag := range map[string]string{"codex": `projects={"/home/dev/proj"={trust_level="trusted"}}`, "gemini": "--skip-trust"} {
				if agent == name && strings.Contains(joined, flag) != trusted {
					t.Errorf("%s, trusted %v: %q", name, trusted, plan.Argv)
				}
			}
		}
	}
}

func TestAnAnswerOfTheUsersOwnStandsOverTheDirectorys(t *testing.T) {
	for name, file := range map[string][2]string{
		"codex":  {".codex/config.toml", "[projects.\"/home/dev/proj\"]\ntrust_level=\"untrusted\"\n"},
		"gemini": {".gemini/trustedFolders.json", `{"/home/dev/proj":"DO_NOT_TRUST"}`},
	} {
		in := newInput(t, false)
		in.Trusted = true
		mustWrite(t, filepath.Join(in.Home, file[0]), file[1])
		plan := mustPlan(t, name, in)
		if joined := strings.Join(plan.Argv, " "); strings.Contains(joined, "trust_level") || strings.Contains(joined, "--skip-trust") {
			t.Errorf("%s: the user said no to it, and it is told yes: %q", name, plan.Argv)
		}
	}
}

func TestClaudesOwnFileIsAnsweredAndElseLeftAsItIs(t *testing.T) {
	in := newInput(t, false)
	in.Trusted = true
	in.Env = []string{"ANTHROPIC_API_KEY=sk-ant-0123456789-abcdefghijklmnopqrst"}
	hostFiles(t, in.Home)
	// Its user keeps it among his dotfiles.
	dotfile, file := filepath.Join(in.Home, "dotfiles", "claude.json"), filepath.Join(in.Home, ".claude.json")
	if err := os.MkdirAll(filepath.Dir(dotfile), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, dotfile); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dotfile, file); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dotfile, 0o640); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(dotfile)
	mustPlan(t, "claude", in)
	after, err := os.ReadFile(dotfile)
	if err != nil {
		t.Fatal(err)
	}
	// Every line that was there is there, in its order, byte for byte.
	rest := string(after)
	for _, line := range strings.Split(strings.TrimSpace(string(before)), "\n") {
		word := strings.Trim(line, " ,{}")
		at := strings.Index(rest, word)
		if at < 0 {
			t.Fatalf("%q is lost or was moved:\n%s", word, after)
		}
		rest = rest[at+len(word):]
	}
	for _, want := range []string{`"/home/dev/proj"`, `"hasTrustDialogAccepted":true`, `"abcdefghijklmnopqrst"`, "12345678901234567890"} {
		if !strings.Contains(strings.ReplaceAll(string(after), ": ", ":"), want) {
			t.Errorf("%s is not in\n%s", want, after)
		}
	}
	if strings.Contains(string(after), "0123456789-a") {
		t.Error("more of the key than claude itself keeps was written")
	}
	if info, err := os.Lstat(file); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is no link any more: %v", err)
	}
	if info, err := os.Stat(dotfile); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	a, _ := New(Options{}).Lookup("claude")
	left := a.FirstContact(in.Home, in.Config.ProjectDir, func(name string) string {
		return map[string]string{"ANTHROPIC_API_KEY": "sk-ant-0123456789-abcdefghijklmnopqrst"}[name]
	})
	if len(left.Asks) > 0 {
		t.Errorf("it would still ask %q", left.Asks)
	}
	// The next start finds everything answered and writes nothing.
	mustPlan(t, "claude", in)
	if again, _ := os.ReadFile(dotfile); string(again) != string(after) {
		t.Error("it was written again")
	}
}

func TestAClaudeThatWritesItsSettingsIsNotOverwritten(t *testing.T) {
	in := newInput(t, false)
	in.Trusted = true
	hostFiles(t, in.Home)
	file := filepath.Join(in.Home, ".claude.json")
	before, _ := os.ReadFile(file)
	if err := os.Mkdir(file+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	plan := mustPlan(t, "claude", in)
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Error("it was written while claude held its lock")
	}
	if !slices.ContainsFunc(plan.Notes, func(n string) bool { return strings.Contains(n, "another claude writes them") }) {
		t.Errorf("nothing says so: %q", plan.Notes)
	}
	// A lock that a dead one left is none.
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(file+".lock", old, old); err != nil {
		t.Fatal(err)
	}
	mustPlan(t, "claude", in)
	if after, _ := os.ReadFile(file); string(after) == string(before) {
		t.Error("a dead claude's lock keeps the answer out for ever")
	}
}
