package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Errors that callers tell apart.
var (
	ErrNothing = errors.New("there is nothing to commit")
	ErrChanged = errors.New("the work has changed since it was shown; look at it again")
	ErrBusy    = errors.New("another git is at work in it")
)

// commitTimeout bounds one git process of a commit: it reads every changed file.
const commitTimeout = time.Minute

// Committer commits what lies in a working tree that a guest writes, as a Reader
// looks at it: on a stand-in, so that no hook, filter, monitor, signing program
// or editor runs. Only what it has to write reaches the repository: the objects
// of the commit, the branch with its log, and the index.
//
// It serves linked working trees alone, those whose repository a guest can only
// read. It is safe for concurrent use; every method blocks on git.
type Committer struct{ Reader *Reader }

// Proposal is the commit that the working tree would make.
type Proposal struct {
	Branch         string
	Head           string // commit that it follows, hexadecimal; "" is none
	Tree           string // what exactly would be committed, hexadecimal
	Files          int
	Added, Deleted int    // lines
	Diff           string // Head to Tree, unified, without escapes; its last lines are missing beyond 8 MiB
	// Notes are sentences about what this commit does not do, such as signing.
	Notes []string
}

// Identity is who commits.
type Identity struct{ AuthorName, AuthorEmail, CommitterName, CommitterEmail string }

// UserSetting reads the user's own configuration, never a repository's; "" where it
// says nothing.
func (c Committer) UserSetting(ctx context.Context, key string) string {
	return c.Reader.userSetting(ctx, key, "")
}

func (i Identity) environ() []string {
	return []string{
		"GIT_AUTHOR_NAME=" + i.AuthorName, "GIT_AUTHOR_EMAIL=" + i.AuthorEmail,
		"GIT_COMMITTER_NAME=" + i.CommitterName, "GIT_COMMITTER_EMAIL=" + i.CommitterEmail,
	}
}

// Propose shows what Commit would commit: every change of tracked files, and
// every file that is neither tracked nor ignored; submodules and repositories
// inside are left alone. It writes nothing into the repository. It returns
// ErrNothing where the tree is HEAD's.
func (c Committer) Propose(ctx context.Context, dir string) (Proposal, error) {
	l, err := linked(dir)
	if err != nil {
		return Proposal{}, err
	}
	s, err := c.stand(ctx, l)
	if err != nil {
		return Proposal{}, err
	}
	defer s.remove()
	p, err := s.propose(ctx)
	if err != nil {
		return Proposal{}, err
	}
	return p, s.show(ctx, &p)
}

// Commit commits what was shown, under a message, and returns the commit. It
// returns ErrChanged where the tree or HEAD is another one by now, and ErrBusy
// while another git holds the index.
func (c Committer) Commit(ctx context.Context, dir string, shown Proposal, message string, by Identity) (commit string, err error) {
	message = strings.TrimSpace(message)
	switch {
	case message == "":
		return "", errors.New("a commit needs a message")
	case strings.ContainsRune(message, 0):
		return "", errors.New("the message of a commit can hold no NUL")
	}
	l, err := linked(dir)
	if err != nil {
		return "", err
	}
	// Git's own way to keep two of it from writing one index.
	lock := filepath.Join(l.GitDir, "index.lock")
	index, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("commit in %s: %w; remove %s if none is", dir, ErrBusy, lock)
	}
	if err != nil {
		return "", fmt.Errorf("commit in %s: %w", dir, err)
	}
	defer func() { _ = os.Remove(lock) }() // gone after the rename
	defer index.Close()
	s, err := c.stand(ctx, l)
	if err != nil {
		return "", err
	}
	defer s.remove()
	now, err := s.propose(ctx)
	if errors.Is(err, ErrNothing) || err == nil && (now.Tree != shown.Tree || now.Head != shown.Head || now.Branch != shown.Branch) {
		return "", fmt.Errorf("commit in %s: %w", dir, ErrChanged)
	}
	if err != nil {
		return "", err
	}
	if commit, err = s.commit(ctx, now, message, by); err != nil {
		return "", err
	}
	if err := s.returnIndex(index, lock); err != nil {
		return commit, fmt.Errorf("%s is committed, but the index could not be written, so that git status will call it staged: %w", commit, err)
	}
	return commit, nil
}

// linked finds the working tree at dir and refuses what is not one whose two ends
// agree: a guest can write a .git that leads to any repository of the user's.
func linked(dir string) (Location, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Location{}, err
	}
	l, err := Locate(real)
	switch {
	case err != nil:
		return Location{}, err
	case l.WorkTree != real:
		return Location{}, fmt.Errorf("%s is a part of the repository %s: commit there with your own git", dir, l.WorkTree)
	case !l.Linked() || !l.PointsBack:
		return Location{}, fmt.Errorf("%s is no working tree that git worktree made: commit there with your own git", dir)
	}
	return l, nil
}

// stand makes a stand-in that can be committed from.
func (c Committer) stand(ctx context.Context, l Location) (*shadow, error) {
	if operation := operation(l.GitDir); operation != "" {
		return nil, fmt.Errorf("a %s is under way in %s: finish it with your own git first", operation, l.WorkTree)
	}
	s, err := c.Reader.shadow(ctx, l)
	if err != nil {
		return nil, err
	}
	s.timeout = commitTimeout
	if err := s.forCommits(ctx); err != nil {
		s.remove()
		return nil, fmt.Errorf("make a stand-in for %s: %w", l.GitDir, err)
	}
	return s, nil
}

// forCommits completes the stand-in: an index of its own, the logs of HEAD and of
// the branches at their own places, and the attributes and line endings of the
// user, which decide what bytes a file is committed as and can start nothing:
// the programs that attributes name are in configuration that is not here.
func (s *shadow) forCommits(ctx context.Context) error {
	for _, have := range s.settings {
		if have.key == "extensions.refstorage" && have.value != "files" {
			return fmt.Errorf("its references are kept as %q: commit with your own git", have.value)
		}
	}
	if err := s.ownIndex(); err != nil {
		return err
	}
	logs := filepath.Join(s.dir, "logs")
	if err := os.RemoveAll(logs); err != nil { // a link
		return err
	}
	if err := os.Mkdir(logs, 0o700); err != nil {
		return err
	}
	for target, name := range map[string]string{
		filepath.Join(s.location.GitDir, "logs/HEAD"):          "logs/HEAD",
		filepath.Join(s.location.CommonDir, "logs/refs"):       "logs/refs",
		filepath.Join(s.location.CommonDir, "info/attributes"): "info/attributes",
	} {
		if _, err := os.Stat(target); err != nil {
			continue
		}
		if err := os.Symlink(target, filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	for _, key := range []string{"core.autocrlf", "core.eol"} {
		if value := s.reader.userSetting(ctx, key, ""); value != "" && isPlain(value) && !s.sets(key) {
			s.overrides = append(s.overrides, key+"="+value)
		}
	}
	if path := s.reader.userSetting(ctx, "core.attributesFile", "path"); filepath.IsAbs(path) {
		s.overrides = append(s.overrides, "core.attributesFile="+path)
	}
	return nil
}

func (s *shadow) sets(key string) bool {
	for _, have := range s.settings {
		if have.key == key {
			return true
		}
	}
	return false
}

// propose stages everything in the stand-in's index and writes its tree.
func (s *shadow) propose(ctx context.Context) (Proposal, error) {
	var p Proposal
	var state State
	status, err := s.git(ctx, "", "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--ignore-submodules=all")
	if err != nil {
		return p, err
	}
	state.readStatus(status)
	switch {
	case state.Conflicts > 0:
		return p, fmt.Errorf("%s holds conflicts: resolve them with your own git first", s.location.WorkTree)
	case state.Branch == "":
		return p, fmt.Errorf("HEAD of %s is on no branch: make one first (git switch -c NAME)", s.location.WorkTree)
	}
	p.Branch, p.Head = state.Branch, state.Head
	names, err := s.changed(ctx)
	if err != nil {
		return p, err
	}
	if err := s.refuseFilters(ctx, names); err != nil {
		return p, err
	}
	if names != "" {
		if _, err := s.git(ctx, names, "update-index", "--no-split-index", "--add", "--remove", "--replace", "-z", "--stdin"); err != nil {
			return p, err
		}
	}
	tree, err := s.git(ctx, "", "write-tree")
	if err != nil {
		return p, err
	}
	p.Tree = strings.TrimSpace(tree)
	if p.Head == "" {
		return p, nil
	}
	before, err := s.git(ctx, "", "rev-parse", "--verify", "--end-of-options", p.Head+"^{tree}")
	if err != nil {
		return p, err
	}
	if strings.TrimSpace(before) == p.Tree {
		return p, fmt.Errorf("%s: %w", s.location.WorkTree, ErrNothing)
	}
	return p, nil
}

// changed lists what differs from the index, NUL-terminated. Directories are
// repositories inside, which stay what they are.
func (s *shadow) changed(ctx context.Context) (string, error) {
	tracked, err := s.git(ctx, "", "diff-files", "--name-only", "-z", "--ignore-submodules=all", "--no-ext-diff")
	if err != nil {
		return "", err
	}
	others, err := s.git(ctx, "", "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return "", err
	}
	if len(tracked) >= maxOutput || len(others) >= maxOutput {
		return "", fmt.Errorf("%s has too many changed files to show; is a build directory not ignored?", s.location.WorkTree)
	}
	var names strings.Builder
	names.WriteString(tracked)
	for name := range strings.SplitSeq(others, "\x00") {
		if name != "" && !strings.HasSuffix(name, "/") {
			names.WriteString(name + "\x00")
		}
	}
	return names.String(), nil
}

// refuseFilters refuses files that a filter, such as git-lfs, turns into what is
// committed: filters do not run here, and their files would go in raw.
func (s *shadow) refuseFilters(ctx context.Context, names string) error {
	if names == "" {
		return nil
	}
	text, err := s.git(ctx, names, "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return err
	}
	fields := strings.Split(text, "\x00")
	for i := 0; i+2 < len(fields); i += 3 {
		switch name, filter := fields[i], fields[i+2]; filter {
		case "unspecified", "unset", "set", "":
		default:
			return fmt.Errorf("%q goes through the filter %q, which cannot run on files of a guest: commit with your own git", name, filter)
		}
	}
	return nil
}

// show fills in what the user looks at.
func (s *shadow) show(ctx context.Context, p *Proposal) error {
	before := p.Head
	if before == "" {
		empty, err := s.git(ctx, "", "mktree")
		if err != nil {
			return err
		}
		before = strings.TrimSpace(empty)
	}
	compare := func(options ...string) (string, error) {
		args := append([]string{"diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none"}, options...)
		return s.git(ctx, "", append(args, "--end-of-options", before, p.Tree, "--")...)
	}
	numbers, err := compare("--numstat", "-z", "--no-renames")
	if err != nil {
		return err
	}
	var state State
	state.readNumbers(numbers)
	p.Added, p.Deleted, p.Files = state.Added, state.Deleted, strings.Count(numbers, "\x00")
	if p.Diff, err = compare("--patch", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/"); err != nil {
		return err
	}
	if len(p.Diff) >= maxOutput {
		p.Notes = append(p.Notes, "The diff is too long to be shown whole: its end is missing here.")
	}
	if sign, _ := strconv.ParseBool(s.reader.userSetting(ctx, "commit.gpgSign", "bool")); sign {
		p.Notes = append(p.Notes, "It will not be signed, although your commit.gpgSign asks for it: git commit --amend -S signs it.")
	}
	return nil
}

// commit makes the commit in the stand-in, brings it over, and moves the branch.
// Only what the tree holds is brought over: what was read meanwhile, while a guest
// may have swapped a directory for a link, stays in the stand-in.
func (s *shadow) commit(ctx context.Context, p Proposal, message string, by Identity) (string, error) {
	args := []string{"commit-tree", p.Tree, "-F", "-"}
	revisions := ""
	if p.Head != "" {
		args = append(args, "-p", p.Head)
		revisions = "^" + p.Head + "\n"
	}
	made, err := s.gitWith(ctx, strings.NewReader(message+"\n"), by.environ(), args...)
	if err != nil {
		return "", err
	}
	commit := strings.TrimSpace(made)
	base := filepath.Join(s.dir, "commit")
	name, err := s.git(ctx, commit+"\n"+revisions, "pack-objects", "-q", "--revs", base)
	if err != nil {
		return "", err
	}
	pack, err := os.Open(base + "-" + strings.TrimSpace(name) + ".pack")
	if err != nil {
		return "", err
	}
	defer pack.Close()
	store := []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(s.location.CommonDir, "objects")}
	if _, err := s.gitWith(ctx, pack, store, "unpack-objects", "-q"); err != nil {
		return "", err
	}
	subject, _, _ := strings.Cut(message, "\n")
	old := p.Head
	if old == "" {
		old = strings.Repeat("0", len(commit))
	}
	if _, err := s.gitWith(ctx, nil, append(store, by.environ()...), "update-ref", "-m", "commit: "+subject, "HEAD", commit, old); err != nil {
		return "", err
	}
	return commit, nil
}

// returnIndex puts the stand-in's index in the place of the repository's.
func (s *shadow) returnIndex(to *os.File, lock string) error {
	from, err := os.Open(filepath.Join(s.dir, "index"))
	if err != nil {
		return err
	}
	defer from.Close()
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}
	return os.Rename(lock, filepath.Join(s.location.GitDir, "index"))
}
