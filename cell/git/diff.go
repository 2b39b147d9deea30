package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxUntracked bounds how many unknown files a diff shows as new. Beyond it, they
// are most likely a build or a package directory that nobody ignores yet.
const maxUntracked = 500

// Diff returns the uncommitted work around dir as a unified diff without escapes:
// tracked files against HEAD, and untracked ones as new. It returns
// ErrNoRepository where there is no working tree. File names and contents are the
// guest's: what shows them removes control characters.
func (r *Reader) Diff(ctx context.Context, dir string) (string, error) {
	l, err := Locate(dir)
	if err != nil {
		return "", err
	}
	s, err := r.shadow(ctx, l)
	if err != nil {
		return "", err
	}
	defer s.remove()
	if err := s.ownIndex(); err != nil {
		return "", err
	}
	if err := s.intendToAdd(ctx); err != nil {
		return "", err
	}
	var state State
	status, err := s.git(ctx, "", "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--ignore-submodules=all")
	if err != nil {
		return "", err
	}
	state.readStatus(status)
	args := s.diffArguments(state, "--patch", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/")
	if state.Head == "" {
		args = args[:len(args)-1] // without --cached: what is only intended shows against the working tree
	}
	return s.git(ctx, "", args...)
}

// ownIndex replaces the link to the repository's index by a copy, which may be
// changed.
func (s *shadow) ownIndex() error {
	index := filepath.Join(s.dir, "index")
	info, err := os.Stat(index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("the index of %s is not a regular file", s.location.GitDir)
	}
	from, err := os.Open(index)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := os.Remove(index); err != nil {
		return err
	}
	to, err := os.OpenFile(index, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}
	// git trusts what it knows of a file that is older than the index: a younger
	// copy would hide a change made in the same moment as the index.
	return os.Chtimes(index, info.ModTime(), info.ModTime())
}

// intendToAdd marks untracked files in the copied index, which makes git diff show
// them. Their content is not read, and so not filtered.
func (s *shadow) intendToAdd(ctx context.Context) error {
	others, err := s.git(ctx, "", "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return err
	}
	var names []string
	for name := range strings.SplitSeq(others, "\x00") {
		if name != "" && !strings.HasSuffix(name, "/") { // a repository inside ends in a slash
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) > maxUntracked {
		return nil
	}
	_, err = s.git(ctx, strings.Join(names, "\x00")+"\x00",
		"--literal-pathspecs", "add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
	return err
}
