package agent

import (
	"time"

	"golang.org/x/sys/unix"
)

// userHZ is the unit of start times in /proc/PID/stat: 100 on every Linux,
// whatever the kernel's own tick is (proc(5), sysconf(3)).
const userHZ = 100

// wallClock turns proc.StartTime into a time of day, exact to 10 ms.
func wallClock(start uint64) (time.Time, bool) {
	var boot unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil {
		return time.Time{}, false
	}
	age := time.Duration(boot.Nano()) - time.Duration(start)*time.Second/userHZ
	if age < 0 {
		age = 0
	}
	return time.Now().Add(-age - 2*time.Second/userHZ), true
}
