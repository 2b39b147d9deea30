//go:build unix

package proc

import (
	"os"
	"syscall"
)

// ownSession detaches a child from the terminal: it can neither read keys that
// are meant for cellmux nor be stopped by the terminal's job control.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func exitStatus(state *os.ProcessState) (code int, signaled bool) {
	if state == nil {
		return -1, false
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), true
	}
	return state.ExitCode(), false
}
