package tui

import (
	"strings"
)

// markdown draws an agent's answer; until a renderer is chosen by measure it is
// shown as the text that it is.
func (m *Model) markdown(text string, w int) []string {
	return m.proseLines(strings.TrimSpace(text), w)
}
