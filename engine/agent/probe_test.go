package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/cell/proc"
)

// program writes a stand-in for an agent's binary that counts how often it was
// asked.
func program(t *testing.T, help, version string) (path, count string) {
	t.Helper()
	dir := t.TempDir()
	path, count = filepath.Join(dir, "agent"), filepath.Join(dir, "count")
	text := "#!/bin/sh\necho \"$1\" >>" + count + "\ncase $1 in --help) cat <<'END'\n" + help + "\nEND\n;; --version) echo '" + version + "' ;; esac\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, count
}

func TestBinariesAreAskedOnceAndOldOnesGetNoFlagThatTheyDoNotKnow(t *testing.T) {
	path, count := program(t, "--help\n--session-id <uuid>\n--settings <file>\n--permission-mode", "1.0.7 (Claude Code)")
	set := New(Options{Runner: proc.New(), Environ: []string{"PATH=/usr/bin:/bin"}})
	claude, _ := set.Lookup("claude")
	in := newInput(t, false)
	in.Program = path
	for range 2 {
		plan, err := claude.Plan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(plan.Argv, "--system-prompt-snapshot") {
			t.Errorf("an old claude gets a flag that it refuses: %q", plan.Argv)
		}
		if !slices.ContainsFunc(plan.Notes, func(n string) bool { return strings.Contains(n, "records its prompt once") }) {
			t.Errorf("nothing says what an old claude cannot do: %q", plan.Notes)
		}
	}
	if got := claude.Probe(t.Context(), path); got.Version != "1.0.7" || !slices.Equal(got.Missing, []string{"--system-prompt-snapshot"}) {
		t.Errorf("probed %+v", got)
	}
	if asked, _ := os.ReadFile(count); string(asked) != "--help\n--version\n" {
		t.Errorf("it was asked %q, want each once", asked)
	}
}

func TestAnotherCodexGetsNoHooksThatItWouldStopAt(t *testing.T) {
	help := "--help\n--no-daemon\n--no-alt-screen\n--dangerously-bypass-hook-trust"
	for version, hooks := range map[string]bool{"codex-cli 0.171.0": true, "codex-cli 0.180.1": false} {
		path, _ := program(t, help, version)
		set := New(Options{Runner: proc.New(), Environ: []string{"PATH=/usr/bin:/bin"}})
		codex, _ := set.Lookup("codex")
		in := newInput(t, false)
		in.Program = path
		plan, err := codex.Plan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(plan.Argv, " "), "hooks.Stop="); got != hooks {
			t.Errorf("%s: hooks passed: %v, want %v", version, got, hooks)
		}
		if slices.Contains(plan.Argv, "--dangerously-bypass-hook-trust") {
			t.Errorf("on the host the repository's hooks would be trusted too: %q", plan.Argv)
		}
	}
}

func TestABinaryThatDoesNotAnswerGetsTheVerifiedFlags(t *testing.T) {
	path, _ := program(t, "", "")
	set := New(Options{Runner: proc.New(), Environ: []string{"PATH=/usr/bin:/bin"}})
	claude, _ := set.Lookup("claude")
	in := newInput(t, false)
	in.Program = path
	plan, err := claude.Plan(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(plan.Argv, "--session-id") {
		t.Errorf("got %q", plan.Argv)
	}
}
