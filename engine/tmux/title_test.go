//go:build unix

package tmux

import (
	"fmt"
	"testing"
	"time"
)

// titleLimit is how long a title may take from the server into the list; what
// reads it there has the rest of the 1.5 s that a status may take.
const titleLimit = 1200 * time.Millisecond

func TestATitleIsInTheListInTime(t *testing.T) {
	p := newPrivate(t)
	p.start()
	id := p.openShell("api", 0, `while read -r title; do printf '\033]2;%s\033\\' "$title"; done`)
	p.eventually("the pane", func() bool { _, has := p.pane(id); return has })
	for i := range 3 {
		title := fmt.Sprintf("title %d", i)
		if err := p.Keys(t.Context(), id, title, "Enter"); err != nil {
			t.Fatal(err)
		}
		p.eventually("the title on the server", func() bool {
			return p.must("display-message", "-p", "-t", id, "#{pane_title}") == title
		})
		told := time.Now()
		p.eventually("the title in the list", func() bool { pane, _ := p.pane(id); return pane.Title == title })
		took := time.Since(told)
		t.Logf("%s after %s", title, took.Round(time.Millisecond))
		if took > titleLimit {
			t.Errorf("a title took %s, want at most %s", took, titleLimit)
		}
	}
}
