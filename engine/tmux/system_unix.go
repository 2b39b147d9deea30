//go:build unix

package tmux

import (
	"os"
	"syscall"
)

func userID() int { return os.Getuid() }

// childEnded tells a server that a child of it has ended; to any other process,
// and when nothing has ended, that means nothing.
func childEnded(server int) {
	if server > 1 {
		_ = syscall.Kill(server, syscall.SIGCHLD)
	}
}
