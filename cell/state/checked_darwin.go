package state

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootedAt is when the machine began to run.
func bootedAt(time.Time) (time.Time, bool) {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return time.Time{}, false
	}
	return time.Unix(tv.Unix()), true
}
