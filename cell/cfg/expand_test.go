package cfg

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"cellmux/shellctx/shell"
)

func TestExpandAllExpandsStringsEverywhere(t *testing.T) {
	e := load(t, files(t, `
[mise]
node = "$MAJOR"
`, `
[env]
URL = "http://${HOST_NAME}:${PORT:-80}/"
PLAIN = "it's \\ \"x\""
ESCAPED = "\\$HOST_NAME"
COMMAND = "$(echo out)"
OLD = "${secret:TOKEN}"
[cell]
volumes = ["$DATA/x:/x:ro", "/plain"]
default_command = "claude $X"
[docker]
mem_limit = "${MAJOR}g"
[secrets]
DB = "cmd:echo $X"
[llm]
system_prompt = "say `+"`make`"+` and $X"
`))
	c, err := e.ExpandAll(t.Context(), []string{"HOST_NAME=old", "HOST_NAME=h", "DATA=/data", "MAJOR=8", "TOKEN=t"}, shell.ExpandValue)
	if err != nil {
		t.Fatal(err)
	}
	for key, got := range map[string][2]string{
		"URL":             {c.Env["URL"], "http://h:80/"},
		"PLAIN":           {c.Env["PLAIN"], `it's \ "x"`},
		"ESCAPED":         {c.Env["ESCAPED"], "$HOST_NAME"},
		"COMMAND":         {c.Env["COMMAND"], "out"},
		"OLD":             {c.Env["OLD"], "t"},
		"mise":            {c.Mise["node"], "8"},
		"volumes":         {strings.Join(c.Cell.Volumes, " "), "/data/x:/x:ro /plain:/plain"},
		"mem_limit":       {c.Docker.MemLimit, "8g"},
		"secrets":         {c.Secrets.Sources["DB"], "cmd:echo $X"},
		"prompt":          {c.LLM.SystemPrompt, "say `make` and $X"},
		"default_command": {c.Cell.DefaultCommand, "claude $X"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %q, want %q", key, got[0], got[1])
		}
	}
	if e.Config().Env["URL"] != "http://${HOST_NAME}:${PORT:-80}/" {
		t.Error("expansion changed the configuration that it started from")
	}
}

func TestAllMissingReferencesAreReportedAtOnce(t *testing.T) {
	s := files(t, "[env]\nA = '$UNSET_A'", "[env]\nB = '${UNSET_B} $EMPTY $UNSET_A'\nC = '${UNSET:-}${UNSET-}${UNSET:+x}'\n[cell]\nvolumes = [\n '/x',\n '$UNSET_C:/c']")
	_, err := load(t, s).ExpandAll(t.Context(), []string{"EMPTY="}, shell.ExpandValue)
	var faults *Error
	if !errors.As(err, &faults) {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, p := range faults.Problems {
		_, file, _ := strings.Cut(p.File, "/0")
		got = append(got, strings.TrimLeft(file, "0123456789/")+p.String()[len(p.File):])
	}
	want := []string{
		"project/devcell.toml:7:2: cell.volumes: refers to UNSET_C, which is not set (write ${UNSET_C:-} where it may be empty)",
		"config/devcell.toml:2:1: env.A: refers to UNSET_A, which is not set (write ${UNSET_A:-} where it may be empty)",
		"project/devcell.toml:2:1: env.B: refers to UNSET_B, which is not set (write ${UNSET_B:-} where it may be empty)",
		"project/devcell.toml:2:1: env.B: refers to EMPTY, which is not set (write ${EMPTY:-} where it may be empty)",
		"project/devcell.toml:2:1: env.B: refers to UNSET_A, which is not set (write ${UNSET_A:-} where it may be empty)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAFailedExpansionNamesItsKey(t *testing.T) {
	for text, want := range map[string]string{
		"[env]\nA = '$(exit 3)'":                ":2:1: env.A: ",
		"[env]\nA = '${'":                       ":2:1: env.A: ",
		"[cell]\nvolumes = ['$REL:/x']":         "the host's path must begin with",
		"[cell]\nports = ['$REL']":              "write a number from 1 to 65535",
		"[env]\nA = '${NEEDED:?say which one}'": "say which one",
	} {
		_, err := load(t, files(t, "", text)).ExpandAll(t.Context(), []string{"REL=relative"}, shell.ExpandValue)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestNothingIsExpandedThatWaitsForApproval(t *testing.T) {
	s := files(t, "[env]\nMINE = '$HOME'", hostileProject)
	s.Approvals = nil
	var seen []string
	c, err := load(t, s).ExpandAll(t.Context(), []string{"HOME=/home/ada"}, func(_ context.Context, value string, _ []string) (string, error) {
		seen = append(seen, value)
		return value, nil
	})
	if err != nil || !slices.Equal(seen, []string{"$HOME"}) || len(c.Env) != 1 {
		t.Errorf("expanded %q, env %q, %v", seen, c.Env, err)
	}
}
