package tui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hinshun/vt10x"

	"cellmux/tui/tuitest"
)

var sizes = [][2]int{{40, 12}, {60, 20}, {80, 24}, {100, 30}, {120, 36}, {200, 60}}

func TestFramesAtEverySize(t *testing.T) {
	for _, size := range sizes {
		name := fmt.Sprintf("list-%dx%d", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			tuitest.Run(t, tuitest.Sample(), tuitest.Options{Width: size[0], Height: size[1]}, func(ui *tuitest.UI) {
				golden(t, ui, name)
			})
		})
		name = "ascii-" + name
		t.Run(name, func(t *testing.T) {
			tuitest.Run(t, tuitest.Sample(), tuitest.Options{Width: size[0], Height: size[1], Env: map[string]string{"LANG": "C"}}, func(ui *tuitest.UI) {
				for _, r := range ui.Frame() {
					if r > 0x7e {
						t.Fatalf("LANG=C shows %q:\n%s", r, ui.Frame())
					}
				}
				golden(t, ui, name)
			})
		})
	}
}

func TestTheTerminalShowsWhatTheFrameSays(t *testing.T) {
	// Rows place the cursor by sequences, which Frame does not see: a terminal
	// emulator must come to the same picture, with a box over it too.
	screen(t, func(ui *tuitest.UI) {
		for _, keys := range [][]string{{}, {"j", "x"}, {"esc", ":"}, {"esc", "?"}, {"esc", "n"}, {"esc", "!"}} {
			ui.Press(keys...)
			emulator := vt10x.New(vt10x.WithSize(120, 36))
			fmt.Fprint(emulator, strings.ReplaceAll(ui.Colours(), "\n", "\r\n"))
			got := strings.Split(strings.TrimRight(emulator.String(), "\n"), "\n")
			for i, want := range strings.Split(ui.Frame(), "\n") {
				if i >= len(got) || strings.TrimRight(got[i], " ") != strings.TrimRight(want, " ") {
					t.Fatalf("after %v the terminal's row %d is\n%q, want\n%q", keys, i, got[min(i, len(got)-1)], want)
				}
			}
		}
	})
}
