//go:build unix

package enginetest

import (
	"io/fs"
	"syscall"
)

// owner returns the uid that owns a file, or -1 where the system has none.
func owner(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
