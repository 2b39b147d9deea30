//go:build unix

package engine

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkPrivate refuses a file or directory that belongs to another user, or
// that others may use.
func checkPrivate(path string, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to you", path, stat.Uid)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o: others may use it (chmod go= %[1]s)", path, mode)
	}
	return nil
}

// openNoFollow opens a file that must not be a symbolic link, without waiting
// for a writer if it is a pipe.
func openNoFollow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

// execute replaces this process. It returns on failure alone.
func execute(program string, argv, env []string) error {
	return syscall.Exec(program, argv, env)
}
