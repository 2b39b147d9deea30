package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var ada = Identity{"Ada", "ada@x", "Grace", "grace@x"}

func (r repository) committer() Committer { return Committer{r.reader()} }

// linkedFrom makes a linked working tree of r; nothing of r's runs.
func (r repository) linkedFrom(args ...string) repository {
	r.t.Helper()
	quiet := []string{"-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "extensions.partialClone="}
	dir := filepath.Join(r.t.TempDir(), "linked")
	r.git(append(append(quiet, "worktree", "add", "-q", "--no-checkout"), append(args, dir)...)...)
	l := repository{r.t, dir, r.env}
	l.git(append(quiet, "read-tree", "HEAD")...)
	return l
}

func (r repository) propose() Proposal {
	r.t.Helper()
	p, err := r.committer().Propose(r.t.Context(), r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func TestCommitIsWhatGitWouldHaveMade(t *testing.T) {
	for _, detail := range []string{"follows a commit", "is the first one"} {
		t.Run(detail, func(t *testing.T) {
			main := newRepository(t)
			main.commit("kept", "1\n")
			main.commit("changed", "1\n2\n")
			main.commit("gone", "1\n")
			main.commit("becomes/a-file", "1\n")
			main.commit("becomes-a-directory", "1\n")
			r := main.linkedFrom("-b", "work")
			r.git("checkout", "-q", "-f")
			if detail == "is the first one" {
				r.git("switch", "-q", "--orphan", "begin")
			}
			r.write("changed", "1\n3\n")
			r.write("new file\nwith a line break", "x\n")
			r.write("dir/new", "x\n")
			r.write(".gitignore", "*.log\n")
			r.write("noise.log", "x\n")
			_ = os.Remove(filepath.Join(r.dir, "gone"))
			_ = os.RemoveAll(filepath.Join(r.dir, "becomes"))
			_ = os.Remove(filepath.Join(r.dir, "becomes-a-directory"))
			r.write("becomes", "a file\n")
			r.write("becomes-a-directory/with", "a file\n")
			if err := os.Symlink("/etc/hostname", filepath.Join(r.dir, "link")); err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, main.dir)
			p := r.propose()
			if after := snapshot(t, main.dir); after != before {
				t.Error("looking changed the repository")
			}
			for _, want := range []string{"+3\n", "new file mode 120000", "+/etc/hostname", "+++ b/dir/new"} {
				if !strings.Contains(p.Diff, want) {
					t.Errorf("the diff does not show %q:\n%s", want, p.Diff)
				}
			}
			commit, err := r.committer().Commit(t.Context(), r.dir, p, "What was done\n\nAnd why.\n", ada)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.git("status", "--porcelain"); got != "" {
				t.Errorf("afterwards git status says %q", got)
			}
			got := r.git("log", "-1", "--format=%H|%an <%ae>|%cn <%ce>|%B|")
			if want := commit + "|Ada <ada@x>|Grace <grace@x>|What was done\n\nAnd why.\n|\n"; got != want {
				t.Errorf("the commit is %q, want %q", got, want)
			}
			if got := r.git("reflog", "-1", "--format=%gs"); got != "commit: What was done\n" {
				t.Errorf("the log of HEAD says %q", got)
			}
			if got := r.git("reflog", "-1", "--format=%gs", p.Branch); got != "commit: What was done\n" {
				t.Errorf("the log of the branch says %q", got)
			}
			if out, err := r.try("fsck", "--strict", "--full"); err != nil {
				t.Errorf("fsck: %v %s", err, out)
			}
			// The oracle: the same files, added by git itself.
			r.git("read-tree", "--empty")
			r.git("add", "-A")
			if tree, want := strings.TrimSpace(r.git("write-tree")), strings.TrimSpace(r.git("rev-parse", "HEAD^{tree}")); tree != want {
				t.Errorf("git add -A makes the tree %s, the commit has %s", tree, want)
			}
			if _, err := r.committer().Propose(t.Context(), r.dir); !errors.Is(err, ErrNothing) {
				t.Errorf("afterwards: %v, want ErrNothing", err)
			}
		})
	}
}

func TestCommitRunsNothingOfAHostileRepository(t *testing.T) {
	main, marks := hostile(t)
	r := main.linkedFrom("-b", "work")
	// Filters are named by attributes of files that change here, too; those are
	// refused, which another test shows.
	r.write(".gitattributes", "*.bin diff=evil\n*.cmd diff=evilcommand merge=evil\n*.txt text\n")
	r.write(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ext::touch "+marks+"/module\n\tupdate = !touch "+marks+"/update\n")
	for _, name := range []string{"a.txt", "b.bin", "c.cmd", "d.proc", "new.txt"} {
		r.write(name, "changed\n")
	}
	if err := os.Remove(filepath.Join(main.dir, ".git/info/attributes")); err != nil {
		t.Fatal(err)
	}
	// The submodule, and a repository that nobody knows, with traps of their own.
	for _, name := range []string{"sub", "inner"} {
		inner := repository{t, filepath.Join(r.dir, name), r.env}
		if err := os.MkdirAll(inner.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		inner.git("init", "-q", "-b", "main")
		inner.commit("README", "x\n")
		inner.git("config", "core.fsmonitor", "touch "+marks+"/"+name+"-fsmonitor; false")
		inner.write("README", "changed\n")
	}
	f, err := os.OpenFile(filepath.Join(main.dir, ".git/config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("[commit]\n\tgpgSign = true\n\ttemplate = /etc/passwd\n[user]\n\tsigningKey = x\n[core]\n\tworktree = /etc\n[gc]\n\tauto = 1\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"commit-msg", "prepare-commit-msg", "post-commit", "post-index-change", "reference-transaction", "pre-commit"} {
		for _, dir := range []string{"hooks", "evil-hooks"} {
			main.write(".git/"+dir+"/"+hook, "#!/bin/sh\ntouch '"+marks+"/hook-"+hook+"'\n")
		}
	}
	r.env = append(r.env, "EDITOR=touch "+marks+"/editor", "GIT_EDITOR=touch "+marks+"/editor", "GIT_EXTERNAL_DIFF=touch "+marks+"/external")
	for _, mark := range strings.Fields(marksIn(t, marks)) { // of the set-up
		_ = os.Remove(filepath.Join(marks, mark))
	}
	p := r.propose()
	if _, err := r.committer().Commit(t.Context(), r.dir, p, "message", ada); err != nil {
		t.Fatal(err)
	}
	if ran := marksIn(t, marks); ran != "" {
		t.Errorf("ran: %s", ran)
	}
	quiet := []string{"-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "core.worktree=" + r.dir, "-c", "extensions.partialClone="}
	names := r.git(append(quiet, "ls-tree", "-r", "--name-only", "work")...)
	if !strings.Contains(names, "new.txt") || strings.Contains(names, "inner") {
		t.Errorf("the tree holds %q", names)
	}
	if raw := r.git(append(quiet, "cat-file", "commit", "work")...); strings.Contains(raw, "gpgsig") {
		t.Errorf("it is signed:\n%s", raw)
	}
}

func TestCommitRefusesWhatWasNotShown(t *testing.T) {
	main := newRepository(t)
	main.commit("a", "1\n")
	r := main.linkedFrom("-b", "work")
	r.git("checkout", "-q", "-f")
	r.write("a", "2\n")
	shown := r.propose()
	objects := func() (n int) {
		_ = filepath.WalkDir(filepath.Join(main.dir, ".git/objects"), func(string, os.DirEntry, error) error { n++; return nil })
		return n
	}
	before := objects()
	refused := func(what string, want error) {
		t.Helper()
		if _, err := r.committer().Commit(t.Context(), r.dir, shown, "m", ada); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if _, err := os.Lstat(filepath.Join(main.dir, ".git/worktrees/linked/index.lock")); what != "locked" && err == nil {
			t.Errorf("%s: the index stays locked", what)
		}
	}
	r.write("a", "3 swapped in after the look\n")
	refused("another content", ErrChanged)
	if got := objects(); got != before {
		t.Errorf("what was refused lies in the repository: %d entries, were %d", got, before)
	}
	r.write("a", "1\n")
	refused("nothing left", ErrChanged)
	r.write("a", "2\n")
	r.git("commit", "-q", "--allow-empty", "-m", "another")
	refused("another HEAD", ErrChanged)
	r.git("reset", "-q", "--soft", "HEAD^")
	lock := filepath.Join(main.dir, ".git/worktrees/linked/index.lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("locked", ErrBusy)
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := r.committer().Commit(t.Context(), r.dir, shown, " \n", ada); err == nil {
		t.Error("a commit without a message")
	}
	if _, err := r.committer().Commit(t.Context(), r.dir, shown, "m", ada); err != nil {
		t.Errorf("what was shown: %v", err)
	}
}

func TestCommitRefusesWhereItCannotBeRight(t *testing.T) {
	main := newRepository(t)
	main.commit("a.bin", "1\n")
	main.commit("dir/b", "1\n")
	for what, prepare := range map[string]func(r repository) string{
		"goes through the filter": func(r repository) string {
			r.write(".gitattributes", "*.bin filter=lfs\n")
			r.write("a.bin", "2\n")
			return r.dir
		},
		"is on no branch": func(r repository) string {
			r.git("switch", "-q", "--detach")
			r.write("a.bin", "2\n")
			return r.dir
		},
		"is under way": func(r repository) string {
			r.git("switch", "-q", "-c", "other")
			r.write("a.bin", "2\n")
			r.git("commit", "-q", "-a", "-m", "2")
			r.git("switch", "-q", "-")
			r.write("a.bin", "3\n")
			r.git("commit", "-q", "-a", "-m", "3")
			_, _ = r.try("merge", "other")
			return r.dir
		},
		"is a part of the repository":               func(r repository) string { return filepath.Join(r.dir, "dir") },
		"is no working tree that git worktree made": func(repository) string { return main.dir },
		"not in a git repository":                   func(r repository) string { return r.t.TempDir() },
		"there is nothing to commit":                func(r repository) string { return r.dir },
	} {
		t.Run(what, func(t *testing.T) {
			r := repository{t, main.dir, main.env}.linkedFrom("-b", strings.ReplaceAll(what, " ", "-"))
			r.git("checkout", "-q", "-f")
			_, err := r.committer().Propose(t.Context(), prepare(r))
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestCommitTellsOfASignatureThatIsMissing(t *testing.T) {
	main := newRepository(t)
	main.commit("a", "1\n")
	r := main.linkedFrom("-b", "work")
	r.write("a", "2\n")
	home := strings.TrimPrefix(r.env[1], "HOME=")
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[commit]\n\tgpgSign = yes\n[core]\n\tautocrlf = input\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.write("a", "2\r\n")
	p := r.propose()
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "not be signed") {
		t.Errorf("the notes are %q", p.Notes)
	}
	if strings.Contains(p.Diff, "\r") {
		t.Errorf("the user's core.autocrlf is not obeyed: %q", p.Diff)
	}
}
