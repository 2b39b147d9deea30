package tmux

import (
	"errors"
	"time"
)

// Pane is one row of the server's list, with control characters removed.
type Pane struct {
	ID         string // "%3"; never reused while the server lives
	Session    string
	Cell       string // tag @cellmux_cell; "" where the pane is not ours
	Slot       int    // tag @cellmux_slot; -1 where the pane is not ours
	Agent      string // tag @cellmux_agent
	Dead       bool
	ExitStatus int  // of a dead pane; 128+n when signal n ended it
	ExitKnown  bool // ExitStatus is known; it comes a little later than Dead
	Command    string
	PID        int
	Width      int
	Height     int
	Attached   int       // clients that look at its session, our control client not counted
	Activity   time.Time // last output, whole seconds
	Path       string
	Title      string
}

// List is the state of a server at one moment. Known is false when the server
// gave no answer in time: nothing may be concluded from the Panes then; they are
// those of the last answer.
type List struct {
	Known     bool
	Err       string // why not Known, a sentence
	Panes     []Pane // ordered by session, then by ID
	ServerPID int    // 0 when no server runs; a change means that every pane ID is new
	Version   string // of the server
}

// Errors that callers branch on.
var (
	ErrDead     = errors.New("the program in the pane has ended")
	ErrGone     = errors.New("the pane is gone")
	ErrLive     = errors.New("the slot has a live pane")
	ErrNoServer = errors.New("no tmux server runs")
	// ErrNoAnswer says nothing about what became of the request.
	ErrNoAnswer = errors.New("tmux gives no answer")
	ErrOld      = errors.New("tmux is too old")
)
