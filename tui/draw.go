package tui

import tea "github.com/charmbracelet/bubbletea"

// frames is what draws, apart from Bubble Tea.
type frames interface {
	// Show makes a frame the next to be drawn, and returns at once.
	Show(frame string)
	// Repaint draws all of the next frame.
	Repaint()
}

// drawn is the model as Bubble Tea runs it: what View gives is shown at once, and
// Bubble Tea itself, which would draw it on a tick, gets nothing to draw.
type drawn struct {
	*Model
	frames frames
	// more says that another key has come, whose frame will be the better one: keys
	// of one write become one frame.
	more func() bool
}

func (d drawn) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	if _, resized := message.(tea.WindowSizeMsg); resized {
		d.frames.Repaint()
	}
	_, command := d.Model.Update(message)
	return d, command
}

func (d drawn) View() string {
	if !d.same && !d.more() {
		d.frames.Show(d.Model.View())
	}
	return ""
}
