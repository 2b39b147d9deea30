package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostile makes a repository in which every way that is known to make git run a
// program leads to a script that writes its name into marks.
func hostile(t *testing.T) (r repository, marks string) {
	t.Helper()
	r = newRepository(t)
	marks = filepath.Join(t.TempDir(), "marks")
	if err := os.Mkdir(marks, 0o755); err != nil {
		t.Fatal(err)
	}
	trap := func(name string) string {
		path := filepath.Join(r.dir, ".git", "trap-"+name)
		script := "#!/bin/sh\ntouch '" + marks + "/" + name + "'\ncat 2>/dev/null\nexit 0\n"
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r.commit("a.txt", "1\n2\n")
	r.commit("b.bin", "1\n")
	r.commit("c.cmd", "1\n")
	r.commit("d.proc", "1\n")
	r.write("sub/README", "x\n")
	sub := repository{t, filepath.Join(r.dir, "sub"), r.env}
	sub.git("init", "-q", "-b", "main")
	sub.commit("README", "x\n")
	sub.git("config", "core.fsmonitor", trap("submodule-fsmonitor"))
	r.git("add", "sub")
	r.write(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n")
	r.write(".gitattributes", "*.txt filter=evil\n*.bin diff=evil\n*.cmd diff=evilcommand\n*.proc filter=process\n")
	r.git("add", ".gitmodules", ".gitattributes")
	r.git("commit", "-q", "-m", "attributes")
	sub.write("README", "changed\n")

	included := filepath.Join(r.dir, ".git", "included")
	config := `
[core]
	fsmonitor = ` + trap("fsmonitor") + `
	hooksPath = .git/evil-hooks
	attributesFile = ` + filepath.Join(r.dir, ".git", "attributes") + `
	sshCommand = ` + trap("ssh") + `
	pager = ` + trap("pager") + `
	editor = ` + trap("editor") + `
	askPass = ` + trap("askpass") + `
	gitProxy = ` + trap("proxy") + `
[filter "evil"]
	clean = ` + trap("clean") + `
	smudge = ` + trap("smudge") + `
	required = true
[filter "process"]
	process = ` + trap("process") + `
[diff]
	external = ` + trap("external") + `
	submodule = diff
	ignoreSubmodules = none
[diff "evil"]
	textconv = ` + trap("textconv") + `
[diff "evilcommand"]
	command = ` + trap("command") + `
[credential]
	helper = ` + trap("credential") + `
[gpg]
	program = ` + trap("gpg") + `
[log]
	showSignature = true
[alias]
	status = "!` + trap("alias") + `"
[submodule]
	recurse = true
[submodule "sub"]
	active = true
	update = !touch ` + marks + `/submodule-update
[status]
	submoduleSummary = true
[extensions]
	partialClone = evil
[remote "evil"]
	url = "ext::` + trap("transport") + ` %S"
	promisor = true
	uploadpack = ` + trap("uploadpack") + `
[branch "main"]
	remote = evil
	merge = refs/heads/main
[include]
	path = ` + included + `
`
	f, err := os.OpenFile(filepath.Join(r.dir, ".git/config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(config); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r.write(".git/included", "[filter \"evil\"]\n\tclean = "+trap("included-clean")+"\n")
	r.write(".git/info/attributes", "*.txt filter=evil diff=evil\n")
	r.write(".git/attributes", "*.txt filter=evil\n")
	for _, hook := range []string{"post-index-change", "reference-transaction", "pre-commit", "post-checkout", "fsmonitor-watchman", "pre-auto-gc"} {
		r.write(".git/evil-hooks/"+hook, "#!/bin/sh\ntouch '"+marks+"/hook-"+hook+"'\n")
		r.write(".git/hooks/"+hook, "#!/bin/sh\ntouch '"+marks+"/hook-"+hook+"'\n")
	}
	for name, text := range map[string]string{"a.txt": "1\n3\n", "b.bin": "2\n", "c.cmd": "2\n", "d.proc": "2\n", "new.txt": "new\n"} {
		r.write(name, text)
	}
	return r, marks
}

func marksIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

// The traps must be live: what the plain git of this machine runs in that
// repository is what the next test shows a Reader not to run.
func TestTheHostileRepositoryRunsItsProgramsUnderPlainGit(t *testing.T) {
	r, marks := hostile(t)
	for _, args := range [][]string{
		{"status", "--porcelain"},
		{"diff", "HEAD", "--", "b.bin"},
		{"diff", "--no-ext-diff", "HEAD", "--", "b.bin"},
		{"diff", "--no-ext-diff", "--submodule=diff", "HEAD", "--", "sub"},
		{"add", "b.bin"},
	} {
		out, err := r.try(args...)
		t.Logf("git %q: %v %s", args, err, out)
	}
	ran := marksIn(t, marks)
	for _, want := range []string{"fsmonitor", "included-clean", "external", "textconv", "process", "hook-post-index-change", "submodule-fsmonitor"} {
		if !strings.Contains(" "+ran+" ", " "+want+" ") {
			t.Errorf("the trap %s is not live; ran: %s", want, ran)
		}
	}
}

func TestAReaderRunsNothingOfAHostileRepository(t *testing.T) {
	r, marks := hostile(t)
	before := snapshot(t, r.dir)
	state, err := r.reader().State(t.Context(), r.dir)
	if err != nil {
		t.Fatal(err)
	}
	if state.String() != "+4-4 ?1" || state.Branch != "main" {
		t.Errorf("state %q %+v", state, state)
	}
	diff, err := r.reader().Diff(t.Context(), r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+3\n", "+++ b/new.txt", "+++ b/c.cmd", "+++ b/d.proc"} {
		if !strings.Contains(diff, want) {
			t.Errorf("%q is not in\n%s", want, diff)
		}
	}
	if strings.Contains(diff, "changed") {
		t.Error("the diff looked into a submodule")
	}
	if ran := marksIn(t, marks); ran != "" {
		t.Errorf("ran: %s", ran)
	}
	if after := snapshot(t, r.dir); before != after {
		t.Error("reading changed the repository")
	}
}

func TestAMissingObjectIsNotFetched(t *testing.T) {
	r, marks := hostile(t)
	objects := filepath.Join(r.dir, ".git/objects")
	blob := strings.TrimSpace(r.git("-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "rev-parse", "HEAD:a.txt"))
	if err := os.Remove(filepath.Join(objects, blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(marks); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(marks, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := r.reader().Diff(t.Context(), r.dir); err == nil {
		t.Error("a diff without its object must be an error")
	}
	if ran := marksIn(t, marks); ran != "" {
		t.Errorf("ran: %s", ran)
	}
}

func TestAHostileGitDirectoryIsRefusedWithoutHanging(t *testing.T) {
	for name, plant := range map[string]func(r repository) error{
		"the pointer is a loop": func(r repository) error {
			return os.WriteFile(filepath.Join(r.dir, ".git"), []byte("gitdir: "+r.dir), 0o600)
		},
		"the pointer is huge": func(r repository) error {
			return os.WriteFile(filepath.Join(r.dir, ".git"), make([]byte, maxPointer+1), 0o600)
		},
		"the pointer is empty": func(r repository) error { return os.WriteFile(filepath.Join(r.dir, ".git"), nil, 0o600) },
	} {
		r := newRepository(t)
		if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
			t.Fatal(err)
		}
		if err := plant(r); err != nil {
			t.Fatal(err)
		}
		if _, err := r.reader().State(t.Context(), r.dir); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A guest that writes a working tree can write its .git, too, and lead git to
// any repository of the user's.
func TestRedirectedRepositories(t *testing.T) {
	victim := newRepository(t)
	victim.commit("secret", "secret of another repository\n")
	before := snapshot(t, victim.dir)
	mark := filepath.Join(t.TempDir(), "ran")
	evil := "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch " + mark + "; false\n\tworktree = /etc\n"
	plain := func(t *testing.T) repository {
		r := newRepository(t)
		r.commit("a", "1\n")
		r.write("a", "2\n")
		return r
	}
	pointer := func(r repository, to string) {
		if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
			t.Fatal(err)
		}
		r.write(".git", "gitdir: "+to+"\n")
	}
	for name, c := range map[string]struct {
		plant   func(r repository)
		refused bool // for reading, too
	}{
		"a commondir in .git": {func(r repository) {
			r.write(".git/fake/config", evil)
			r.write(".git/fake/HEAD", "ref: refs/heads/main\n")
			r.write(".git/fake/objects/x", "")
			r.write(".git/fake/refs/x", "")
			r.write(".git/commondir", "fake\n")
		}, true},
		"a commondir that is a link": {func(r repository) {
			if err := os.Symlink(filepath.Join(victim.dir, ".git"), filepath.Join(r.dir, ".git/commondir")); err != nil {
				t.Fatal(err)
			}
		}, true},
		"a .git that points at another repository": {func(r repository) { pointer(r, filepath.Join(victim.dir, ".git")) }, false},
		"a .git that is a link to another repository": {func(r repository) {
			if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(victim.dir, ".git"), filepath.Join(r.dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, false},
		"a forged linked working tree": {func(r repository) {
			pointer(r, "forged")
			r.write("forged/HEAD", "ref: refs/heads/main\n")
			r.write("forged/commondir", filepath.Join(victim.dir, ".git")+"\n")
			r.write("forged/gitdir", filepath.Join(r.dir, ".git")+"\n")
			r.write("forged/config.worktree", evil)
		}, false},
		"a core.worktree that leads elsewhere": {func(r repository) { r.write(".git/config", evil) }, false},
		"a config that includes": {func(r repository) {
			r.write(".git/evil", evil)
			r.write(".git/config", "[include]\n\tpath = evil\n[includeIf \"gitdir:/\"]\n\tpath = evil\n")
		}, false},
		"alternates that lead elsewhere": {func(r repository) {
			r.write(".git/objects/info/alternates", filepath.Join(victim.dir, ".git/objects")+"\n/dev/zero\n"+r.dir+"/.git/objects\n")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := plain(t)
			c.plant(r)
			state, err := r.reader().State(t.Context(), r.dir)
			if c.refused && !errors.Is(err, ErrRedirected) {
				t.Errorf("State: %+v, %v; want ErrRedirected", state, err)
			}
			if !c.refused && err != nil {
				t.Errorf("State: %v", err)
			}
			if _, err := r.reader().Diff(t.Context(), r.dir); c.refused && !errors.Is(err, ErrRedirected) {
				t.Errorf("Diff: %v; want ErrRedirected", err)
			}
			if _, err := r.committer().Propose(t.Context(), r.dir); err == nil || errors.Is(err, ErrNothing) {
				t.Errorf("Propose: %v; it must be refused", err)
			}
			if _, err := r.committer().Commit(t.Context(), r.dir, Proposal{}, "m", ada); err == nil {
				t.Error("Commit is not refused")
			}
			if _, err := os.Lstat(mark); err == nil {
				t.Error("its monitor ran")
			}
			if after := snapshot(t, victim.dir); after != before {
				t.Error("the other repository has changed")
			}
		})
	}
}

// The trap must be live: the plain git of this machine obeys a commondir.
func TestPlainGitObeysACommondir(t *testing.T) {
	r := newRepository(t)
	r.commit("a", "1\n")
	mark := filepath.Join(t.TempDir(), "ran")
	r.write(".git/fake/config", "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch "+mark+"; false\n")
	r.write(".git/fake/HEAD", "ref: refs/heads/main\n")
	r.write(".git/fake/objects/x", "")
	r.write(".git/fake/refs/x", "")
	r.write(".git/commondir", "fake\n")
	out, err := r.try("status", "--porcelain")
	if _, missing := os.Lstat(mark); missing != nil {
		t.Errorf("the trap is not live: %v %s", err, out)
	}
}
