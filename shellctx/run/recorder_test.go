package run

import (
	"fmt"
	"os"
	"testing"
)

// A loop of builtins writes its lines one by one; each in a write of its own to
// disk would cost more than the loop.
func TestSmallPiecesAreWrittenTogetherAndSoon(t *testing.T) {
	dir := t.TempDir()
	r := newRecorder(-1, func() (*spill, error) { return newSpill(dir, "x", 64<<20) }, func() {})
	want := ""
	for i := range 2000 {
		line := fmt.Sprintf("line %d\n", i)
		want += line
		_, _ = r.Write([]byte(line))
		if i == 0 {
			if got, err := os.ReadFile(r.disk.path); err != nil || string(got) != line {
				t.Fatalf("the first piece waits: %q %v", got, err)
			}
		}
	}
	// Nothing more comes, and nobody ends it: a crash would find all of it.
	waitUntil(t, func() bool { got, err := os.ReadFile(r.disk.path); return err == nil && string(got) == want })
	if _, err := r.Write([]byte("later")); err != nil {
		t.Fatal(err)
	}
	res := r.finish()
	if res.produced != int64(len(want)+5) || res.text != want+"later" {
		t.Errorf("%d bytes of text, %d produced", len(res.text), res.produced)
	}
}
