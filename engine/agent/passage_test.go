package agent

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPassageKeepsLinesAndNothingThatSteersATerminal(t *testing.T) {
	if got := passage("\n one\r\n\ttwo\x1b[2J\x9b\u009b31m\u202e three\x00 \n"); got != "one\n\ttwo[2J31m three" {
		t.Errorf("%q", got)
	}
	long := passage(strings.Repeat("日", maxPassage))
	if len(long) > maxPassage+3 || !utf8.ValidString(long) || !strings.HasSuffix(long, "…") {
		t.Errorf("%d bytes, ends in %q", len(long), long[len(long)-6:])
	}
}
