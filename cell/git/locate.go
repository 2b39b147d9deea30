package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrRedirected says that a repository was made to lead git elsewhere.
var ErrRedirected = errors.New("the repository is not to be trusted")

// maxPointer bounds the files that name a directory, in bytes.
const maxPointer = 4 << 10

// Location is where a repository keeps what.
type Location struct {
	WorkTree  string // top of the working tree
	GitDir    string // of this working tree: HEAD and the index
	CommonDir string // of the repository: objects, refs and configuration
	// PointsBack says of a linked working tree that the repository knows it, too:
	// GitDir is where git worktree puts it, and names WorkTree.
	PointsBack bool
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
			if err := Redirected(top); err != nil {
				return Location{}, err
			}
			common, err := commonDirOf(gitDir)
			if err != nil {
				return Location{}, fmt.Errorf("locate the repository of %s: %w", dir, err)
			}
			l := Location{WorkTree: top, GitDir: gitDir, CommonDir: common}
			l.PointsBack = l.Linked() && l.pointsBack()
			return l, nil
		}
		if top == filepath.Dir(top) {
			return Location{}, ErrNoRepository
		}
	}
}

func (l Location) pointsBack() bool {
	back, err := readPointer(filepath.Join(l.GitDir, "gitdir"))
	if err != nil {
		return false
	}
	gitDir, errGitDir := filepath.EvalSymlinks(l.GitDir)
	common, errCommon := filepath.EvalSymlinks(l.CommonDir)
	if errGitDir != nil || errCommon != nil || filepath.Dir(gitDir) != filepath.Join(common, "worktrees") {
		return false
	}
	there, errThere := os.Lstat(against(l.GitDir, back))
	here, errHere := os.Lstat(filepath.Join(l.WorkTree, ".git"))
	return errThere == nil && errHere == nil && here.Mode().IsRegular() && os.SameFile(here, there)
}

// Redirected tells in an error that the .git directory of top holds a file that
// git makes in directories of linked working trees alone: with it, whoever can
// write the directory makes every git on this machine obey another configuration.
func Redirected(top string) error {
	dotGit := filepath.Join(top, ".git")
	if info, err := os.Lstat(dotGit); err != nil || !info.IsDir() {
		return nil
	}
	file := filepath.Join(dotGit, "commondir")
	if _, err := os.Lstat(file); err != nil {
		return nil
	}
	return fmt.Errorf("%w: %s was put there by no git, and makes git on this machine run what its author likes; run no git in %s before you have looked at the file and removed it", ErrRedirected, file, top)
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
