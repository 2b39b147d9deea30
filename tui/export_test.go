package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
)

// Heard is the message that a snapshot comes as.
func (m *Model) Heard(s fleet.Snapshot) tea.Msg { return heard[fleet.Snapshot]{value: s} }
