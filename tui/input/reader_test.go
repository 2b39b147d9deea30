package input

import (
	"io"
	"testing"
)

func TestMoreTellsOfKeysThatCameInOneWrite(t *testing.T) {
	out, in := io.Pipe()
	r := NewReader(out)
	go func() { _, _ = in.Write([]byte("j\x1b[Bk")) }()
	var buffer [64]byte
	for i, want := range []struct {
		event string
		more  bool
	}{{"j", true}, {"\x1b[B", true}, {"k", false}} {
		n, err := r.Read(buffer[:])
		if got := string(buffer[:n]); err != nil || got != want.event || r.More() != want.more {
			t.Errorf("event %d is %q (%v), more %v", i, got, err, r.More())
		}
	}
}
