package input

import "golang.org/x/sys/unix"

// Requests of ioctl(2) for a terminal's modes.
const (
	getModes = unix.TCGETS
	setModes = unix.TCSETS
)
