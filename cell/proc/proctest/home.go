package proctest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cellmux/cell/proc"
)

// endPatience bounds how long killed processes may take to vanish.
const endPatience = 10 * time.Second

// EndAllOf kills every process that was started with home as its HOME: a tmux
// server that a client has started after its test thought all was over, an agent
// that outlived its terminal. home is a scratch directory of the test's own below
// the temporary one; what still runs after ten seconds fails the test. Where the
// system tells no environments it does nothing.
func EndAllOf(t testing.TB, home string) {
	t.Helper()
	if !scratch(home) {
		t.Fatalf("end all processes of %s: it is no scratch directory", home)
	}
	for deadline := time.Now().Add(endPatience); ; {
		carriers, err := proc.Carriers("HOME")
		if err != nil {
			t.Log(err)
			return
		}
		var left []proc.Member
		for _, c := range carriers {
			if c.Getenv("HOME") == home {
				left = append(left, c.Member)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("processes with the home %s do not end: %v", home, left)
			return
		}
		_, _ = proc.EndTree(proc.Tree{Also: left}, 0) // those that are left are seen again
	}
}

// scratch says whether a directory lies below the temporary one, which may be
// named through a link.
func scratch(dir string) bool {
	for _, name := range []func() (string, error){
		func() (string, error) { return os.TempDir(), nil },
		func() (string, error) { return filepath.EvalSymlinks(os.TempDir()) },
	} {
		temporary, err := name()
		if rel, relErr := filepath.Rel(temporary, dir); err == nil && relErr == nil && rel != "." && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}
