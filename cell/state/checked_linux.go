package state

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootedAt is when the machine began to run.
func bootedAt(now time.Time) (time.Time, bool) {
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return time.Time{}, false
	}
	return now.Add(-time.Duration(since.Nano())), true
}
