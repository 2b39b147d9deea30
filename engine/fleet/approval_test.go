package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/cell/cfg"
	"cellmux/engine"
)

func unapproved(t *testing.T, text string) (*ProjectFiles, string) {
	t.Helper()
	dir := t.TempDir()
	if text != "" {
		write(t, filepath.Join(dir, cfg.ProjectFileName), text)
	}
	return &ProjectFiles{
		Home: t.TempDir(), Getenv: func(string) string { return "" },
		Approvals: cfg.NewApprovalStore(filepath.Join(t.TempDir(), "approvals")),
	}, dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUnapprovedFileHasNoEffectUntilItsHashIsApproved(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	files, dir := unapproved(t, "[env]\nA = '$(touch "+marker+")'\n")
	config, problem, approval := files.Load(t.Context(), dir)
	if problem != "" || approval == "" || config.Env["A"] != "" {
		t.Fatalf("%q, %q, %+v", problem, approval, config.Env)
	}
	got, err := files.Approval(t.Context(), "api", dir)
	if err != nil || len(got.Acts) == 0 || !strings.Contains(strings.Join(got.Acts, "\n"), "runs a command") {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Fatal("looking at the file ran its command")
	}
	if err := files.Approve(t.Context(), dir, got.Hash); err != nil {
		t.Fatal(err)
	}
	if config, _, approval := files.Load(t.Context(), dir); approval != "" || config.Env["A"] == "" {
		t.Errorf("after the approval: %q, %+v", approval, config.Env)
	}
}

func TestFileThatChangedSinceItWasShownIsNotApproved(t *testing.T) {
	files, dir := unapproved(t, "[env]\nA = 'harmless'\n")
	shown, err := files.Approval(t.Context(), "api", dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, cfg.ProjectFileName), "[env]\nA = '$(rm -rf ~)'\n")
	if err := files.Approve(t.Context(), dir, shown.Hash); !errors.Is(err, ErrChanged) {
		t.Errorf("%v", err)
	}
	if _, _, approval := files.Load(t.Context(), dir); approval == "" {
		t.Error("the new content counts as approved")
	}
}

func TestLaunchSeesAFileThatChangedAMomentAgo(t *testing.T) {
	files, dir := unapproved(t, "[env]\nA = 'one'\n")
	shown, err := files.Approval(t.Context(), "api", dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Approve(t.Context(), dir, shown.Hash); err != nil {
		t.Fatal(err)
	}
	configs := files.Configs(nil, nil)
	cell := engine.Cell{ProjectDir: dir}
	if v, err := configs.Values(t.Context(), cell); err != nil || v.Env["A"] != "one" {
		t.Fatalf("%+v, %v", v.Env, err)
	}
	file := filepath.Join(dir, cfg.ProjectFileName)
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "[env]\nA = 'two'\n")
	if err := os.Chtimes(file, before.ModTime(), before.ModTime()); err != nil { // nothing but the content tells
		t.Fatal(err)
	}
	if v, err := configs.Values(t.Context(), cell); err != nil || v.Env["A"] != "" {
		t.Errorf("an unapproved content was launched: %+v, %v", v.Env, err)
	}
}

func TestRevokedFileLosesItsEffect(t *testing.T) {
	files, dir := unapproved(t, "[env]\nA = 'one'\n")
	shown, _ := files.Approval(t.Context(), "api", dir)
	if err := errors.Join(files.Approve(t.Context(), dir, shown.Hash), files.Revoke(t.Context(), dir)); err != nil {
		t.Fatal(err)
	}
	if config, _, approval := files.Load(t.Context(), dir); approval == "" || config.Env["A"] != "" {
		t.Errorf("%q, %+v", approval, config.Env)
	}
}

func TestBadFileIsAProblemOfItsCellWithItsPlace(t *testing.T) {
	files, dir := unapproved(t, "[cell]\nstak = 'go'\n")
	config, problem, _ := files.Load(t.Context(), dir)
	if !strings.Contains(problem, "devcell.toml:2:1") || config.Cell.Engine != "" {
		t.Errorf("%q, %+v", problem, config.Cell)
	}
	write(t, filepath.Join(dir, cfg.ProjectFileName), "[cell]\nstack = 'go'\n# longer\n")
	if _, problem, _ := files.Load(t.Context(), dir); problem != "" {
		t.Errorf("after it was put right: %q", problem)
	}
}

// Directories without a file share one answer, which ages by its file alone.
func TestUnchangedFilesAreReadOnce(t *testing.T) {
	files, dir := unapproved(t, "")
	files.Global = filepath.Join(t.TempDir(), "devcell.toml")
	other := t.TempDir()
	first, err := files.load(dir)
	if err != nil {
		t.Fatal(err)
	}
	known := files.loaded[""]
	known.at = time.Now().Add(-time.Hour)
	again, err := files.load(other)
	if err != nil || files.loaded[""] != known || len(files.loaded) != 1 {
		t.Errorf("a directory without a file was read: %v", err)
	}
	if first.BaseDir != dir || again.BaseDir != other {
		t.Errorf("of %s and %s: %s and %s", dir, other, first.BaseDir, again.BaseDir)
	}
	write(t, files.Global, "[cell]\nstack = 'go'\n")
	if config, _, _ := files.Load(t.Context(), dir); config.Cell.Stack != "go" {
		t.Errorf("a new file of the user's own was not seen: %+v", config.Cell)
	}
}

func TestAProjectsFileIsSeenUnderBothNamesAndWhenReplaced(t *testing.T) {
	for _, name := range cfg.ProjectFileNames() {
		files, dir := unapproved(t, "")
		if _, problem, _ := files.Load(t.Context(), dir); problem != "" {
			t.Fatal(problem)
		}
		file := filepath.Join(dir, name)
		write(t, file, "[cell]\nstak = 1\n")
		if _, problem, _ := files.Load(t.Context(), dir); !strings.Contains(problem, "stak") {
			t.Errorf("%s was not seen: %q", name, problem)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		// Of the same length and time: only the file itself is another.
		write(t, file+".new", "[cell]\nstaq = 1\n")
		if err := errors.Join(os.Chtimes(file+".new", info.ModTime(), info.ModTime()), os.Rename(file+".new", file)); err != nil {
			t.Fatal(err)
		}
		if _, problem, _ := files.Load(t.Context(), dir); !strings.Contains(problem, "staq") {
			t.Errorf("%s was replaced, and not seen: %q", name, problem)
		}
	}
}
