// Package run is the `!` use case: one line becomes one execution, where its
// cell runs, recorded exactly once whatever happens.
//
// The rule it keeps: an execution has a row before it starts and a record after
// it ends; success, failure, cancel, a syntax error and "could not start" are
// all records. Cells and slots are values here; who they belong to, and what
// becomes of the record, is decided by the caller.
package run

import (
	"context"
	"time"

	"cellmux/engine"
	"cellmux/shellctx"
)

// Mode says what becomes of an execution's record.
type Mode string

// The modes, as typed: !cmd, !?cmd and !!cmd.
const (
	Context Mode = "context" // part of the conversation, no answer asked for
	Ask     Mode = "ask"     // part of the conversation, and the agent answers
	Private Mode = "private" // in the shell log and nowhere else
)

// Request is one line to run. All that may change while it runs (conversation,
// mode, directory) is fixed here.
type Request struct {
	Cell   engine.Cell
	Slot   int    // whose conversation and shell state; -1 the cell's own shell
	Line   string // shell source, without the leading marks
	Mode   Mode
	OnHost bool // run on the host although the cell is a guest
}

// State is where an execution stands.
type State string

// The states.
const (
	Running      State = "running"
	Exited       State = "exited"
	Cancelled    State = "cancelled"
	Interrupted  State = "interrupted" // cellmux ended while it ran
	NeverStarted State = "never started"
)

// Execution is one `!` line, from its row in the database to its record.
type Execution struct {
	ID       string
	Cell     string
	Slot     int
	Mode     Mode
	OnHost   bool
	State    State
	Started  time.Time
	Ended    time.Time
	Lines    int    // of output produced
	Leftover int    // background processes that still ran when it ended
	Note     string // what the user should know beside the record, a sentence
	Record   shellctx.Record
	Spill    string // file with the whole output as far as kept; "" none
}

// Chunk is output for display: SGR colours kept, every other escape dropped. A
// line that is not finished is shown as it is, and shown again when it grows or
// starts over (a progress bar).
type Chunk struct {
	Text    string
	Skipped int64 // bytes dropped for display before Text
	Rewind  bool  // Text begins with the unfinished line that the last chunk ended with, and replaces it
}

// Handle is a running execution.
type Handle interface {
	Execution() Execution // as of now
	// Chunks is closed at the end. Chunks may be dropped for a slow reader;
	// the record never is.
	Chunks() <-chan Chunk
	// Cancel ends the execution's whole process tree; what it printed is kept.
	Cancel()
	// Wait blocks until the record is stored, or ctx ends.
	Wait(ctx context.Context) (Execution, error)
}
