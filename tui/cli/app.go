package cli

import (
	"context"
	"io"
	"time"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/run"
)

// App is the application that commands act on.
type App struct {
	Fleet        Fleet
	Panes        Panes
	Shell        Shell
	Conversation Conversation
	Jobs         Jobs
	Images       Images
	// Run keeps the list current and hands messages over until ctx ends; it is
	// started by commands that wait. nil where nothing needs to run.
	Run func(ctx context.Context)
	// Notices are sentences about what happened to the last run.
	Notices []string
	Close   func() error
}

// run starts Run and returns what ends it and waits for its end.
func (a *App) run(ctx context.Context) (stop func()) {
	if a.Run == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	return func() { cancel(); <-ended }
}

// The ports below are the part of the screen's that commands ask, and what only
// commands ask. Every method may block.

// Fleet lists and changes cells and slots.
type Fleet interface {
	Watch(ctx context.Context) <-chan fleet.Snapshot
	Refresh(ctx context.Context) (fleet.Snapshot, error)
	NewCell(ctx context.Context, n fleet.NewCell) (string, error)
	Open(ctx context.Context, cell, agent string) (fleet.Ref, error)
	// FirstContact says what to ask the user before an agent is opened in a cell;
	// without Asks there is nothing to ask.
	FirstContact(ctx context.Context, cell, agent string) (fleet.FirstContact, error)
	AnswerFirstContact(ctx context.Context, directory string, trusted bool) error
	// Resume starts a slot's program in its conversation where nothing runs;
	// started is false where something does, which is left alone.
	Resume(ctx context.Context, r fleet.Ref) (started bool, err error)
	Stop(ctx context.Context, r fleet.Ref) error
	Delete(ctx context.Context, r fleet.Ref) error
	Trust(ctx context.Context, cell, hash string) error
	// Proposal shows what Commit would commit for a cell whose own git can only
	// read.
	Proposal(ctx context.Context, cell string) (fleet.Proposal, error)
	// Commit commits a cell's work as Proposal showed it, on the host.
	Commit(ctx context.Context, cell string, shown fleet.Proposal, message string) (string, error)
	Approval(ctx context.Context, cell string) (fleet.Approval, error)
	// Revoke takes back the approval of a cell's project file.
	Revoke(ctx context.Context, cell string) error
	// Trash lists what can be restored, newest first.
	Trash(ctx context.Context) ([]fleet.Trashed, error)
	// Restore takes a cell or slot out of the trash.
	Restore(ctx context.Context, r fleet.Ref) error
	// EmptyTrash removes for good what was moved to the trash before a time, and
	// returns how many slots that were.
	EmptyTrash(ctx context.Context, before time.Time) (int, error)
	// Environment is what a program in the slot would get, KEY=VALUE in its
	// order, with the values of secrets masked. It executes nothing.
	Environment(ctx context.Context, r fleet.Ref) ([]string, error)
	// Variables says of each variable who let it in, and of each one of the
	// host's that stays out why. It executes nothing.
	Variables(ctx context.Context, r fleet.Ref) ([]fleet.Variable, error)
	// Prompts are the two prompt layers of a slot.
	Prompts(ctx context.Context, r fleet.Ref) (fleet.Prompts, error)
	// Probe asks every engine whether it can carry a cell here.
	Probe(ctx context.Context) []fleet.Engine
}

// Panes lends the terminal to panes.
type Panes interface {
	Attach(ctx context.Context, pane string) (fleet.Attachment, error)
}

// Shell runs `!` lines.
type Shell interface {
	Start(ctx context.Context, r fleet.Ref, line string, mode run.Mode, onHost bool) (run.Handle, error)
	Log(ctx context.Context, r fleet.Ref, n int) ([]run.Execution, error)
}

// Conversation reads and extends conversations.
type Conversation interface {
	Send(ctx context.Context, r fleet.Ref, text string) (convo.Entry, error)
	// Review asks for a review of the cell's uncommitted work, in a slot of its
	// own whose agent may change nothing.
	Review(ctx context.Context, r fleet.Ref) (fleet.Ref, convo.Entry, error)
	Page(ctx context.Context, r fleet.Ref, before int64, n int) ([]convo.Entry, error)
	Search(ctx context.Context, q convo.Query) ([]convo.Hit, error)
	// Deliver tries to hand a slot's queued messages to its agent, once.
	Deliver(ctx context.Context, r fleet.Ref) error
	// Decide says the user's word about a message whose fate is open.
	Decide(ctx context.Context, seq int64, word fleet.Word) (convo.Entry, error)
	Export(ctx context.Context, w io.Writer, refs ...fleet.Ref) error
	Import(ctx context.Context, r io.Reader) (convo.Imported, error)
}

// Jobs lists and ends background processes of `!` commands.
type Jobs interface {
	Jobs(ctx context.Context) ([]fleet.Job, error)
	KillJob(ctx context.Context, id string) error
}
