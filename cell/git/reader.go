package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cellmux/cell/proc"
)

// Reader looks at repositories that may be hostile. It runs nothing of theirs,
// writes nothing into them, and reaches no network. It is safe for concurrent use;
// every method blocks on git.
type Reader struct {
	Runner  proc.Runner
	Environ []string // of the host: PATH finds git, HOME its ignore patterns
	TempDir string   // for stand-ins; "" is the system's
}

// passed are the host's variables that git gets, by name.
var passed = []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "SystemRoot", "USERPROFILE"}

// environ is what git gets on a hostile repository: nothing that could name a
// program, and words in English for the messages that are shown.
func (r *Reader) environ() []string {
	env := slices.DeleteFunc(slices.Clone(r.Environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains(passed, name)
	})
	return append(env,
		"LC_ALL=C.UTF-8",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=",
	)
}

// State is what a row of the list says about a working tree.
type State struct {
	Branch         string // "" when HEAD is detached
	Head           string // commit, hexadecimal; "" before the first one
	Added, Deleted int    // lines of tracked files against HEAD
	Changed        int    // tracked files that differ from HEAD
	Untracked      int    // files and directories that git does not know; a directory counts once
	Conflicts      int
	Upstream       string // such as "origin/main"; "" there is none
	Ahead, Behind  int    // commits, against Upstream
	Operation      string // "merge", "rebase", "cherry-pick", "revert", "bisect"; "" none
	Linked         bool   // a working tree that git worktree made
}

// Clean says that nothing is uncommitted.
func (s State) Clean() bool { return s.Changed == 0 && s.Untracked == 0 && s.Conflicts == 0 }

// String is the short form for the list: "clean", "+48-12 ^2", "+9-0 ?2 v1 merge".
// ^ counts commits ahead of the upstream, v those behind, ? untracked files, !
// conflicts; "dirty" is a change without lines, of a mode or a binary file.
func (s State) String() string {
	var words []string
	switch {
	case s.Added > 0 || s.Deleted > 0:
		words = append(words, "+"+strconv.Itoa(s.Added)+"-"+strconv.Itoa(s.Deleted))
	case s.Changed > 0:
		words = append(words, "dirty")
	case s.Clean():
		words = append(words, "clean")
	}
	for _, part := range []struct {
		sign string
		n    int
	}{{"?", s.Untracked}, {"!", s.Conflicts}, {"^", s.Ahead}, {"v", s.Behind}} {
		if part.n > 0 {
			words = append(words, part.sign+strconv.Itoa(part.n))
		}
	}
	if s.Operation != "" {
		words = append(words, s.Operation)
	}
	return strings.Join(words, " ")
}

// State reads the state of the working tree around dir. It returns ErrNoRepository
// where there is none. Submodules are not looked into.
func (r *Reader) State(ctx context.Context, dir string) (State, error) {
	l, err := Locate(dir)
	if err != nil {
		return State{}, err
	}
	s, err := r.shadow(ctx, l)
	if err != nil {
		return State{}, err
	}
	defer s.remove()
	state := State{Linked: l.Linked(), Operation: operation(l.GitDir)}
	status, err := s.git(ctx, "", "status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all")
	if err != nil {
		return State{}, err
	}
	state.readStatus(status)
	numbers, err := s.git(ctx, "", s.diffArguments(state, "--numstat", "-z", "--no-renames")...)
	if err != nil {
		return State{}, err
	}
	state.readNumbers(numbers)
	if err := s.readUpstream(ctx, &state); err != nil {
		return State{}, err
	}
	return state, nil
}

// diffArguments compares the working tree with HEAD, or the index with nothing
// before the first commit.
func (s *shadow) diffArguments(state State, options ...string) []string {
	args := append([]string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all"}, options...)
	if state.Head == "" {
		return append(args, "--cached")
	}
	return append(args, "HEAD", "--")
}

// readStatus reads the entries of git status --porcelain=v2 -z.
func (state *State) readStatus(text string) {
	for entry := range strings.SplitSeq(text, "\x00") {
		kind, rest, _ := strings.Cut(entry, " ")
		switch kind {
		case "#":
			name, value, _ := strings.Cut(rest, " ")
			if name == "branch.oid" && value != "(initial)" {
				state.Head = value
			}
			if name == "branch.head" && value != "(detached)" {
				state.Branch = value
			}
		case "1", "2":
			state.Changed++
		case "u":
			state.Conflicts++
		case "?":
			state.Untracked++
		}
	}
}

// readNumbers adds up git diff --numstat -z; binary files have "-" for numbers.
func (state *State) readNumbers(text string) {
	for entry := range strings.SplitSeq(text, "\x00") {
		added, rest, ok := strings.Cut(entry, "\t")
		if !ok {
			continue
		}
		deleted, _, _ := strings.Cut(rest, "\t")
		a, _ := strconv.Atoi(added)
		d, _ := strconv.Atoi(deleted)
		state.Added += a
		state.Deleted += d
	}
}

// readUpstream compares HEAD with the branch that it tracks. The stand-in has no
// remotes, so the name of the tracking ref is the one that git clone gives.
func (s *shadow) readUpstream(ctx context.Context, state *State) error {
	if state.Branch == "" || state.Head == "" {
		return nil
	}
	var remote, merge string
	for _, setting := range s.settings {
		switch setting.key {
		case "branch." + state.Branch + ".remote":
			remote = setting.value
		case "branch." + state.Branch + ".merge":
			merge = setting.value
		}
	}
	branch, ok := strings.CutPrefix(merge, "refs/heads/")
	if !ok || remote == "" {
		return nil
	}
	ref, name := "refs/remotes/"+remote+"/"+branch, remote+"/"+branch
	if remote == "." {
		ref, name = merge, branch
	}
	counts, err := s.git(ctx, "", "rev-list", "--left-right", "--count", "--end-of-options", ref+"...HEAD", "--")
	var failed *ExitError
	if errors.As(err, &failed) {
		return nil // the tracking ref is not there: never fetched, or pruned
	}
	if err != nil {
		return err
	}
	fields := strings.Fields(counts)
	if len(fields) != 2 {
		return nil
	}
	state.Upstream = name
	state.Behind, _ = strconv.Atoi(fields[0])
	state.Ahead, _ = strconv.Atoi(fields[1])
	return nil
}

// operation tells what git is in the middle of.
func operation(gitDir string) string {
	for _, sign := range []struct{ file, name string }{
		{"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(gitDir, sign.file)); !errors.Is(err, fs.ErrNotExist) {
			return sign.name
		}
	}
	return ""
}
