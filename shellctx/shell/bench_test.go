package shell

import (
	"context"
	"os"
	"testing"
)

func BenchmarkBuiltin(b *testing.B) {
	s := NewShell(&Options{WorkingDir: b.TempDir()})
	for b.Loop() {
		if err := s.Do(context.Background(), Command{Source: "true", Stdout: os.Stderr, Stderr: os.Stderr}); err != nil {
			b.Fatal(err)
		}
	}
}
