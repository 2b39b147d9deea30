//go:build unix

package proc_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"cellmux/cell/proc"
)

// A terminal is lent to the foreground process group alone: a child in a group
// or session of its own would stop at its first read.
func TestForegroundStaysInOurSessionAndGroup(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	f := proc.Foreground(proc.Cmd{Argv: []string{"sh", "-c", "cut -d' ' -f5,6 /proc/self/stat; env"}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}})
	f.SetStdin(strings.NewReader("Bubble Tea's reader, which is no terminal"))
	f.SetStdout(w)
	f.SetStdout(&bytes.Buffer{}) // passed over
	if err := f.Run(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	out, _ := io.ReadAll(r)
	_ = r.Close()
	sid, err := syscall.Getpgid(0)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(out), fmt.Sprintf("%d ", sid)) {
		t.Errorf("group and session are %s, ours is %d", out, sid)
	}
	if strings.Contains(string(out), proc.MarkerVariable) {
		t.Errorf("an attached client carries a marker: %s", out)
	}
	if err := proc.Foreground(proc.Cmd{Argv: []string{"sh", "-c", "exit 2"}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}}).Run(); err == nil {
		t.Error("a failure was not told")
	}
}
