package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/cell/state"
	"cellmux/engine/agent"
	"cellmux/engine/tmux"
)

// found is the finding about a subject; every finding that is not good must
// have a next step.
func found(t *testing.T, check Check, subject string) Finding {
	t.Helper()
	for _, f := range check(t.Context()) {
		if f.Level != Good && f.Next == "" {
			t.Errorf("%s: %s has no next step", f.Subject, f.Detail)
		}
		if f.Subject == subject {
			return f
		}
	}
	t.Fatalf("nothing was found about %s", subject)
	return Finding{}
}

func TestDoctorOnTheTerminal(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".terminfo", "m"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".terminfo", "m", "my-term-256color"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env     map[string]string
		subject string
		want    Level
	}{
		{map[string]string{}, "terminal", Problem},
		{map[string]string{"TERM": "dumb"}, "terminal", Problem},
		{map[string]string{"TERM": "no-such-terminal"}, "terminal", Problem},
		{map[string]string{"TERM": "../../etc/passwd"}, "terminal", Problem},
		{map[string]string{"TERM": "my-term-256color"}, "terminal", Good},
		{map[string]string{"TERM": "my-term-256color"}, "colours", Good},
		{map[string]string{"TERM": "vt220"}, "colours", Notice},
		{map[string]string{"TERM": "vt220", "NO_COLOR": "1"}, "colours", Good},
		{map[string]string{"LANG": "C"}, "locale", Notice},
		{map[string]string{"LANG": "C", "LC_ALL": "de_DE.UTF-8"}, "locale", Good},
		{map[string]string{"TERM_PROGRAM": "vscode"}, "keyboard", Notice},
	} {
		got := found(t, CheckTerminal(func(name string) string { return c.env[name] }, home), c.subject)
		if got.Level != c.want {
			t.Errorf("%v: %+v, want %s", c.env, got, c.want)
		}
	}
}

func fakeTmux(t *testing.T, answer string) *tmux.Server {
	t.Helper()
	dir := t.TempDir()
	if answer != "" {
		if err := os.WriteFile(filepath.Join(dir, "tmux"), []byte("#!/bin/sh\n"+answer), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return tmux.New(tmux.Options{Runner: proc.New(), RuntimeDir: t.TempDir(), Env: []string{"PATH=" + dir + ":/nowhere"}})
}

func TestDoctorOnTmux(t *testing.T) {
	if got := found(t, CheckTmux(fakeTmux(t, "")), "tmux"); got.Level != Problem || !strings.Contains(got.Next, "install") {
		t.Errorf("no tmux: %+v", got)
	}
	if got := found(t, CheckTmux(fakeTmux(t, "echo tmux 2.9a")), "tmux"); got.Level != Problem || !strings.Contains(got.Next, "upgrade") {
		t.Errorf("an old tmux: %+v", got)
	}
	fresh := fakeTmux(t, `[ "$1" = -V ] && { echo tmux 3.4; exit; }; echo "no server running on /tmp/x" >&2; exit 1`)
	if got := found(t, CheckTmux(fresh), "tmux server"); got.Level != Good {
		t.Errorf("no server: %+v", got)
	}
}

// agentProgram writes a stand-in for an agent's program.
func agentProgram(t *testing.T, dir, name, help, version string) {
	t.Helper()
	text := "#!/bin/sh\ncase $1 in --help) cat <<'END'\n" + help + "\nEND\n;; --version) echo '" + version + "' ;; esac\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorOnAgents(t *testing.T) {
	const claude = "--help --session-id --settings --system-prompt-snapshot --permission-mode"
	for _, c := range []struct {
		name          string
		help, version string // of the claude that is found
		level         Level
		detail        []string
	}{
		{"verified", claude, "2.1.332 (Claude Code)", Good, []string{"version 2.1.332, verified"}},
		{"newer", claude, "2.10.0 (Claude Code)", Good, []string{"2.10.0, newer than the verified 2.1.332"}},
		{"older", claude, "2.1.9 (Claude Code)", Good, []string{"2.1.9, older than the verified 2.1.332"}},
		{"older, without a flag", "--help --session-id --settings --permission-mode", "1.0.7", Notice,
			[]string{"1.0.7, older than", "it does not know --system-prompt-snapshot", "changed prompts arrive in new conversations alone"}},
		{"no version", claude, "hello", Good, nil},
		{"no flags", "usage: none", "2.1.332", Notice, []string{"does not answer", "printed no flags"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			agentProgram(t, dir, "claude", c.help, c.version)
			check := CheckAgents(agent.New(agent.Options{Runner: proc.New(), Environ: []string{"PATH=/usr/bin:/bin"}}), func(program string) (string, error) {
				path := filepath.Join(dir, program)
				_, err := os.Stat(path)
				return path, err
			})
			got := found(t, check, "agent claude")
			if got.Level != c.level || !strings.Contains(got.Detail, filepath.Join(dir, "claude")) {
				t.Errorf("%+v", got)
			}
			for _, want := range c.detail {
				if !strings.Contains(got.Detail, want) {
					t.Errorf("%q does not say %q", got.Detail, want)
				}
			}
			if got := found(t, check, "agent codex"); got.Level != Notice || !strings.Contains(got.Next, "npm install") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestDoctorWaitsForNoAgentBeyondItsDeadline(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"claude", "codex"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	agentProgram(t, dir, "gemini", "--help --session-id --resume --skip-trust --approval-mode", "0.61.0")
	agents := agent.New(agent.Options{Runner: proc.New(), Environ: []string{"PATH=/usr/bin:/bin"}})
	check := CheckAgents(agents, func(program string) (string, error) {
		path := filepath.Join(dir, program)
		_, err := os.Stat(path)
		return path, err
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	findings := map[string]Finding{}
	for _, f := range check(ctx) {
		findings[f.Subject] = f
	}
	for _, name := range []string{"agent claude", "agent codex"} {
		if f := findings[name]; f.Level != Notice || !strings.Contains(f.Detail, "does not answer") {
			t.Errorf("%+v", f)
		}
	}
	// One that hangs hides no other: they are asked at the same time.
	if f := findings["agent gemini"]; f.Level != Good || !strings.Contains(f.Detail, "0.61.0, verified") {
		t.Errorf("%+v", f)
	}
}

func TestDoctorOnTheDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cellmux.db")
	if got := found(t, CheckDatabase(path), "database"); got.Level != Good {
		t.Errorf("none yet: %+v", got)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("doctor made a database")
	}
	db, _, err := state.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	if got := found(t, CheckDatabase(path), "database"); got.Level != Good {
		t.Errorf("a good one: %+v", got)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("this is no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := found(t, CheckDatabase(path), "database"); got.Level != Problem || !strings.Contains(got.Detail, "lies in") {
		t.Errorf("a damaged one: %+v", got)
	}
}

func TestDoctorOnTheDiskLooksAtTheFirstDirectoryThatExists(t *testing.T) {
	if got := found(t, CheckDisk(filepath.Join(t.TempDir(), "not", "yet")), "disk"); !strings.Contains(got.Detail, "MiB are free") {
		t.Errorf("%+v", got)
	}
}

func TestDoctorTellsEveryFaultOfAFile(t *testing.T) {
	check := CheckFiles("config.toml", func() error { return errors.New("c.toml:1:2: a\nc.toml:3:4: b") })
	if got := check(context.Background()); len(got) != 2 || got[1].Level != Problem || !strings.HasPrefix(got[1].Detail, "c.toml:3:4") {
		t.Errorf("%+v", got)
	}
}
