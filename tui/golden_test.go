package tui_test

import (
	"fmt"
	"testing"

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
