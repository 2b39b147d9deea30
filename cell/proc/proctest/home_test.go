//go:build linux

package proctest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cellmux/cell/proc"
	"cellmux/cell/proc/proctest"
)

func TestWhatATestHasLeftInItsHomeIsEndedAndNothingElse(t *testing.T) {
	home, other := t.TempDir(), t.TempDir()
	start := func(home string) *exec.Cmd {
		ready := filepath.Join(home, "ready")
		cmd := exec.Command("sh", "-c", `trap "" TERM HUP; setsid sh -c 'trap "" TERM HUP; echo up >"$HOME/ready"; exec sleep 1000' & wait`)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		for {
			if _, err := os.Stat(ready); err == nil {
				return cmd
			}
		}
	}
	mine, others := start(home), start(other)
	theirs, err := proc.StartTime(others.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	proctest.EndAllOf(t, home)
	if err := mine.Wait(); err == nil || mine.ProcessState.ExitCode() != -1 {
		t.Errorf("it ended by itself: %v", err)
	}
	if proc.Ended(others.Process.Pid, theirs) {
		t.Error("a process with another home was ended")
	}
	proctest.EndAllOf(t, other)
}
