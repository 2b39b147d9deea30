package git

import (
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
