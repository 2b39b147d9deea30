//go:build unix

package agent

import "syscall"

// nonBlocking keeps the open of a named pipe from waiting for its writer.
const nonBlocking = syscall.O_NONBLOCK
