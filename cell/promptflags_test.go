package cell

import (
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"cellmux/cell/cfg"
)

func TestClaudePromptFlags(t *testing.T) {
	const dir = "/home/ada/.devcell/prompts/api-2/"
	overlay := []string{"--append-system-prompt-file", dir + OverlayPromptFile}
	for _, tt := range []struct {
		name string
		opts ResolveOpts
		want []string
	}{
		{"an unconfigured cell keeps claude's own prompt", ResolveOpts{}, overlay},
		{"base first", ResolveOpts{FlagInline: "base"}, append([]string{"--system-prompt-file", dir + BasePromptFile}, overlay...)},
		{"an overlay that changes on resume", ResolveOpts{SnapshotFlag: true}, append(slices.Clone(overlay), "--system-prompt-snapshot", "off")},
	} {
		if got, err := ClaudePromptFlags(dockerCell(t), cfg.CellConfig{}, tt.opts); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	if flags, err := ClaudePromptFlags(dockerCell(t), cfg.CellConfig{}, ResolveOpts{AppendFlagInline: "a", AppendFlagFile: "b"}); err == nil {
		t.Errorf("a conflict gave %q", flags)
	}
}

// developerInstructions parses codex's flag as codex does, as one line of TOML.
func developerInstructions(t *testing.T, argument string) string {
	t.Helper()
	var parsed struct {
		DeveloperInstructions string `toml:"developer_instructions"`
	}
	if _, err := toml.Decode(argument, &parsed); err != nil {
		t.Fatalf("%q is not TOML: %v", argument, err)
	}
	return parsed.DeveloperInstructions
}

func TestCodexPromptComesBackByteForByte(t *testing.T) {
	var all strings.Builder
	for r := rune(1); r <= 0xff; r++ {
		all.WriteRune(r)
	}
	for _, prompt := range []string{all.String(), "👩‍👩‍👧‍👦 ✈️ \U0010FFFF", `a "b" \c`, "line\nline\ttab"} {
		c := dockerCell(t)
		flags, err := CodexPromptFlags(c, cfg.CellConfig{}, ResolveOpts{AppendFlagInline: prompt})
		if err != nil || len(flags) != 2 || flags[0] != "-c" {
			t.Fatalf("%q, %v", flags, err)
		}
		want, _ := AssembleOverlayPrompt(c, cfg.CellConfig{}, ResolveOpts{AppendFlagInline: prompt})
		if got := developerInstructions(t, flags[1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCodexPromptOverTheKernelsLimitIsAnError(t *testing.T) {
	c := dockerCell(t)
	flags, err := CodexPromptFlags(c, cfg.CellConfig{}, ResolveOpts{})
	if err != nil {
		t.Fatal(err)
	}
	room := maxArgument - len(flags[1]) - len(`\n`) - len(`\n`)
	fits := ResolveOpts{AppendFlagInline: strings.Repeat("x", room)}
	if flags, err := CodexPromptFlags(c, cfg.CellConfig{}, fits); err != nil || len(flags[1]) != maxArgument {
		t.Errorf("a prompt that fits: %v", err)
	}
	over := ResolveOpts{AppendFlagInline: strings.Repeat("x", room+1)}
	if _, err := CodexPromptFlags(c, cfg.CellConfig{}, over); err == nil || !strings.Contains(err.Error(), "131071") {
		t.Errorf("one byte more: %v", err)
	}
}

func FuzzTOMLStringComesBack(f *testing.F) {
	f.Add("a\x00b\x7f\"\\\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.ToValidUTF8(s, "\uFFFD")
		// strings.ToValidUTF8 folds a run of bad bytes into one; QuoteTOML does not.
		if want != s {
			want = string([]rune(s))
		}
		if got := developerInstructions(t, "developer_instructions="+cfg.QuoteTOML(s)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
