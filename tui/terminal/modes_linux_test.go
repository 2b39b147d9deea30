package terminal

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// stty is the reference: what it prints of a terminal is what modesOf says.
func TestModesAreThoseOfStty(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("needs a pseudo-terminal: " + err.Error())
	}
	defer master.Close()
	defer slave.Close()
	stty := func(args ...string) string {
		cmd := exec.Command("stty", args...)
		cmd.Stdin = slave
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("stty %q: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	for _, set := range [][]string{{"sane"}, {"raw", "-echo"}, {"sane", "intr", "^X", "eol", "undef", "-ixon", "19200"}} {
		stty(set...)
		if got, want := modesOf(slave.Name()), stty("-g"); got != want {
			t.Errorf("after stty %q: %q, and stty says %q", set, got, want)
		}
	}
	if got := modesOf("/dev/null"); got != "" {
		t.Errorf("/dev/null has the modes %q", got)
	}
}
