package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

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

	sized bool // the size has been told
	late  bool // the list is
}

// A first frame without a list would be gone again in a moment: it is drawn only
// when there is none by then.
const listPatience = 60 * time.Millisecond

// listLate says that listPatience is over.
type listLate struct{}

func (d drawn) Init() tea.Cmd {
	return tea.Batch(d.Model.Init(), tea.Tick(listPatience, func(time.Time) tea.Msg { return listLate{} }))
}

func (d drawn) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		// Bubble Tea tells the size once more when it begins.
		if d.sized || message.Width != d.width || message.Height != d.height {
			d.frames.Repaint()
		}
		d.sized = true
	case listLate:
		d.late = true
	}
	_, command := d.Model.Update(message)
	return d, command
}

func (d drawn) View() string {
	if !d.same && !d.more() && (d.known || d.late) {
		d.frames.Show(d.Model.View())
	}
	return ""
}
