package tui_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/tui/tuitest"
)

var update = flag.Bool("update", false, "write the golden frames instead of comparing")

func TestMain(m *testing.M) {
	flag.Parse()
	time.Local = time.UTC // frames show local times
	os.Exit(m.Run())
}

// golden compares a frame with testdata/NAME.golden. The frames fix layout;
// what keys do is asserted in words elsewhere.
func golden(t *testing.T, ui *tuitest.UI, name string) {
	t.Helper()
	compareGolden(t, name, ui.Frame())
}

func compareGolden(t *testing.T, name, frame string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	var b strings.Builder
	for row := range strings.SplitSeq(frame, "\n") {
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run go test ./tui -update and look at the frame)", err)
	}
	if b.String() != string(want) {
		t.Errorf("%s changed. Got:\n%s\nwant:\n%s", path, b.String(), want)
	}
}
