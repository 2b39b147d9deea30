package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/cell/proc"
)

// script writes a program into dir.
func script(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestCopyTakesTheFirstClipboardOfThisDisplay(t *testing.T) {
	dir := t.TempDir()
	script(t, dir, "wl-copy", `cat >"$OUT.wayland"`)
	script(t, dir, "xclip", `cat >"$OUT.x"`)
	out := filepath.Join(dir, "out")
	d := Desk{Runner: proc.New(), Environ: []string{"PATH=" + dir + ":/usr/bin:/bin", "OUT=" + out, "DISPLAY=:0"}}
	if err := d.Copy(t.Context(), "text\nof two lines"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out + ".x"); err != nil || string(got) != "text\nof two lines" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(out + ".wayland"); err == nil {
		t.Error("a clipboard of another display was taken")
	}
	d.Environ = []string{"PATH=" + t.TempDir()}
	if err := d.Copy(t.Context(), "x"); !errors.Is(err, ErrNoClipboard) {
		t.Errorf("%v", err)
	}
}

func TestEditorMayHaveArgumentsAndTheFileGoesAway(t *testing.T) {
	dir := t.TempDir()
	script(t, dir, "my editor", `[ "$1" = -w ] && echo "$(cat "$2") edited" >"$2"`)
	d := Desk{Environ: []string{"PATH=" + os.Getenv("PATH"), "EDITOR='" + filepath.Join(dir, "my editor") + "' -w"}, TempDir: t.TempDir()}
	a, saved, err := d.Edit(t.Context(), "draft")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := os.ReadDir(d.TempDir)
	if info, err := files[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the draft lies there with %v, %v", info.Mode(), err)
	}
	if err := a.Run(); err != nil {
		t.Fatal(err)
	}
	if text, err := saved(); err != nil || text != "draft edited\n" {
		t.Errorf("%q, %v", text, err)
	}
	if files, _ := os.ReadDir(d.TempDir); len(files) != 0 {
		t.Error("the file was left behind")
	}
}

func TestLogIsReadFromItsEnd(t *testing.T) {
	d := Desk{LogFile: filepath.Join(t.TempDir(), "cellmux.log")}
	if lines, err := d.Log(t.Context(), 3); err != nil || lines != nil {
		t.Errorf("no file: %q, %v", lines, err)
	}
	var text bytes.Buffer
	for i := range 20000 {
		fmt.Fprintf(&text, "{\"line\":%d,\"x\":%q}\n", i, strings.Repeat("y", 20))
	}
	if err := os.WriteFile(d.LogFile, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, err := d.Log(t.Context(), 2)
	if err != nil || len(lines) != 2 || !strings.HasPrefix(lines[1], `{"line":19999,`) {
		t.Errorf("%q, %v", lines, err)
	}
	lines, err = d.Log(t.Context(), 1<<30)
	if err != nil || len(lines) > 20000 || slices.ContainsFunc(lines, func(l string) bool { return !strings.HasPrefix(l, `{"line":`) }) {
		t.Errorf("%d lines, %v: a line was cut", len(lines), err)
	}
}
