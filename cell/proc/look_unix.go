//go:build unix

package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

func executable(path string, _ []string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || unix.Access(path, unix.X_OK) != nil {
		return "", false
	}
	return path, true
}

func sameVariable(a, b string) bool { return a == b }
