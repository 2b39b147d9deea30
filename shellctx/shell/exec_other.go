//go:build !linux

package shell

import "os/exec"

// wait reaps a program. Between its end and the call of exited its PID may be
// signalled in vain.
func wait(cmd *exec.Cmd, exited func()) error {
	defer exited()
	return cmd.Wait()
}
