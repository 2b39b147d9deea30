package fleet

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/cell/cfg"
	"cellmux/cell/git"
	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/enginetest"
)

// worktreeEngine is a fake whose guests' git can read or write.
type worktreeEngine struct {
	*enginetest.Fake
	git cfg.GitAccess
}

func (e *worktreeEngine) Guest(c engine.Cell) cfg.Guest {
	g := e.Fake.Guest(c)
	g.Git = e.git
	return g
}

// worktreeWorld is a world whose project is a linked working tree with a change,
// under a real git.
func worktreeWorld(t *testing.T, access cfg.GitAccess) (w *world, cell string, run func(args ...string) string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git: " + err.Error())
	}
	home := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
	main, work := filepath.Join(home, "main"), filepath.Join(home, "work")
	run = func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = home, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "-q", "-b", "trunk", main)
	run("-C", main, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "first")
	run("-C", main, "worktree", "add", "-q", "-b", "topic", work)
	if err := os.WriteFile(filepath.Join(work, "file"), []byte("by the guest\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w = newWorld(t, func(o *Options) {
		o.Engines = append(o.Engines, &worktreeEngine{enginetest.NewFake(), access})
		o.Commits = git.Committer{Reader: &git.Reader{Runner: proc.New(), Environ: env, TempDir: t.TempDir()}}
	})
	cell, err := w.NewCell(t.Context(), NewCell{ProjectDir: work, Engine: "docker"})
	if err != nil {
		t.Fatal(err)
	}
	return w, cell, run
}

func TestWorkOfAGuestIsCommittedInTheUsersName(t *testing.T) {
	w, cell, run := worktreeWorld(t, cfg.GitReadOnly)
	snap, err := w.Refresh(t.Context())
	if err != nil || !snap.Cells[0].CommitsOnHost {
		t.Errorf("the list does not say that the host commits: %+v, %v", snap.Cells, err)
	}
	shown, err := w.Proposal(t.Context(), cell)
	if err != nil || !strings.Contains(shown.Diff, "+by the guest") {
		t.Fatalf("shown: %+v, %v", shown, err)
	}
	if _, err := w.Commit(t.Context(), cell, shown, "m"); err == nil || !strings.Contains(err.Error(), "user.name") {
		t.Errorf("without a name: %v", err)
	}
	run("config", "--global", "user.name", "Ada")
	run("config", "--global", "user.email", "ada@x")
	commit, err := w.Commit(t.Context(), cell, shown, "What was done")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := run("-C", "main", "log", "-1", "--format=%H %an %ae %cn %s", "topic"), commit+" Ada ada@x Ada What was done"; got != want {
		t.Errorf("the commit is %q, want %q", got, want)
	}
	if _, err := w.Proposal(t.Context(), cell); !errors.Is(err, git.ErrNothing) {
		t.Errorf("afterwards: %v", err)
	}
	if _, err := w.Commit(t.Context(), cell, shown, "again"); !errors.Is(err, git.ErrChanged) {
		t.Errorf("what is committed already: %v", err)
	}
	events, _ := w.Events(t.Context(), 5)
	if !slices.ContainsFunc(events, func(e Event) bool { return e.Action == "commit the work of "+cell && e.Error == "" }) {
		t.Errorf("the events are %v", events)
	}
}

func TestWhereGitWorksInsideTheHostCommitsNothing(t *testing.T) {
	for _, access := range []cfg.GitAccess{cfg.GitReadWrite, cfg.GitNone, ""} {
		w, cell, run := worktreeWorld(t, access)
		run("config", "--global", "user.name", "Ada")
		if _, err := w.Proposal(t.Context(), cell); err == nil || !strings.Contains(err.Error(), "its own git") {
			t.Errorf("%q: Proposal: %v", access, err)
		}
		if _, err := w.Commit(t.Context(), cell, Proposal{}, "m"); err == nil {
			t.Errorf("%q: Commit goes through", access)
		}
		if snap, err := w.Refresh(t.Context()); err != nil || snap.Cells[0].CommitsOnHost {
			t.Errorf("%q: the list says that the host commits: %v", access, err)
		}
	}
}

// A file that no git puts there makes every git on this machine obey another
// configuration: the list says so, and nothing starts.
func TestRepositoryThatWasRedirectedMarksItsCell(t *testing.T) {
	w := newWorld(t)
	cell := w.cellWith(t)
	if err := os.MkdirAll(filepath.Join(w.project, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.project, ".git/commondir"), []byte("fake\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	snap, err := w.Refresh(t.Context())
	if err != nil || !strings.Contains(snap.Cells[0].Problem, ".git/commondir") || !strings.Contains(snap.Cells[0].Problem, "removed") {
		t.Errorf("the problem is %q, %v", snap.Cells[0].Problem, err)
	}
	if _, err := w.Open(t.Context(), cell, "shell"); err == nil {
		t.Error("a pane was opened")
	}
}
