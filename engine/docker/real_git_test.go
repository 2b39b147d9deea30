//go:build linux

package docker_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellmux/cell/cfg"
	cellgit "cellmux/cell/git"
	"cellmux/cell/proc"
	"cellmux/engine"
)

// git runs git on the host, in a repository of the test's own.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	result, err := proc.New().Run(context.Background(), proc.Cmd{
		Argv: append([]string{"git"}, args...), Dir: dir,
		Env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a",
		},
	})
	if err != nil || result.ExitCode != 0 {
		t.Fatalf("git %q: %v, exit %d: %s", args, err, result.ExitCode, result.Stderr)
	}
	return strings.TrimSpace(string(result.Stdout))
}

// newWorktree makes a repository and a linked worktree of it.
func newWorktree(t *testing.T) (main, worktree string) {
	t.Helper()
	main = filepath.Join(t.TempDir(), "main")
	git(t, "/", "init", "-q", "-b", "trunk", main)
	write(t, filepath.Join(main, "file"), "one\n")
	git(t, main, "add", ".")
	git(t, main, "commit", "-q", "-m", "first")
	worktree = filepath.Join(t.TempDir(), "linked")
	git(t, main, "worktree", "add", "-q", worktree, "-b", "topic")
	return main, worktree
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree reads every file below a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		all[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sameTree(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, content := range before {
		if now, ok := after[path]; !ok || now != content {
			t.Errorf("%s has changed (there: %v)", path, ok)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s is new", path)
		}
	}
}

func TestRealLinkedWorktreeIsReadInsideAndTheHostsFilesStayAsTheyAre(t *testing.T) {
	l := newLab(t, nil)
	main, worktree := newWorktree(t)
	dotGit := filepath.Join(worktree, ".git")
	pointer := tree(t, filepath.Dir(dotGit))[dotGit]
	before := tree(t, main)
	c := l.cell(func(c *engine.Cell) { c.ProjectDir = worktree })
	if got := l.engine.Guest(c).Git; got != cfg.GitReadOnly {
		t.Errorf("the guest is told that git is %q", got)
	}
	l.up(c)
	if got := l.output(c, "git status --short --branch; git log --format=%s; git rev-parse --abbrev-ref HEAD"); got != "## topic\nfirst\ntopic" {
		t.Errorf("git says inside:\n%s", got)
	}
	l.output(c, "echo two >> file")
	if got := l.output(c, "git diff --stat"); !strings.Contains(got, "1 file changed, 1 insertion") {
		t.Errorf("git diff says inside: %s", got)
	}
	if result := l.sh(c, "git commit -qam inside"); result.ExitCode == 0 {
		t.Error("a commit went through")
	}
	for _, line := range []string{"echo x > .git", "rm -f .git", "mv .git away", "echo x > /gitcommon/config", "touch /gitcommon/hooks/post-checkout"} {
		if result := l.sh(c, line); result.ExitCode == 0 {
			t.Errorf("%q went through", line)
		}
	}
	sameTree(t, before, tree(t, main))
	if content, _ := os.ReadFile(dotGit); string(content) != pointer {
		t.Errorf("the host's .git holds %q, want %q", content, pointer)
	}
	// Committing then happens on the host, with what was done inside.
	git(t, worktree, "commit", "-q", "-a", "-m", "outside")
	if got := l.output(c, "git log --format=%s -1"); got != "outside" {
		t.Errorf("inside, the newest commit is %q", got)
	}
}

// A volume that shows the repository a second time is no way around.
func TestRealRepositoryIsProtectedInEveryVolumeThatHoldsIt(t *testing.T) {
	l := newLab(t, nil)
	main := filepath.Join(t.TempDir(), "main")
	git(t, "/", "init", "-q", "-b", "trunk", main)
	write(t, filepath.Join(main, "file"), "one\n")
	git(t, main, "add", ".")
	git(t, main, "commit", "-q", "-m", "first")
	worktree := filepath.Join(t.TempDir(), "linked")
	git(t, main, "worktree", "add", "-q", worktree, "-b", "topic")
	before := tree(t, filepath.Join(main, ".git"))
	for name, c := range map[string]engine.Cell{
		"a plain checkout":  l.cell(func(c *engine.Cell) { c.Name, c.ProjectDir = "plain", main }),
		"a linked worktree": l.cell(func(c *engine.Cell) { c.Name, c.ProjectDir = "linked", worktree }),
		"a worktree that may write": l.cell(func(c *engine.Cell) {
			c.Name, c.ProjectDir = "writes", worktree
			c.Config.Git.Worktree = "rw"
		}),
	} {
		c.Config.Cell.Volumes = []string{filepath.Dir(main) + ":/up", main + ":/again", filepath.Join(main, ".git") + ":/dotgit"}
		l.up(c)
		for _, dotGit := range []string{"/up/main/.git", "/again/.git", "/dotgit"} {
			for _, line := range []string{"echo x >> %/config", "mv %/config %/away", "touch %/hooks/post-checkout", "mv %/hooks %/away", "[ % != /dotgit ] && mv % %-away", "mv /up/main /up/away"} {
				line = strings.ReplaceAll(line, "%", dotGit)
				if result := l.sh(c, line); result.ExitCode == 0 {
					t.Errorf("%s: %q went through", name, line)
				}
			}
		}
		if result := l.sh(c, "echo two > /again/other"); result.ExitCode != 0 {
			t.Errorf("%s: the volume itself cannot be written: %s", name, result.Stderr)
		}
	}
	sameTree(t, before, tree(t, filepath.Join(main, ".git")))
}

// What an agent did inside is committed outside, with nothing of its run.
func TestRealWorkOfAGuestIsCommittedOnTheHost(t *testing.T) {
	l := newLab(t, nil)
	_, worktree := newWorktree(t)
	c := l.cell(func(c *engine.Cell) { c.ProjectDir = worktree })
	l.up(c)
	// All that a guest can plant there: what git reads in the working tree.
	l.output(c, `echo two >> file; printf '*.c filter=evil\n' > .gitattributes; mkdir inner; git init -q inner
		printf '[core]\n\tfsmonitor = touch /tmp/never; false\n' >> inner/.git/config; git -C inner commit -q --allow-empty -m inner`,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a")
	committer := cellgit.Committer{Reader: &cellgit.Reader{Runner: proc.New(), Environ: l.o.Environ, TempDir: t.TempDir()}}
	shown, err := committer.Propose(t.Context(), worktree)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(shown.Diff, "+two") || strings.Contains(shown.Diff, "inner") {
		t.Errorf("the diff is\n%s", shown.Diff)
	}
	l.output(c, "echo three >> file")
	by := cellgit.Identity{AuthorName: "ada", AuthorEmail: "a@a", CommitterName: "ada", CommitterEmail: "a@a"}
	if _, err := committer.Commit(t.Context(), worktree, shown, "outside", by); !errors.Is(err, cellgit.ErrChanged) {
		t.Errorf("what changed since: %v", err)
	}
	if shown, err = committer.Propose(t.Context(), worktree); err != nil {
		t.Fatal(err)
	}
	commit, err := committer.Commit(t.Context(), worktree, shown, "outside", by)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.output(c, "git log --format='%H %an %s' -1; git status --short"); got != commit+" ada outside\n?? inner/" {
		t.Errorf("inside, git says %q", got)
	}
	git(t, worktree, "fsck", "--strict")
}

func TestRealWorktreeThatMayWriteCommitsInsideAndProtectsItsConfig(t *testing.T) {
	l := newLab(t, nil)
	main, worktree := newWorktree(t)
	c := l.cell(func(c *engine.Cell) {
		c.ProjectDir = worktree
		c.Config.Git.Worktree = "rw"
	})
	if got := l.engine.Guest(c).Git; got != cfg.GitReadWrite {
		t.Errorf("the guest is told that git is %q", got)
	}
	l.up(c)
	l.output(c, "echo two >> file; git commit -qam inside", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a")
	if got := git(t, worktree, "log", "--format=%s", "-1"); got != "inside" {
		t.Errorf("outside, the newest commit is %q", got)
	}
	for _, line := range []string{"echo x >> /gitcommon/config", "touch /gitcommon/hooks/post-checkout", "git config core.fsmonitor /tmp/evil", "mv /gitcommon/hooks /gitcommon/away"} {
		if result := l.sh(c, line); result.ExitCode == 0 {
			t.Errorf("%q went through", line)
		}
	}
	// Inside, the way back to the host's path leads nowhere; a collection there
	// must not take the worktree for abandoned.
	l.output(c, "git gc -q --prune=now")
	if got := git(t, main, "worktree", "list"); !strings.Contains(got, worktree) {
		t.Errorf("the worktree was pruned: %s", got)
	}
}

// What git on the host would run, a guest cannot write, move away or replace.
func TestRealPlainCheckoutCommitsInsideAndProtectsWhatGitObeys(t *testing.T) {
	l := newLab(t, nil)
	main := filepath.Join(t.TempDir(), "main")
	git(t, "/", "init", "-q", "-b", "trunk", main)
	if err := os.RemoveAll(filepath.Join(main, ".git/hooks")); err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(main, ".git/modules/sub")
	git(t, "/", "init", "-q", "--bare", module)
	c := l.cell(func(c *engine.Cell) { c.ProjectDir = main })
	if got := l.engine.Guest(c).Git; got != cfg.GitReadWrite {
		t.Errorf("the guest is told that git is %q", got)
	}
	l.up(c)
	l.output(c, "echo one > file; git add file; git commit -qm inside", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a")
	if got := git(t, main, "log", "--format=%s", "-1"); got != "inside" {
		t.Errorf("outside, the newest commit is %q", got)
	}
	for _, line := range []string{
		"git config core.fsmonitor /tmp/evil", "echo x >> .git/config", "rm -f .git/config", "mv .git/config .git/away",
		"touch .git/hooks/post-checkout", "rmdir .git/hooks", "mv .git/hooks .git/away", "mv .git away", "rm -rf .git",
		"echo x >> .git/modules/sub/config", "touch .git/modules/sub/hooks/post-checkout",
	} {
		if result := l.sh(c, line); result.ExitCode == 0 {
			t.Errorf("%q went through", line)
		}
	}
	if content, err := os.ReadFile(filepath.Join(main, ".git/config")); err != nil || strings.Contains(string(content), "evil") {
		t.Errorf("the configuration: %v\n%s", err, content)
	}
	if entries, err := os.ReadDir(filepath.Join(main, ".git/hooks")); err != nil || len(entries) != 0 {
		t.Errorf("the hooks: %v, %v", entries, err)
	}
}
