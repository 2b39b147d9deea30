package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"cellmux/cell/proc"
)

func TestAProgramThatHasTheConversationInAnotherTerminalIsFound(t *testing.T) {
	in := newInput(t, false)
	set := New(Options{})
	for name, other := range others {
		a, _ := set.Lookup(name)
		id := a.OwnSession(in.SessionID)
		dir := t.TempDir()
		// A shell script that waits on its terminal, as an agent would.
		script := filepath.Join(dir, name)
		if err := os.WriteFile(script, []byte("#!/bin/sh\nread line\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		slot := Slot{Agent: name, Config: in.Config, Home: in.Home, SessionID: in.SessionID}
		start := func(terminal bool, home string, args ...string) (*exec.Cmd, func()) {
			t.Helper()
			cmd := exec.Command(script, args...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
			if !terminal {
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				return cmd, func() { in.Close(); _ = cmd.Wait() }
			}
			screen, err := pty.Start(cmd)
			if err != nil {
				t.Skip("needs a pseudoterminal: ", err)
			}
			return cmd, func() { screen.Close(); _ = cmd.Wait() }
		}
		for _, c := range []struct {
			what     string
			home     string
			terminal bool
			args     []string
			ours     bool
			want     bool
		}{
			{"by hand in another terminal", in.Home, true, []string{"--resume", id}, false, true},
			{"with another home", t.TempDir(), true, []string{"--resume", id}, false, false},
			{"in the slot's own pane", in.Home, true, []string{"--resume", id}, true, false},
			{"what a killed pane left behind", in.Home, false, []string{"--resume", id}, false, false},
			{"another conversation", in.Home, true, []string{"--resume", other}, false, false},
			{"a longer word", in.Home, true, []string{"/x/" + id + ".jsonl"}, false, false},
		} {
			cmd, end := start(c.terminal, c.home, c.args...)
			looked := slot
			if c.ours {
				looked.Pane.PID = cmd.Process.Pid
			}
			eventually(t, 5*time.Second, "its command line", func() bool {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
				return strings.Contains(string(line), c.args[len(c.args)-1])
			})
			pid, found := set.Elsewhere(looked)
			if found != c.want || found && pid != cmd.Process.Pid {
				t.Errorf("%s, %s: found %v (%d), want %v", name, c.what, found, pid, c.want)
			}
			end()
		}
	}
}

func TestClaudeThatNamesNoIDInItsCommandLineIsFoundByItsRegistry(t *testing.T) {
	in := newInput(t, false)
	cmd := exec.Command("sh", "-c", "read line")
	screen, err := pty.Start(cmd)
	if err != nil {
		t.Skip("needs a pseudoterminal: ", err)
	}
	defer func() { screen.Close(); _ = cmd.Wait() }()
	begun, err := proc.StartTime(cmd.Process.Pid)
	if err != nil {
		t.Skip("needs a process table: ", err)
	}
	mustPlan(t, "claude", in)
	slot := Slot{Agent: "claude", Config: in.Config, Home: in.Home, SessionID: in.SessionID}
	entry := filepath.Join(in.Home, ".claude", "sessions", fmt.Sprint(cmd.Process.Pid)+".json")
	mustWrite(t, entry, fmt.Sprintf(`{"pid":%d,"procStart":"%d","sessionId":%q,"status":"idle","kind":"interactive"}`, cmd.Process.Pid, begun, in.SessionID))
	set := New(Options{})
	if pid, found := set.Elsewhere(slot); !found || pid != cmd.Process.Pid {
		t.Errorf("found %v (%d)", found, pid)
	}
	// A leftover whose number another process has by now.
	mustWrite(t, entry, fmt.Sprintf(`{"pid":%d,"procStart":"%d","sessionId":%q,"status":"idle","kind":"interactive"}`, cmd.Process.Pid, begun+1, in.SessionID))
	if pid, found := set.Elsewhere(slot); found {
		t.Errorf("a leftover was taken for the living process %d", pid)
	}
}
