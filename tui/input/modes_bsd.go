//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package input

import "golang.org/x/sys/unix"

// Requests of ioctl(2) for a terminal's modes.
const (
	getModes = unix.TIOCGETA
	setModes = unix.TIOCSETA
)
