package shell

import (
	"slices"
	"strings"
	"testing"
)

func TestIssueRow32_AHomeOfWindowsKeepsItsBackslashes(t *testing.T) {
	home := func(o *RunOptions) {
		o.Env = slices.DeleteFunc(slices.Clone(o.Env), func(kv string) bool { return strings.HasPrefix(kv, "HOME=") })
		o.Env = append(o.Env, `HOME=C:\Users\me`)
	}
	if got := runHere(t, `printf '%s|%s' ~ ~/a/b`, home); got.stdout != `C:\Users\me|C:\Users\me/a/b` {
		t.Errorf("%q (stderr %q)", got.stdout, got.stderr)
	}
}
