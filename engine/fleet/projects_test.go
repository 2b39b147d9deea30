package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/cell/cfg"
	"cellmux/engine"
)

// projectFiles reads one project whose file is approved.
func projectFiles(t *testing.T, text string) (files *ProjectFiles, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, cfg.ProjectFileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	files = &ProjectFiles{
		Getenv:    func(string) string { return "" },
		Approvals: cfg.NewApprovalStore(filepath.Join(dir, "approvals")),
		Environ:   []string{"DATA=/data", "SIZE=8"},
	}
	approval, err := files.Approval(t.Context(), "api", dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Approve(t.Context(), dir, approval.Hash); err != nil {
		t.Fatal(err)
	}
	return files, dir
}

// What an engine makes a cell of may name host variables, and may run nothing.
func TestAnEngineGetsVolumesAndLimitsExpanded(t *testing.T) {
	files, dir := projectFiles(t, `
[cell]
volumes = ["$DATA/x:/x:ro", "$NOWHERE/y:/y"]
hostname = "$(touch ran)"
[docker]
mem_limit = "${SIZE}g"
[secrets]
TOKEN = "cmd:touch ran"
`)
	t.Chdir(dir)
	config, problem, approval := files.Load(t.Context(), dir)
	if problem != "" || approval != "" {
		t.Fatalf("%q, %q", problem, approval)
	}
	if want := []string{"/data/x:/x:ro", "$NOWHERE/y:/y"}; !slices.Equal(config.Cell.Volumes, want) {
		t.Errorf("volumes %q, want %q", config.Cell.Volumes, want)
	}
	if config.Docker.MemLimit != "8g" || config.Cell.Hostname != "$(touch ran)" {
		t.Errorf("%+v", config)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("listing a cell ran a command")
	}
}

func TestABadProjectFileIsAProblemOfItsCellAlone(t *testing.T) {
	files := &ProjectFiles{}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, cfg.ProjectFileName), []byte("[cell]\nstak = 1\n[x]"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, problem, _ := files.Load(t.Context(), dir)
	if !strings.Contains(problem, "devcell.toml:2:1: cell.stak: unknown key") || !strings.Contains(problem, "3:2: x: unknown key") || strings.Contains(problem, "\n") {
		t.Errorf("problem %q", problem)
	}
}

func TestKeysThatDoNothingAreToldAtALaunch(t *testing.T) {
	files, dir := projectFiles(t, "[cell]\nkvm = true\n[op]\ndocuments = []\n")
	values, err := files.Shown(nil).Values(t.Context(), engine.Cell{ProjectDir: dir})
	notes := strings.Join(values.Notes, "\n")
	if err != nil || !strings.Contains(notes, "devcell.toml:2:1: cell.kvm: has no effect") || !strings.Contains(notes, "devcell.toml:3:2: op: is deprecated: write secrets.onepassword") {
		t.Errorf("%v, notes\n%s", err, notes)
	}
}
