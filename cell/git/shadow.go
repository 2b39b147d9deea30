package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cellmux/cell/proc"
)

// overrides stand above any configuration. The shadow directory leaves them
// nothing to override; they hold where git grows a new way to read one.
var overrides = []string{
	"core.fsmonitor=false",
	"core.hooksPath=/dev/null",
	"core.attributesFile=/dev/null",
	"core.untrackedCache=false",
	"core.pager=cat",
	"core.sshCommand=false",
	"core.editor=false",
	"sequence.editor=false",
	"commit.gpgSign=false",
	"gpg.program=false",
	"credential.helper=",
	"diff.external=",
	"diff.ignoreSubmodules=all",
	"protocol.allow=never",
	"submodule.recurse=false",
	"gc.auto=0",
	"maintenance.auto=false",
}

// harmless are the settings of a repository that decide how its files compare, and
// can start nothing.
var harmless = []string{
	"core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.symlinks", "core.precomposeunicode",
	"core.sparsecheckout", "core.sparsecheckoutcone", "core.repositoryformatversion",
	"extensions.objectformat", "extensions.refstorage", "index.sparse",
}

// shadow is a stand-in for the git directory of one repository: links to its HEAD,
// refs and index, its objects as an alternate, with a configuration of our own and
// without hooks, info/attributes and submodules. A race with whoever writes the
// repository changes nothing, since its configuration is never in reach of git;
// what git writes, such as objects, stays in the stand-in.
type shadow struct {
	dir      string // temporary; the stand-in for GIT_DIR
	location Location
	reader   *Reader
	settings []setting // what the repository's own configuration says; never handed to git
	// overrides stand above the common ones.
	overrides []string
	timeout   time.Duration // of one git; 0 is Timeout
}

// shadow makes a stand-in; its owner calls remove.
func (r *Reader) shadow(ctx context.Context, l Location) (*shadow, error) {
	dir, err := os.MkdirTemp(r.TempDir, "cellmux-git-")
	if err != nil {
		return nil, fmt.Errorf("make a stand-in for %s: %w", l.GitDir, err)
	}
	s := &shadow{dir: dir, location: l, reader: r}
	if err := s.fill(ctx); err != nil {
		s.remove()
		return nil, fmt.Errorf("make a stand-in for %s: %w", l.GitDir, err)
	}
	return s, nil
}

func (s *shadow) remove() { _ = os.RemoveAll(s.dir) }

// left are entries of a git directory that a stand-in is without.
func left(name string) bool {
	switch name {
	case "HEAD", "config", "config.worktree", "hooks", "info", "objects", "modules", "worktrees", "commondir", "gitdir", "branches", "remotes":
		return true
	}
	return strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "fsmonitor")
}

func (s *shadow) fill(ctx context.Context) error {
	linked := make(map[string]bool)
	for _, dir := range slices.Compact([]string{s.location.GitDir, s.location.CommonDir}) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			name := entry.Name()
			// Of a linked working tree its own HEAD and index count, and the
			// refs of the repository.
			if left(name) || linked[name] || name == "refs" && dir != s.location.CommonDir {
				continue
			}
			linked[name] = true
			if err := os.Symlink(filepath.Join(dir, name), filepath.Join(s.dir, name)); err != nil {
				return err
			}
		}
	}
	head, err := headOf(s.location.GitDir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "HEAD"), []byte(head+"\n"), 0o600); err != nil {
		return err
	}
	for _, name := range []string{"info", "objects/info", "objects/pack"} {
		if err := os.MkdirAll(filepath.Join(s.dir, name), 0o700); err != nil {
			return err
		}
	}
	alternate := quoted(filepath.Join(s.location.CommonDir, "objects")) + "\n"
	if err := os.WriteFile(filepath.Join(s.dir, "objects/info/alternates"), []byte(alternate), 0o600); err != nil {
		return err
	}
	for _, target := range []string{
		filepath.Join(s.location.CommonDir, "info/exclude"),
		filepath.Join(s.location.GitDir, "info/sparse-checkout"),
	} {
		if info, err := os.Stat(target); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if err := os.Symlink(target, filepath.Join(s.dir, "info", filepath.Base(target))); err != nil {
			return err
		}
	}
	return s.configure(ctx)
}

// headOf reads HEAD, which an old repository keeps as a link to the branch. git
// takes no other link for it.
func headOf(gitDir string) (string, error) {
	path := filepath.Join(gitDir, "HEAD")
	if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, "refs/") {
		return "ref: " + target, nil
	}
	return readPointer(path)
}

// configure writes the configuration of the stand-in: the harmless settings of the
// repository, and which of the user's files hold patterns to ignore.
func (s *shadow) configure(ctx context.Context) error {
	for _, file := range []string{filepath.Join(s.location.CommonDir, "config"), filepath.Join(s.location.GitDir, "config.worktree")} {
		own, err := s.reader.list(ctx, file)
		if err != nil {
			return err
		}
		s.settings = append(s.settings, own...)
	}
	values := make(map[string]string)
	for _, setting := range s.settings {
		if slices.Contains(harmless, setting.key) && isPlain(setting.value) {
			values[setting.key] = setting.value
		}
	}
	if excludes := s.reader.userExcludes(ctx, s.location.WorkTree); excludes != "" {
		values["core.excludesfile"] = excludes
	}
	var b strings.Builder
	b.WriteString("[core]\n\tbare = false\n")
	for _, key := range slices.Sorted(maps.Keys(values)) {
		section, name, _ := strings.Cut(key, ".")
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, name, quoted(values[key]))
	}
	return os.WriteFile(filepath.Join(s.dir, "config"), []byte(b.String()), 0o600)
}

// isPlain accepts the words and numbers that harmless settings take.
func isPlain(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// quoted writes a value as git reads it in a configuration and in the list of
// alternates.
func quoted(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(value) + `"`
}

type setting struct{ key, value string }

// list reads the settings of one file, includes aside. Reading settings runs
// nothing. A file that does not exist has none.
func (r *Reader) list(ctx context.Context, file string) ([]setting, error) {
	if info, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	text, err := run(ctx, r.Runner, proc.Cmd{
		Argv: []string{"git", "config", "--file", file, "--no-includes", "--null", "--list"},
		Dir:  os.TempDir(),
		Env:  r.environ(),
	})
	if err != nil {
		return nil, err
	}
	var settings []setting
	for entry := range strings.SplitSeq(text, "\x00") {
		key, value, hasValue := strings.Cut(entry, "\n")
		if !hasValue && key != "" {
			value = "true"
		}
		settings = append(settings, setting{key, value})
	}
	return settings, nil
}

// userExcludes is core.excludesFile of the user's own configuration.
func (r *Reader) userExcludes(ctx context.Context, dir string) string {
	path := r.userSetting(ctx, "core.excludesFile", "path")
	if !filepath.IsAbs(path) || strings.HasPrefix(path, dir+string(filepath.Separator)) {
		return ""
	}
	return path
}

// userSetting reads the user's own configuration, never a repository's; "" where
// it says nothing. kind is a type of git config, or "".
func (r *Reader) userSetting(ctx context.Context, key, kind string) string {
	argv := []string{"git", "config", "--global"}
	if kind != "" {
		argv = append(argv, "--type="+kind)
	}
	text, err := run(ctx, r.Runner, proc.Cmd{Argv: append(argv, "--get", key), Dir: os.TempDir(), Env: Environ(r.Environ)})
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(text, "\n")
}

// git runs a command of git on the stand-in, in the working tree.
func (s *shadow) git(ctx context.Context, stdin string, args ...string) (string, error) {
	if stdin == "" {
		return s.gitWith(ctx, nil, nil, args...)
	}
	return s.gitWith(ctx, strings.NewReader(stdin), nil, args...)
}

// gitWith is git with more of an environment.
func (s *shadow) gitWith(ctx context.Context, stdin io.Reader, env []string, args ...string) (string, error) {
	argv := []string{"git", "--no-optional-locks", "--no-pager"}
	for _, o := range append(slices.Clone(overrides), s.overrides...) {
		argv = append(argv, "-c", o)
	}
	return run(ctx, s.reader.Runner, proc.Cmd{
		Argv:    append(argv, args...),
		Dir:     s.location.WorkTree,
		Env:     append(append(s.reader.environ(), "GIT_DIR="+s.dir, "GIT_WORK_TREE="+s.location.WorkTree), env...),
		Stdin:   stdin,
		Timeout: s.timeout,
	})
}
