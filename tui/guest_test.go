package tui_test

import (
	"strings"
	"testing"

	"cellmux/engine/fleet"
	"cellmux/tui/tuitest"
)

// The state of a cell's container is in its row, what is wrong as a sentence with
// a next step below the list, and both whole where there is no pane to look at.
func TestRowTellsTheStateOfTheGuest(t *testing.T) {
	for _, size := range [][2]int{{120, 36}, {60, 20}} {
		f := tuitest.Sample()
		tuitest.Run(t, f, tuitest.Options{Width: size[0], Height: size[1]}, func(ui *tuitest.UI) {
			ui.Press("g", "g").Row("api-auth", "docker", "+48-12").NoRow("docker -")
			for _, c := range []struct {
				guest fleet.Guest
				row   []string
				note  string
			}{
				{fleet.Guest{State: fleet.GuestUp}, []string{"docker", "+48-12 ^2"}, ""},
				{fleet.Guest{State: fleet.GuestDown}, []string{"docker -", "+48-12 ^2"}, ""},
				{fleet.Guest{State: fleet.GuestMissing}, []string{"docker -", "+48-12 ^2"}, ""},
				{fleet.Guest{State: fleet.GuestPaused, Word: "paused", Trouble: "its guest was paused"}, []string{"docker =", "paused"}, "Its guest was paused"},
				{fleet.Guest{State: fleet.GuestUnknown, Word: "no docker", Trouble: "docker is not running: start it"}, []string{"docker ?", "no docker"}, "Docker is not running: start it"},
				{fleet.Guest{State: fleet.GuestMissing, Word: "disk full", Trouble: "no space is left: cellmux image prune"}, []string{"docker -", "disk full"}, "No space is left: cellmux image prune"},
				{fleet.Guest{State: fleet.GuestUp, Restart: "memory: 4g, now 8g"}, []string{"docker", "restart?"}, "Restart to apply: memory: 4g, now 8g"},
				{fleet.Guest{State: fleet.GuestUp, Word: "x\x1b[31m", Trouble: "bad\x1b]0;t\x07 text"}, []string{"docker", "x"}, "Bad text"},
			} {
				f.Change(func(s *fleet.Snapshot) { s.Cells[0].Guest = c.guest })
				ui.Settle().Row(append([]string{"api-auth"}, c.row...)...)
				if c.note != "" {
					ui.Row(c.note)
				}
				if strings.Contains(ui.Frame(), "\x1b]") {
					t.Error("an escape sequence came through")
				}
			}
			// A pane that ended in the middle of it: everything is said at length.
			f.Change(func(s *fleet.Snapshot) {
				c := &s.Cells[0]
				c.Slots = nil
				c.Guest = fleet.Guest{State: fleet.GuestUnknown, Word: "no docker", Trouble: strings.Repeat("long ", 30) + "and the next step"}
			})
			ui.Settle()
			if size[0] >= 100 {
				ui.Row("and the next step")
			}
		})
	}
}

func TestRestartNoteSaysHow(t *testing.T) {
	f := tuitest.Sample()
	tuitest.Run(t, f, tuitest.Options{}, func(ui *tuitest.UI) {
		f.Change(func(s *fleet.Snapshot) {
			s.Cells[0].Guest = fleet.Guest{State: fleet.GuestUp, Restart: "memory: 4g, now 8g"}
		})
		ui.Press("g", "g").Row("(stop its other panes (x), then r on its pane)")
		f.Change(func(s *fleet.Snapshot) { s.Cells[0].Slots = s.Cells[0].Slots[:1] })
		ui.Settle().Row("now 8g  (r on its pane)")
	})
}
