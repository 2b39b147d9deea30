//go:build linux

package run

import (
	"os"
	"runtime"
	"testing"

	"cellmux/cell/proc"
)

// resources is what a process holds.
type resources struct {
	goroutines, files, children int
	heap                        uint64
}

func held(t *testing.T) resources {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	members, err := proc.Members(proc.Tree{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	return resources{runtime.NumGoroutine(), len(fds), len(members), m.HeapAlloc}
}

// TestAThousandExecutionsLeaveNothing runs all kinds of commands and compares
// goroutines, files, processes and memory with those before.
func TestAThousandExecutionsLeaveNothing(t *testing.T) {
	b := newSubject(t)
	lines := []string{
		"true", "/bin/true", "echo hi", "echo a | cat", "exit 3", "no-such-command", "if", "cd /tmp; export X=1",
		"x=$(echo a); echo $x", "sleep 0 & wait", "cat <<E\nx\nE", "cat <(echo a)", "true <(echo unread)", "echo hi >/dev/null",
		"seq 1000 | head -1", "(exit 2)", "read x", "jq -n 1", "printf '%s' x", "while :; do echo y; done | head -1",
	}
	for _, line := range lines { // everything that is made once
		b.run(line)
	}
	before := held(t)
	for i := range 1000 {
		h := b.start(lines[i%len(lines)], Context)
		if i%50 == 0 {
			h.Cancel()
		}
		for range h.Chunks() {
		}
		b.wait(h)
	}
	b.mu.Lock()
	b.seen = nil
	b.mu.Unlock()
	var after resources
	waitUntil(t, func() bool {
		after = held(t)
		return after.goroutines <= before.goroutines+2 && after.files <= before.files && after.children <= before.children
	})
	if grown := int64(after.heap) - int64(before.heap); grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	t.Logf("before %+v, after %+v", before, after)
}
