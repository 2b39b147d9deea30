package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CheckProjectDir tells in a sentence why dir cannot be a cell's project
// directory: not absolute, gone, no directory, unreadable.
func CheckProjectDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("the project directory %q is not an absolute path", dir)
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("the project directory %s is gone; bring it back, or delete the cell", dir)
	case err != nil:
		return fmt.Errorf("the project directory cannot be looked at: %w", err)
	case !info.IsDir():
		return fmt.Errorf("the project directory %s is a file", dir)
	}
	f, err := os.Open(dir)
	if err == nil {
		_, err = f.Readdirnames(1)
		_ = f.Close()
	}
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("the project directory %s cannot be read; check its permissions", dir)
	}
	return nil
}
