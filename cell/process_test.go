package cell

import (
	"maps"
	"os/exec"
	"strings"
	"testing"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
)

// What a real process sees is what the last pair of each name says, byte for byte,
// and nothing else.
func TestARealProcessSeesTheEnvironment(t *testing.T) {
	env, err := exec.LookPath("env")
	if err != nil {
		t.Skip("needs env: " + err.Error())
	}
	in := EnvInput{
		WorkspaceName: "main", CellName: "api-0", ProjectDir: "/src/my project",
		Git:  cfg.GitSection{AuthorName: "Ada \"x\" Łovelace"},
		Env:  map[string]string{"TZ": "UTC", "LANG": "", "MULTI": "a\nb='c'\n", "BYTES": "\xff\x01", "DOLLAR": "$HOME `id`", "CELL_NAME": "mine"},
		Mise: map[string]string{"node-version": "22"},
	}
	for name, pairs := range map[string][]string{"guest": GuestEnv(in), "host": HostEnv(in)} {
		result, err := proc.New().Run(t.Context(), proc.Cmd{Argv: []string{env, "-0"}, Dir: t.TempDir(), Env: pairs})
		if err != nil || result.ExitCode != 0 {
			t.Fatalf("%s: %+v, %v", name, result, err)
		}
		want := map[string]string{proc.MarkerVariable: ""}
		for _, pair := range pairs {
			key, value, _ := strings.Cut(pair, "=")
			want[key] = value
		}
		got := make(map[string]string)
		for pair := range strings.SplitSeq(strings.TrimSuffix(string(result.Stdout), "\x00"), "\x00") {
			key, value, _ := strings.Cut(pair, "=")
			if _, twice := got[key]; twice {
				t.Errorf("%s: %s is there twice", name, key)
			}
			got[key] = value
		}
		want[proc.MarkerVariable] = got[proc.MarkerVariable]
		if !maps.Equal(got, want) {
			t.Errorf("%s: the process sees\n%q\nwant\n%q", name, got, want)
		}
		if _, sandbox := got["IS_SANDBOX"]; sandbox != (name == "guest") {
			t.Errorf("%s: IS_SANDBOX is there: %v", name, sandbox)
		}
		if got["CELL_NAME"] != "mine" || got["APP_NAME"] != "api-0" || got["TZ"] != "UTC" {
			t.Errorf("%s: [env] must override what stands before it: %q", name, got)
		}
	}
}
