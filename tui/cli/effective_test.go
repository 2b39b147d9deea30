package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/cell/cfg"
	"cellmux/engine/fleet"
)

// project writes a devcell.toml that is not approved and returns its directory.
func project(t *testing.T, text string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, cfg.ProjectFileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestConfigShowsWhatHoldsAndWhatWaits(t *testing.T) {
	dir := project(t, "[cell]\nstack = 'go'\n[env]\nA = '$(id)'\n[nix]\nimage = 'x'\n")
	store := cfg.NewApprovalStore(t.TempDir())
	load := func(dir string) (*cfg.Effective, error) {
		return cfg.Load(cfg.Sources{ProjectDir: dir, Approvals: store})
	}
	inProject := func(o *Options) { o.Dir, o.LoadCell = dir, load }
	got := call(t, nil, inProject, "config")
	if got.code != ExitOK || strings.Contains(got.stdout, "$(id)") || !strings.Contains(got.stdout, `"base"`) {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{"waits for approval", `line 4: env.A = "$(id)"   runs a command`, "nix: has no effect in cellmux"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("%q is not in\n%s", want, got.stderr)
		}
	}
	e, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Approve(e.Pending.Path, e.Pending.Hash); err != nil {
		t.Fatal(err)
	}
	got = call(t, nil, inProject, "config", "--json")
	var values []valueJSON
	if err := json.Unmarshal([]byte(got.stdout), &values); err != nil || got.code != ExitOK {
		t.Fatalf("%v, %+v", err, got)
	}
	want := valueJSON{Key: "env.A", Value: `"$(id)"`, Source: "project file", File: filepath.Join(dir, "devcell.toml"), Line: 4}
	if !slices.Contains(values, want) {
		t.Errorf("%+v is not in %+v", want, values)
	}
}

func TestConfigCheckFailsOnABadFile(t *testing.T) {
	dir := project(t, "[cell]\nstak = 'go'\n")
	inProject := func(o *Options) {
		o.Dir, o.CheckSettings = dir, func() error { return nil }
		o.LoadCell = func(dir string) (*cfg.Effective, error) { return cfg.Load(cfg.Sources{ProjectDir: dir}) }
	}
	for _, args := range [][]string{{"config", "check"}, {"config", "check", dir}, {"config"}} {
		got := call(t, nil, inProject, args...)
		if got.code != ExitFailed || !strings.Contains(got.stderr, "devcell.toml:2:1: cell.stak: unknown key; did you mean stack?") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestEnvWhySaysWhoLetEachVariableIn(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{})}
	got := call(t, w, nil, "env", "api:0", "--why")
	want := "in   CELL_NAME              every cell gets it\nin   PATH                   base: every agent gets it\nout  AWS_SECRET_ACCESS_KEY  claude does not need it\n"
	if got.code != ExitOK || got.stdout != want {
		t.Errorf("%+v", got)
	}
}
