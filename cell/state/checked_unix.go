//go:build linux || darwin

package state

import "golang.org/x/sys/unix"

func stateOf(path string) (fileState, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return fileState{}, err
	}
	return fileState{
		device: uint64(s.Dev), inode: s.Ino, size: s.Size, modified: s.Mtim.Nano(), changed: s.Ctim.Nano(),
	}, nil
}
