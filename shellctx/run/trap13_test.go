//go:build unix

package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTrap13_AFullScreenProgramIsRefusedAndNeverHangs(t *testing.T) {
	if _, err := exec.LookPath("vim"); err != nil {
		t.Skipf("needs vim: %v", err)
	}
	refusal := "vim " + noTerminal
	t.Run("host", func(t *testing.T) {
		b := newSubject(t)
		for line, want := range map[string]string{
			"vim x":                                           "vim: " + noTerminal + "\n",
			"e=vim; $e x":                                     "vim: " + noTerminal + "\n",
			"sudo vim x 2>&1 || echo after":                   "vim: " + noTerminal + "\nafter\n",
			"if true; then env vim x; fi":                     "vim: " + noTerminal + "\n",
			"vim -es -c 'put =6*7' -c '%p' -c 'q!'":           "42",
			"vim --version | head -c 19":                      "VIM - Vi IMproved 9",
			"echo a >f; vim -es -c s/a/b/ -c wq f; cat f":     "b\n",
			"view -es -c 'put =1' -c '%p' -c 'q!' </dev/null": "1",
		} {
			e := b.run(line)
			if e.State != Exited || !strings.HasPrefix(strings.TrimRight(e.Record.Output, "\n"), strings.TrimRight(want, "\n")) {
				t.Errorf("%s: %s %+v", line, e.State, e.Record)
			}
			if line == "vim x" && e.Record.ExitCode != 126 {
				t.Errorf("%s: exit code %d", line, e.Record.ExitCode)
			}
		}
	})
	t.Run("guest", func(t *testing.T) {
		b := newGuestSubject(t, nil)
		if e := b.run("cd . && vim x"); e.State != NeverStarted || e.Record.Error != refusal {
			t.Errorf("%s %+v", e.State, e.Record)
		}
		if e := b.run("vim -es -c q"); e.State != Exited || e.Record.ExitCode > 1 {
			t.Errorf("%s %+v", e.State, e.Record)
		}
	})
	t.Run("program", func(t *testing.T) {
		b := newProgramSubject(t, "bash", "")
		if e := b.run("vim x"); e.State != NeverStarted || e.Record.Error != refusal {
			t.Errorf("%s %+v", e.State, e.Record)
		}
		if e := b.run("vim -es -c q"); e.State != Exited || e.Record.ExitCode > 1 {
			t.Errorf("%s %+v", e.State, e.Record)
		}
	})
	// Behind a script no name is seen; the switch to the alternate screen is.
	t.Run("script", func(t *testing.T) {
		script := filepath.Join(t.TempDir(), "edit")
		if err := os.WriteFile(script, []byte("#!/bin/sh\nexec vim -n x\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string]*subject{"host": newSubject(t), "guest": newGuestSubject(t, nil), "program": newProgramSubject(t, "bash", "")} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := b.run(script)
				if e.State != Cancelled || e.Record.Error != errNoScreen.Error() || !strings.Contains(e.Record.Error, "ctrl-t") {
					t.Errorf("%s %+v", e.State, e.Record)
				}
			})
		}
	})
	t.Run("what leaves the screen in time is only told", func(t *testing.T) {
		b := newSubject(t)
		e := b.run(`printf '\033[?10'; printf '49h'; sleep 0.1; printf '\033[?1049l'; sleep 3.5`)
		if e.State != Exited || !strings.Contains(e.Note, "ctrl-t") {
			t.Errorf("%s %q %+v", e.State, e.Note, e.Record)
		}
		if e := b.run(`printf '\033[1mbold'`); e.Note != "" {
			t.Errorf("note %q", e.Note)
		}
	})
}
