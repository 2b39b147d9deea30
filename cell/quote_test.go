package cell

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"":               "''",
		"az_@%+=:,./-09": "az_@%+=:,./-09",
		"a b":            "'a b'",
		"~":              "'~'",
		"a\nb":           "'a\nb'",
		"it's":           `'it'\''s'`,
		"'":              `''\'''`,
		"é":              "'é'",
		"\xff":           "'\xff'",
		"$(id)":          "'$(id)'",
	} {
		if got := ShellQuote(in); got != want {
			t.Errorf("ShellQuote(%q) = %s, want %s", in, got, want)
		}
	}
	if got := ShellJoin(nil); got != "" {
		t.Errorf("ShellJoin(nil) = %q", got)
	}
}

// shellWords asks a real shell which words it makes of a line.
func shellWords(t *testing.T, shell, line string) []string {
	t.Helper()
	out, err := exec.Command(shell, "-c", `for w in `+line+`; do printf '%s\0' "$w"; done`).Output()
	if err != nil {
		t.Fatalf("%s -c on %q: %v", shell, line, err)
	}
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func FuzzShellJoinAgainstRealShells(f *testing.F) {
	for _, seed := range []string{"", "a", "a b\x01c", "it's", "$(id) `id` \\", "~\x01-n\x01*?[a]", "é\xff\n\r\t", "a=b\x01{x,y}\x01!!\x01#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, joined string) {
		words := strings.Split(strings.ReplaceAll(joined, "\x00", ""), "\x01")
		for _, shell := range []string{"sh", "bash"} {
			if got := shellWords(t, shell, ShellJoin(words)); !slices.Equal(got, words) {
				t.Errorf("%s makes %q of %s, want %q", shell, got, ShellJoin(words), words)
			}
		}
	})
}
