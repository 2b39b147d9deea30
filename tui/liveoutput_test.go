package tui

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// However its pieces are cut, and however much comes in one of them, the tail of
// a running command is the last lines of what it printed.
func TestTailOfARunningCommand(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, lines := range []int{0, 1, tailLines - 1, tailLines, tailLines + 1, 5 * tailLines} {
		for _, end := range []string{"", "\n", "half a line"} {
			var text strings.Builder
			for i := range lines {
				fmt.Fprintf(&text, "%d%s\n", i, strings.Repeat(".", random.IntN(5)))
			}
			text.WriteString(end)
			want := strings.Split(text.String(), "\n")
			if want[len(want)-1] == "" {
				want = want[:len(want)-1]
			}
			want = want[max(0, len(want)-tailLines):]
			for _, largest := range []int{7, 4000, 1 << 20} {
				live := &liveRun{}
				for rest := text.String(); rest != ""; {
					n := min(1+random.IntN(largest), len(rest))
					live.write(rest[:n])
					rest = rest[n:]
				}
				if !slices.Equal(live.tail, want) {
					t.Fatalf("%d lines and %q in pieces up to %d: %d lines %q", lines, end, largest, len(live.tail), live.tail)
				}
			}
		}
	}
}
