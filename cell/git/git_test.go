package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/cell/proc"
)

// hostEnv is a user without settings of their own.
func hostEnv(t *testing.T) []string {
	t.Helper()
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@x", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@x",
		"GIT_CONFIG_NOSYSTEM=1",
	}
}

// repository is a working tree that the tests set up with real git.
type repository struct {
	t   *testing.T
	dir string
	env []string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git: " + err.Error())
	}
	r := repository{t, filepath.Join(t.TempDir(), "repo"), hostEnv(t)}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.git("init", "-q", "-b", "main")
	return r
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func (r repository) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func (r repository) commit(name, text string) {
	r.t.Helper()
	r.write(name, text)
	r.git("add", "--", name)
	r.git("commit", "-q", "-m", name)
}

func (r repository) reader() *Reader {
	return &Reader{Runner: proc.New(), Environ: r.env, TempDir: r.t.TempDir()}
}

func (r repository) state() State {
	r.t.Helper()
	state, err := r.reader().State(r.t.Context(), r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	return state
}

func TestEnvironTakesOutTheEightAndNothingElse(t *testing.T) {
	kept := []string{"PATH=/bin", "GIT_SSH_COMMAND=ssh", "GIT_CONFIG_GLOBAL=/g", "GIT_AUTHOR_NAME=Ada", "GIT_CONFIG_COUNT=1", "GIT_DIRECTORY=x"}
	var environ []string
	for i, name := range locationVariables {
		environ = append(environ, name+"=/elsewhere")
		if i < len(kept) {
			environ = append(environ, kept[i])
		}
	}
	if got := Environ(environ); !slices.Equal(got, kept) || len(locationVariables) != 8 {
		t.Errorf("got %q", got)
	}
}

func TestAHooksChildReadsTheRepositoryThatItIsPointedAt(t *testing.T) {
	if os.Getenv("CELLMUX_TEST_HOOK") != "" {
		hookChild(t)
		return
	}
	here, other := newRepository(t), newRepository(t)
	other.commit("other", "x\n")
	other.write("other", "x\ny\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(t.TempDir(), "report")
	here.env = append(here.env, "CELLMUX_TEST_HOOK="+other.dir, "CELLMUX_TEST_REPORT="+report)
	here.write(".git/hooks/pre-commit", "#!/bin/sh\nexec '"+self+"' -test.run '^TestAHooksChildReadsTheRepositoryThatItIsPointedAt$'\n")
	here.commit("here", "x\n")
	got, err := os.ReadFile(report)
	if err != nil || string(got) != "index=set\nclient="+other.dir+"\nreader=+1-0 \n" {
		t.Errorf("the hook's child saw %q, %v", got, err)
	}
}

// hookChild is cellmux as the child of a real git commit.
func hookChild(t *testing.T) {
	report := "index=unset\n"
	if os.Getenv("GIT_INDEX_FILE") != "" {
		report = "index=set\n"
	}
	dir := os.Getenv("CELLMUX_TEST_HOOK")
	top, err := Client{proc.New(), os.Environ()}.Run(t.Context(), dir, "rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	state, err := (&Reader{Runner: proc.New(), Environ: os.Environ()}).State(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	report += "client=" + top + "reader=" + state.String() + " " + state.Operation + "\n"
	if err := os.WriteFile(os.Getenv("CELLMUX_TEST_REPORT"), []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStateOfAWorkingTree(t *testing.T) {
	r := newRepository(t)
	check := func(want string) {
		t.Helper()
		if got := r.state().String(); got != want {
			t.Errorf("got %q, want %q\n%s", got, want, r.git("status", "--short"))
		}
	}
	check("clean") // before the first commit
	r.write("a", "1\n2\n")
	check("?1")
	r.git("add", "a")
	check("+2-0")
	r.git("commit", "-q", "-m", "a")
	check("clean")
	r.write("a", "1\n3\n4\n")
	r.write("dir/new", "x")
	r.write("dir/newer", "x")
	check("+2-1 ?1")
	r.git("checkout", "-q", "a")
	if err := os.Chmod(filepath.Join(r.dir, "a"), 0o644); err != nil {
		t.Fatal(err)
	}
	check("dirty ?1")
	r.git("checkout", "-q", "a")
	r.git("clean", "-qfd")
	r.commit("b", "b\n")

	upstream := filepath.Join(t.TempDir(), "upstream.git")
	r.git("clone", "-q", "--bare", ".", upstream)
	r.git("remote", "add", "origin", upstream)
	r.git("fetch", "-q", "origin")
	r.git("branch", "-q", "--set-upstream-to=origin/main")
	check("clean")
	r.commit("c", "c\n")
	r.commit("d", "d\n")
	check("clean ^2")
	r.git("reset", "-q", "--hard", "HEAD~3")
	check("clean v1")
	r.commit("b", "other b\n")
	check("clean ^1 v1")
	if s := r.state(); s.Branch != "main" || s.Upstream != "origin/main" || s.Ahead != 1 || s.Behind != 1 {
		t.Errorf("%+v", s)
	}
	if out, err := r.try("merge", "origin/main"); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	if s := r.state(); s.Conflicts != 1 || s.Operation != "merge" {
		t.Errorf("%+v", s)
	}
}

func TestStateHonoursIgnorePatternsOfTheUserAndTheRepository(t *testing.T) {
	r := newRepository(t)
	home := strings.TrimPrefix(r.env[1], "HOME=")
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\texcludesFile = ~/ignored\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "ignored"), []byte("*.swp\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.commit(".gitignore", "*.log\n")
	r.write(".git/info/exclude", "*.tmp\n")
	for _, name := range []string{"a.swp", "a.log", "a.tmp"} {
		r.write(name, "x")
	}
	if got := r.state().String(); got != "clean" {
		t.Errorf("got %q", got)
	}
}

func TestLocate(t *testing.T) {
	r := newRepository(t)
	r.commit("dir/a", "x\n")
	linked := filepath.Join(t.TempDir(), "linked")
	r.git("worktree", "add", "-q", linked)
	dotGit := filepath.Join(r.dir, ".git")
	for dir, want := range map[string]Location{
		r.dir:                       {r.dir, dotGit, dotGit, false},
		filepath.Join(r.dir, "dir"): {r.dir, dotGit, dotGit, false},
		linked:                      {linked, filepath.Join(dotGit, "worktrees/linked"), dotGit, true},
	} {
		if got, err := Locate(dir); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", dir, got, err, want)
		}
	}
	if _, err := Locate(t.TempDir()); !errors.Is(err, ErrNoRepository) {
		t.Errorf("outside: %v", err)
	}
	if _, err := r.reader().State(t.Context(), t.TempDir()); !errors.Is(err, ErrNoRepository) {
		t.Errorf("state outside: %v", err)
	}
	r.dir = linked
	r.write("dir/a", "x\ny\n")
	if s := r.state(); s.String() != "+1-0" || !s.Linked || s.Branch != "linked" {
		t.Errorf("%+v", s)
	}
}

func TestDiffShowsNewFilesAndLeavesTheRepositoryAsItWas(t *testing.T) {
	r := newRepository(t)
	r.write("first", "1\n")
	if diff, err := r.reader().Diff(t.Context(), r.dir); err != nil || !strings.Contains(diff, "+++ b/first\n") {
		t.Errorf("before the first commit: %q, %v", diff, err)
	}
	r.commit("a", "1\n2\n")
	r.write("a", "1\n3\n")
	r.write("new file", "fresh\n")
	before := snapshot(t, r.dir)
	diff, err := r.reader().Diff(t.Context(), r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--- a/a\n+++ b/a\n", "-2\n+3\n", "+++ b/new file", "+fresh\n", "+++ b/first"} {
		if !strings.Contains(diff, want) {
			t.Errorf("%q is not in\n%s", want, diff)
		}
	}
	r.state()
	if after := snapshot(t, r.dir); before != after {
		t.Errorf("reading changed the repository:\n%s\nbecame\n%s", before, after)
	}
}

// snapshot lists every file below dir with its content's length and bytes.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		b.WriteString(path + "\n" + string(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
