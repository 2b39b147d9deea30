package cli

import (
	"slices"
	"strings"
	"testing"

	"cellmux/engine/fleet"
)

func TestCommitShowsTheDiffAndAsksWhereSomebodyCanAnswer(t *testing.T) {
	shown := fleet.Proposal{Branch: "wip", Tree: "feed", Files: 1, Added: 1, Diff: "+new\x1b]0;title\x07\n"}
	terminal := func(answer string) func(*Options) {
		return func(o *Options) { o.Terminal, o.Stdin = true, strings.NewReader(answer) }
	}
	for _, c := range []struct {
		name    string
		change  func(*Options)
		args    []string
		code    int
		message string // that was committed; "" nothing was
		diff    bool
	}{
		{"nobody can answer", nil, nil, ExitRefused, "", true},
		{"nobody can answer, with a message", nil, []string{"-m", "m"}, ExitRefused, "", true},
		{"--yes alone", nil, []string{"--yes"}, ExitUsage, "", true},
		{"--yes and a message", nil, []string{"--yes", "-m", "m"}, ExitOK, "m", true},
		{"JSON", nil, []string{"--yes", "-m", "m", "--json"}, ExitOK, "m", false},
		{"no", terminal("n\n"), []string{"-m", "m"}, ExitRefused, "", true},
		{"yes", terminal("y\n"), []string{"-m", "m"}, ExitOK, "m", true},
		{"a message on the terminal", terminal("Say why \n"), nil, ExitOK, "Say why", true},
		{"no message on the terminal", terminal("\n"), nil, ExitRefused, "", true},
		{"the terminal is gone", terminal(""), nil, ExitRefused, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{snap: apiCell("/src/api"), proposal: shown}
			r := call(t, w, c.change, append([]string{"commit", "api"}, c.args...)...)
			if r.code != c.code {
				t.Errorf("exit code %d, want %d: %s", r.code, c.code, r.stderr)
			}
			if strings.Contains(r.stdout, "+new\n") != c.diff || strings.Contains(r.stdout, "\x1b") {
				t.Errorf("standard output %q", r.stdout)
			}
			want := `commit api feed "` + c.message + `"`
			if committed := slices.Contains(w.asked, want); committed != (c.message != "") || !committed && len(w.asked) > 0 {
				t.Errorf("asked %q", w.asked)
			}
			if c.name == "JSON" && !strings.Contains(r.stdout, `"commit": "c0ffee"`) {
				t.Errorf("standard output %q", r.stdout)
			}
		})
	}
}
