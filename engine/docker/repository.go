package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cellmux/cell/cfg"
	"cellmux/engine"
)

// Paths inside of a linked worktree's repository.
const (
	guestCommon = "/gitcommon"
	rewritten   = "gitdir: " + guestCommon + "/worktrees/"
)

// repositoryKind is how a project's files belong to a git repository.
type repositoryKind int

const (
	noRepository   repositoryKind = iota
	plainCheckout                 // .git is a directory
	linkedWorktree                // .git points at worktrees/<id> of a common directory that points back
	unreachable                   // the repository lies elsewhere: a parent directory, a submodule, a separate directory
)

// repository is what the host's files say about a project's git repository. It
// is read without git: a guest may have written it, and git obeys its files.
type repository struct {
	kind   repositoryKind
	common string // of a linked worktree: the common directory, real path
	id     string // of a linked worktree: its name below worktrees
}

// access is what git can do inside.
func (r repository) access(worktree string) cfg.GitAccess {
	switch {
	case r.kind == plainCheckout, r.kind == linkedWorktree && worktree == "rw":
		return cfg.GitReadWrite
	case r.kind == linkedWorktree:
		return cfg.GitReadOnly
	case r.kind == unreachable:
		return cfg.GitNone
	}
	return ""
}

// readRepository looks at project/.git. A pointer is believed only when both
// ends agree: the directory that it names must be worktrees/<id> of its common
// directory and must name project/.git itself. Else a guest that writes a .git
// file could choose which directory of the host it gets to see next time.
func readRepository(project string) repository {
	dotGit := filepath.Join(project, ".git")
	info, err := os.Lstat(dotGit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if insideRepository(filepath.Dir(project)) {
			return repository{kind: unreachable}
		}
		return repository{}
	case err != nil:
		return repository{kind: unreachable}
	case info.IsDir():
		return repository{kind: plainCheckout}
	case !info.Mode().IsRegular():
		return repository{kind: unreachable}
	}
	gitDir, ok := readPointer(dotGit, "gitdir: ")
	if !ok {
		return repository{kind: unreachable}
	}
	gitDir, err = filepath.EvalSymlinks(absolute(project, gitDir))
	if err != nil {
		return repository{kind: unreachable}
	}
	common, ok := readPointer(filepath.Join(gitDir, "commondir"), "")
	if !ok {
		return repository{kind: unreachable}
	}
	common, err = filepath.EvalSymlinks(absolute(gitDir, common))
	if err != nil {
		return repository{kind: unreachable}
	}
	id := filepath.Base(gitDir)
	back, ok := readPointer(filepath.Join(gitDir, "gitdir"), "")
	if !ok || filepath.Join(common, "worktrees", id) != gitDir || !sameFile(absolute(gitDir, back), dotGit) {
		return repository{kind: unreachable}
	}
	return repository{kind: linkedWorktree, common: common, id: id}
}

// insideRepository tells whether dir or a parent of it holds a .git.
func insideRepository(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}

// readPointer reads the path that one of git's one-line files holds.
func readPointer(file, prefix string) (path string, ok bool) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<16 {
		return "", false
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	path, ok = strings.CutPrefix(strings.TrimRight(string(content), "\r\n"), prefix)
	return path, ok && path != ""
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// maxSubmodules bounds how many submodules' configurations are protected one by
// one; a repository with more is mounted without write access to .git/modules.
const maxSubmodules = 64

// gitMounts are the mounts that git needs, and those that keep a guest from
// writing what git on the host would run: the configuration and the hooks. .git
// itself becomes a mount, too: it could be moved away and replaced otherwise.
func (d *Docker) gitMounts(c engine.Cell, r repository) ([]mount, error) {
	inside := d.project(c) + "/.git"
	switch r.kind {
	case plainCheckout:
		dotGit := filepath.Join(c.ProjectDir, ".git")
		mounts := []mount{{host: dotGit, guest: inside, inner: true}}
		mounts = append(mounts, protect(dotGit, inside)...)
		modules := submodules(dotGit)
		if len(modules) > maxSubmodules {
			return append(mounts, mount{host: filepath.Join(dotGit, "modules"), guest: inside + "/modules", readOnly: true, inner: true}), nil
		}
		for _, module := range modules {
			rel, err := filepath.Rel(dotGit, module)
			if err != nil {
				return nil, err
			}
			mounts = append(mounts, protect(module, inside+"/"+filepath.ToSlash(rel))...)
		}
		return mounts, nil
	case linkedWorktree:
		readOnly := c.Config.Git.Worktree != "rw"
		mounts := []mount{
			{host: r.common, guest: guestCommon, readOnly: readOnly, note: "the repository of this worktree"},
			{host: d.pointerFile(c), guest: inside, readOnly: true, inner: true},
		}
		if !readOnly {
			mounts = append(mounts, protect(r.common, guestCommon)...)
		}
		return mounts, nil
	}
	return nil, nil
}

// protect returns read-only mounts of what git obeys in a git directory.
func protect(gitDir, inside string) []mount {
	var mounts []mount
	hooks := filepath.Join(gitDir, "hooks")
	if info, err := os.Lstat(hooks); err == nil && info.IsDir() {
		mounts = append(mounts, mount{host: hooks, guest: inside + "/hooks", readOnly: true, inner: true})
	}
	for _, name := range []string{"config", "config.worktree"} {
		file := filepath.Join(gitDir, name)
		if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() {
			mounts = append(mounts, mount{host: file, guest: inside + "/" + name, readOnly: true, inner: true})
		}
	}
	return mounts
}

// prepareRepository makes what gitMounts mounts: the hooks directory where it is
// missing (what is not there cannot be mounted, and a guest could make it), and
// the pointer of a linked worktree.
func (d *Docker) prepareRepository(c engine.Cell, r repository) error {
	var gitDirs []string
	switch {
	case r.kind == plainCheckout:
		dotGit := filepath.Join(c.ProjectDir, ".git")
		gitDirs = append(submodules(dotGit), dotGit)
	case r.kind == linkedWorktree:
		if err := d.generate(d.pointerFile(c), rewritten+r.id+"\n"); err != nil {
			return fmt.Errorf("write the .git of the worktree inside: %w", err)
		}
		if c.Config.Git.Worktree == "rw" {
			gitDirs = append(gitDirs, r.common)
		}
	}
	for _, dir := range gitDirs {
		if err := os.Mkdir(filepath.Join(dir, "hooks"), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the hooks directory that the cell must not write: %w", err)
		}
	}
	return nil
}

// submodules lists the git directories below .git/modules.
func submodules(dotGit string) []string {
	var found []string
	_ = filepath.WalkDir(filepath.Join(dotGit, "modules"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || len(found) > maxSubmodules {
			return fs.SkipDir
		}
		if !entry.IsDir() && entry.Name() == "HEAD" {
			if _, err := os.Lstat(filepath.Join(filepath.Dir(path), "config")); err == nil {
				found = append(found, filepath.Dir(path))
			}
		}
		if entry.IsDir() && (entry.Name() == "objects" || entry.Name() == "refs" || entry.Name() == "logs") {
			return fs.SkipDir
		}
		return nil
	})
	return found
}

// pointerFile is the .git file that a linked worktree has inside. The host's own
// is never changed.
func (d *Docker) pointerFile(c engine.Cell) string {
	return filepath.Join(d.o.StateDir, "cells", c.Name, "dotgit")
}

// generate keeps a small file of ours that a container mounts. A file that is
// right already keeps its inode, which is what a running container has.
func (d *Docker) generate(path, content string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return nil
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(dir, filepath.Base(path))
	if err != nil {
		return err
	}
	_, err = temporary.WriteString(content)
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}

// gitEnv adds what git needs inside: a repository that another uid seems to own
// is refused unless it is named as safe, and a worktree whose way back leads to
// the host must not be pruned. Git reads the count at the end; what the user has
// numbered stays.
func (d *Docker) gitEnv(c engine.Cell, pairs []string) []string {
	r := readRepository(c.ProjectDir)
	if r.kind != plainCheckout && r.kind != linkedWorktree {
		return pairs
	}
	settings := [][2]string{{"safe.directory", d.project(c)}}
	if r.kind == linkedWorktree {
		settings = append(settings, [2]string{"safe.directory", guestCommon},
			[2]string{"gc.auto", "0"}, [2]string{"gc.worktreePruneExpire", "never"})
		if c.Config.Git.Worktree != "rw" {
			pairs = append(pairs, "GIT_OPTIONAL_LOCKS=0")
		}
	}
	n := 0
	for _, pair := range pairs {
		if value, ok := strings.CutPrefix(pair, "GIT_CONFIG_COUNT="); ok {
			n, _ = strconv.Atoi(value)
		}
	}
	n = max(n, 0)
	for _, s := range settings {
		pairs = append(pairs, "GIT_CONFIG_KEY_"+strconv.Itoa(n)+"="+s[0], "GIT_CONFIG_VALUE_"+strconv.Itoa(n)+"="+s[1])
		n++
	}
	return append(pairs, "GIT_CONFIG_COUNT="+strconv.Itoa(n))
}
