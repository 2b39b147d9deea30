//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the user that owns nothing.
const nobody = 65534

// newPlainHouse is the house of somebody who is not root: of the user who runs
// the tests, else of nobody.
func newPlainHouse(t *testing.T) *house {
	t.Helper()
	if os.Getuid() != 0 {
		return newHouse(t)
	}
	// Not below the directories of the test, which only root may enter. It goes
	// after the end of what runs in it: a tmux server is found by its socket there.
	home, err := os.MkdirTemp("", "cellmux-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	h := newHouse(t)
	for i, pair := range h.env {
		h.env[i] = strings.ReplaceAll(pair, h.home, home)
	}
	h.home, h.program = home, filepath.Join(home, "cellmux")
	h.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if err := os.Link(program.path, h.program); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "api", "run", "tmux"} {
		dir = filepath.Join(home, dir)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chown(dir, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func TestAProjectDirectoryThatCannotBeReadMarksItsCellAndTheOthersWork(t *testing.T) {
	h := newPlainHouse(t)
	closed := filepath.Join(h.home, "closed")
	if err := errors.Join(os.Mkdir(closed, 0o755), os.Chown(closed, h.uid(), h.uid())); err != nil {
		t.Fatal(err)
	}
	h.must("new")
	h.must("new", closed)
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"new", closed, "--name", "again"}, {"open", "closed", "--agent", "shell"}, {"run", "closed", "true"}} {
		code, stdout, stderr := h.cellmux(args...)
		if code == 0 || stdout != "" || !strings.Contains(stderr, closed) || !strings.Contains(stderr, "cannot be ") {
			t.Errorf("%q: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
	if list := h.must("ls", "--json"); !strings.Contains(list, "cannot be read") || strings.Contains(list, `"ref"`) {
		t.Errorf("%s", list)
	}
	if got := h.must("open", "api", "--agent", "shell"); got != "api:0\n" {
		t.Errorf("%q", got)
	}
	if err := os.Chmod(closed, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := h.must("open", "closed", "--agent", "shell"); !strings.HasPrefix(got, "closed:") {
		t.Errorf("%q", got)
	}
}

// A small file system of its own, in a mount namespace of its own, is filled and
// emptied again under the program.
func TestAFullDiskIsSaidNothingIsLostAndWorkGoesOnWhenThereIsSpace(t *testing.T) {
	namespace := []string{"unshare", "-m"}
	if os.Getuid() != 0 {
		namespace = []string{"unshare", "-r", "-m"}
	}
	if out, err := exec.Command(namespace[0], append(namespace[1:], "mount", "-t", "tmpfs", "none", "/mnt")...).CombinedOutput(); err != nil {
		t.Skipf("needs to mount a file system in a namespace: %v: %s", err, out)
	}
	h := newHouse(t)
	state := h.state("")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	script := `set -u
say() { echo "$1 exit $2"; }
mount -t tmpfs -o size=4m none "$1" || exit 1
"$2" new --name before; say before $?
dd if=/dev/zero of="$1/filler" bs=4k 2>/dev/null
i=0
while [ $i -lt 40 ]; do # what was set aside for the log is used up
	"$2" new --name full-$i || { say full $?; break; }
	i=$((i + 1))
done
"$2" run before 'echo hello'; say run $?
"$2" ls; say list $?
rm "$1/filler"
"$2" new --name after; say after $?
"$2" run before 'echo hello again'; say run-again $?
"$2" ls --json | grep -e '"name": "before"' -e '"name": "after"'
`
	cmd := exec.Command(namespace[0], append(namespace[1:], "sh", "-c", script, "sh", state, program.path)...)
	cmd.Dir, cmd.Env = filepath.Join(h.home, "api"), h.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := string(out)
	for _, want := range []string{"before exit 0", "full exit 5", "the disk is full", "free some space", "run exit 125", "list exit 5", "after exit 0", "run-again exit 0", `"name": "before"`, `"name": "after"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", got)
	}
}
