//go:build unix

package run

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/engine"
)

func newProgramSubject(t *testing.T, program, profile string, change ...func(*Options)) *subject {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("needs %s: %v", program, err)
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".bash_profile"), []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	return newSubject(t, append([]func(*Options){func(o *Options) {
		o.Program = program
		o.Env = func(context.Context, engine.Cell, int, bool) ([]string, error) {
			return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LC_ALL=C"}, nil
		}
	}}, change...)...)
}

func TestTheUsersOwnShellRunsTheLine(t *testing.T) {
	b := newProgramSubject(t, "bash", "alias_of_mine() { echo from the profile; }\n")
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"alias_of_mine", "from the profile\n", 0},
		{"echo ${BASH_VERSION:+bash}", "bash\n", 0},
		{"false | true; echo ${PIPESTATUS[0]}", "1\n", 0},
		{"exit 3", "", 3},
		{"sh -c 'kill -9 $$'", "", 137},
		{"cat <<E\nx\nE", "x\n", 0},
		{"echo x # comment", "x\n", 0},
		{"no-such-command-x", "bash: line 1: no-such-command-x: command not found\n", 127},
	} {
		e := b.run(c.line)
		if c.code != 137 && e.Record.Output != c.want || e.Record.ExitCode != c.code || e.Note != "" {
			t.Errorf("%s: %+v note %q", c.line, e.Record, e.Note)
		}
	}
	b.run("mkdir sub; cd sub; exit 5")
	if e := b.run("pwd"); e.Record.Output != filepath.Join(b.cell.ProjectDir, "sub")+"\n" {
		t.Errorf("%+v", e.Record)
	}
	e := b.run("sleep 600 & echo hi")
	if e.Record.Output != "hi\n" || e.Leftover != 1 {
		t.Errorf("%+v", e)
	}
	h := b.start("trap '' INT TERM; echo up; while :; do sleep 600; done", Context)
	waitForOutput(t, h, "up")
	begin := time.Now()
	h.Cancel()
	if e := b.wait(h); e.State != Cancelled || time.Since(begin) > 2500*time.Millisecond {
		t.Errorf("%+v after %v", e, time.Since(begin))
	}
}

func TestTrap19_AProfileThatBreaksTheShellIsSaidAndLeftOut(t *testing.T) {
	for name, profile := range map[string]string{
		"replaces": "exec sh\n",
		"prints":   "echo welcome\n",
		"cd":       "cd /\n",
		"set -e":   "set -e\n",
		"exits":    "exit 0\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newProgramSubject(t, "bash", profile)
			e := b.run("false; pwd")
			if e.Record.Output != b.cell.ProjectDir+"\n" || e.Record.ExitCode != 0 {
				t.Errorf("%+v", e.Record)
			}
			if !strings.Contains(e.Note, "the login profile of bash") {
				t.Errorf("note %q", e.Note)
			}
			if e := b.run("true"); e.Note != "" {
				t.Errorf("said again: %q", e.Note)
			}
		})
	}
}

func TestAMissingShellFallsBackToOurs(t *testing.T) {
	b := newSubject(t, func(o *Options) { o.Program = "no-such-shell-x" })
	e := b.run("echo hi")
	if e.Record.Output != "hi\n" || !strings.Contains(e.Note, "no-such-shell-x cannot run commands (is not there)") {
		t.Errorf("%+v note %q", e.Record, e.Note)
	}
}

func TestExportsPersistInTheUsersOwnShell(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := newProgramSubject(t, "bash", "export FROM_PROFILE=profile GROWS=x$GROWS\n")
	b.run(`export A='it'"'"'s $HOME' B="two
lines" FROM_PROFILE=mine; export GONE=1; plain=no; exit 3`)
	for line, want := range map[string]string{
		`echo "$A|$B"`:              "it's $HOME|two\nlines\n",
		"echo $FROM_PROFILE $GROWS": "mine x\n", // the profile runs each time, and adds to nothing of ours
		"echo ${plain-unset}":       "unset\n",
		"env | grep -c __cellmux":   "0\n",
	} {
		if e := b.run(line); e.Record.Output != want || e.Note != "" {
			t.Errorf("%s: %q, want %q", line, e.Record.Output, want)
		}
	}
	b.run("unset GONE FROM_PROFILE; export A=changed")
	if e := b.run("echo ${GONE-gone} ${FROM_PROFILE-gone} $A"); e.Record.Output != "gone gone changed\n" {
		t.Errorf("%q", e.Record.Output)
	}
	if e := b.run("exec sh -c 'ps -o args= -p $$'"); strings.Contains(e.Record.Output, "changed") {
		t.Errorf("a value is an argument: %q", e.Record.Output)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "cellmux-line-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
