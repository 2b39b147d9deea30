//go:build unix

package cli

import "golang.org/x/sys/unix"

// freeSpace is what this user may still write on the file system of dir, in
// bytes.
func freeSpace(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, err
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil
}
