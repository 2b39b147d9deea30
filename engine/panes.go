package engine

import "context"

// PaneSpec is a pane to be opened: its tags, and what runs in it.
type PaneSpec struct {
	Cell  string
	Slot  int
	Argv  []string // the hand-off command; it holds no value
	Dir   string   // host path
	Agent string   // tag, for the list
	// Width and Height are the size to start with, in cells; 0 leaves it to the server.
	Width, Height int
}

// Panes is the terminal server that holds the panes (engine/tmux).
type Panes interface {
	// Open starts the pane of a slot, replacing a dead one; a live pane of the
	// same slot is an error. It returns tmux's pane ID, such as "%3".
	Open(ctx context.Context, p PaneSpec) (string, error)
}
