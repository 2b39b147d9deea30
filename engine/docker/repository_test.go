package docker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/cell/cfg"
	"cellmux/engine"
)

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// layout makes a repository with a linked worktree by hand.
func layout(t *testing.T) (root, project, common string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project, common = filepath.Join(root, "project"), filepath.Join(root, "main/.git")
	put(t, filepath.Join(project, ".git"), "gitdir: "+common+"/worktrees/topic\n")
	put(t, filepath.Join(common, "config"), "")
	put(t, filepath.Join(common, "worktrees/topic/commondir"), "../..\n")
	put(t, filepath.Join(common, "worktrees/topic/gitdir"), project+"/.git\n")
	return root, project, common
}

func TestRepositoryOfALinkedWorktree(t *testing.T) {
	_, project, common := layout(t)
	got := readRepository(project)
	if want := (repository{kind: linkedWorktree, common: common, id: "topic"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRepositoryWithRelativePointers(t *testing.T) {
	_, project, common := layout(t)
	put(t, filepath.Join(project, ".git"), "gitdir: ../main/.git/worktrees/topic\n")
	put(t, filepath.Join(common, "worktrees/topic/gitdir"), "../../../../project/.git\n")
	if got := readRepository(project); got.kind != linkedWorktree || got.common != common {
		t.Errorf("got %+v", got)
	}
}

func TestRepositoryKinds(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"none", "plain/.git", "plain/below", "odd"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(root, "odd/.git")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]struct {
		kind   repositoryKind
		access cfg.GitAccess
	}{
		"none": {noRepository, ""}, "plain": {plainCheckout, cfg.GitReadWrite},
		"plain/below": {unreachable, cfg.GitNone}, "odd": {unreachable, cfg.GitNone},
	} {
		got := readRepository(filepath.Join(root, dir))
		if got.kind != want.kind || got.access("") != want.access {
			t.Errorf("%s: got %+v with access %q, want %+v", dir, got, got.access(""), want)
		}
	}
}

// A guest can write its project. A .git file that it made must not decide which
// directory of the host is mounted next time.
func TestRepositoryThatAGuestForgedIsNotMounted(t *testing.T) {
	cases := map[string]func(t *testing.T, root, project, common string){
		"the other end does not know it": func(t *testing.T, root, project, common string) {
			put(t, filepath.Join(common, "worktrees/topic/gitdir"), "/somewhere/else/.git\n")
		},
		"the other end is missing": func(t *testing.T, root, project, common string) {
			if err := os.Remove(filepath.Join(common, "worktrees/topic/gitdir")); err != nil {
				t.Fatal(err)
			}
		},
		"a git directory in the project that names a directory of the host": func(t *testing.T, root, project, common string) {
			own := filepath.Join(project, "x/worktrees/topic")
			put(t, filepath.Join(project, ".git"), "gitdir: x/worktrees/topic\n")
			put(t, filepath.Join(own, "commondir"), filepath.Join(root, "home/.ssh")+"\n")
			put(t, filepath.Join(own, "gitdir"), project+"/.git\n")
			put(t, filepath.Join(root, "home/.ssh/id"), "secret")
		},
		"the same through a link": func(t *testing.T, root, project, common string) {
			put(t, filepath.Join(root, "home/.ssh/worktrees/topic/x"), "")
			if err := os.Symlink(filepath.Join(root, "home/.ssh"), filepath.Join(project, "x")); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(project, ".git"), "gitdir: x/worktrees/topic\n")
		},
		"a pointer that is a link": func(t *testing.T, root, project, common string) {
			if err := os.Rename(filepath.Join(project, ".git"), filepath.Join(project, "pointer")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("pointer", filepath.Join(project, ".git")); err != nil {
				t.Fatal(err)
			}
		},
		"a pointer that is huge": func(t *testing.T, root, project, common string) {
			put(t, filepath.Join(project, ".git"), "gitdir: "+strings.Repeat("x", 1<<17))
		},
		"a git directory with another layout": func(t *testing.T, root, project, common string) {
			put(t, filepath.Join(common, "worktrees/topic/commondir"), "..\n")
		},
	}
	for name, forge := range cases {
		t.Run(name, func(t *testing.T) {
			root, project, common := layout(t)
			forge(t, root, project, common)
			if got := readRepository(project); got.kind != unreachable {
				t.Errorf("believed: %+v", got)
			}
		})
	}
}

// What a user has numbered in GIT_CONFIG_COUNT stays, and ours come behind it.
func TestGitEnvironmentKeepsTheUsersOwnSettings(t *testing.T) {
	_, project, _ := layout(t)
	d := New(Options{StateDir: t.TempDir()})
	c := engine.Cell{Name: "proj", ProjectDir: project}
	got := engine.LastWins(d.gitEnv(c, []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c"}))
	for _, want := range []string{
		"GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c", "GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=/src/proj",
		"GIT_CONFIG_KEY_2=safe.directory", "GIT_CONFIG_VALUE_2=/gitcommon", "GIT_CONFIG_COUNT=5", "GIT_OPTIONAL_LOCKS=0",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
	if got := d.gitEnv(engine.Cell{Name: "proj", ProjectDir: t.TempDir()}, []string{"A=1"}); !slices.Equal(got, []string{"A=1"}) {
		t.Errorf("a project without git gets %q", got)
	}
}
