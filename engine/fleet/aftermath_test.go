package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestScreenThatEndedWithoutGoodbyeIsToldOnceAndTheOthersAreNot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "screens")
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	killed, told, err := Appear(dir, 100, now)
	if err != nil || len(told) != 0 {
		t.Fatalf("%q, %v", told, err)
	}
	running, told, err := Appear(dir, 200, now)
	if err != nil || len(told) != 0 {
		t.Fatalf("a screen that runs was called ended: %q, %v", told, err)
	}
	killed.held.Release() // as the kernel does for a process that is gone

	third, told, err := Appear(dir, 300, now)
	if err != nil || len(told) != 1 || !strings.Contains(told[0], "process 100") || !strings.Contains(told[0], "12:00") {
		t.Errorf("%q, %v", told, err)
	}
	fourth, told, err := Appear(dir, 400, now)
	if err != nil || len(told) != 0 {
		t.Errorf("told twice: %q, %v", told, err)
	}
	for _, p := range []*Presence{running, third, fourth} {
		if err := p.Leave(); err != nil {
			t.Error(err)
		}
	}
	if _, told, err := Appear(dir, 500, now); err != nil || len(told) != 0 {
		t.Errorf("screens that said goodbye were told: %q, %v", told, err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d marks, want one", len(files))
	}
}
