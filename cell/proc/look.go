package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// LookPath finds a program on the PATH of env ("KEY=VALUE", the last PATH
// wins), never on that of cellmux. A name with a separator must be absolute.
// Relative and empty entries of PATH are skipped: what a directory that the
// user merely stands in holds must not be run. The error wraps ErrNotFound.
func LookPath(name string, env []string) (string, error) {
	if hasSeparator(name) {
		if !filepath.IsAbs(name) {
			return "", fmt.Errorf("find %q: a program is named by an absolute path or by its name alone", name)
		}
		if path, ok := executable(name, env); ok {
			return path, nil
		}
		return "", fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	for _, dir := range filepath.SplitList(lookup(env, "PATH")) {
		if name == "" || !filepath.IsAbs(dir) {
			continue
		}
		if path, ok := executable(filepath.Join(dir, name), env); ok {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w on PATH", name, ErrNotFound)
}

func hasSeparator(name string) bool {
	return strings.ContainsRune(name, '/') || strings.ContainsRune(name, os.PathSeparator)
}

// lookup returns the last value of a variable, as the kernel's consumers do.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(env[i], "="); ok && sameVariable(key, name) {
			return value
		}
	}
	return ""
}
