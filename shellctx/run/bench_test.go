package run

import (
	"bytes"
	"context"
	"testing"
)

func benchmarkLine(b *testing.B, line string) {
	s := newSubject(b)
	for b.Loop() {
		h, err := s.Start(context.Background(), Request{Cell: s.cell, Line: line})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Wait(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuiltin(b *testing.B) { benchmarkLine(b, "true") }
func BenchmarkProgram(b *testing.B) { benchmarkLine(b, "/bin/true") }

// BenchmarkRecorder is what one piece of output costs, without its program.
func BenchmarkRecorder(b *testing.B) {
	dir := b.TempDir()
	r := newRecorder(-1, func() (*spill, error) { return newSpill(dir, "x", 64<<20) }, func() {})
	piece := bytes.Repeat([]byte("y\n"), 128<<10)
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		_, _ = r.Write(piece)
	}
}
