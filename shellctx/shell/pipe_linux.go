package shell

import (
	"os"

	"golang.org/x/sys/unix"
)

func growPipe(f *os.File, size int) {
	withFD(f, func(fd int) { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size) })
}

// pending is how many bytes a pipe holds.
func pending(f *os.File) int {
	n := 0
	withFD(f, func(fd int) { n, _ = unix.IoctlGetInt(fd, unix.TIOCINQ) })
	return n
}

func withFD(f *os.File, act func(fd int)) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { act(int(fd)) })
}
