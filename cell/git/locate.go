package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxPointer bounds the files that name a directory, in bytes.
const maxPointer = 4 << 10

// Location is where a repository keeps what.
type Location struct {
	WorkTree  string // top of the working tree
	GitDir    string // of this working tree: HEAD and the index
	CommonDir string // of the repository: objects, refs and configuration
}

// Linked says that the working tree is one that git worktree made: its GitDir lies
// below the CommonDir of the repository that it belongs to.
func (l Location) Linked() bool { return l.GitDir != l.CommonDir }

// Locate finds the repository around dir as git does, by reading files alone. It
// returns ErrNoRepository where there is none.
func Locate(dir string) (Location, error) {
	if !filepath.IsAbs(dir) {
		return Location{}, fmt.Errorf("locate the repository of %q: the path is not absolute", dir)
	}
	for top := filepath.Clean(dir); ; top = filepath.Dir(top) {
		gitDir, err := gitDirOf(top)
		if err != nil {
			return Location{}, fmt.Errorf("locate the repository of %s: %w", dir, err)
		}
		if gitDir != "" {
			common, err := commonDirOf(gitDir)
			if err != nil {
				return Location{}, fmt.Errorf("locate the repository of %s: %w", dir, err)
			}
			return Location{WorkTree: top, GitDir: gitDir, CommonDir: common}, nil
		}
		if top == filepath.Dir(top) {
			return Location{}, ErrNoRepository
		}
	}
}

// gitDirOf returns the git directory of a working tree's top; "" when dir is none.
func gitDirOf(top string) (string, error) {
	dotGit := filepath.Join(top, ".git")
	info, err := os.Stat(dotGit)
	switch {
	case err != nil:
		return "", nil
	case info.IsDir():
		if isGitDir(dotGit) {
			return dotGit, nil
		}
		return "", nil
	case !info.Mode().IsRegular():
		return "", nil
	}
	text, err := readPointer(dotGit)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%s names no git directory", dotGit)
	}
	path = against(top, path)
	if !isGitDir(path) {
		return "", fmt.Errorf("%s names %s, which is no git directory", dotGit, path)
	}
	return path, nil
}

func isGitDir(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	_, errObjects := os.Stat(filepath.Join(dir, "objects"))
	_, errCommon := os.Stat(filepath.Join(dir, "commondir"))
	return errObjects == nil || errCommon == nil
}

func commonDirOf(gitDir string) (string, error) {
	text, err := readPointer(filepath.Join(gitDir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", err
	}
	return against(gitDir, text), nil
}

func against(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// readPointer reads a small regular file without its final newline.
func readPointer(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPointer {
		return "", fmt.Errorf("%s is no file that names a directory", path)
	}
	data, err := os.ReadFile(path)
	return strings.TrimRight(string(data), "\r\n"), err
}
