package shell

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// wait reaps a program. exited is called before: while the child is a zombie,
// its PID is not given out again, so whoever finds it in the table may signal it.
func wait(cmd *exec.Cmd, exited func()) error {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	exited()
	return cmd.Wait()
}
