package tui

import (
	"context"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/run"
)

// The ports below are all that the screen asks of the world; tui/cli asks the
// same ones. Every method may block and is called from a tea.Cmd alone.

// Fleet lists and changes cells and slots.
type Fleet interface {
	// Watch sends a snapshot at once and one after each change, until ctx ends.
	// The channel holds one: a slow reader gets the newest, and misses others.
	Watch(ctx context.Context) <-chan fleet.Snapshot
	Refresh(ctx context.Context) (fleet.Snapshot, error)
	NewCell(ctx context.Context, n fleet.NewCell) (string, error)
	// Open opens a new slot with an agent; agent "" is the first one found.
	Open(ctx context.Context, cell, agent string) (fleet.Ref, error)
	// FirstContact says what to ask the user before an agent is opened in a cell;
	// without Asks there is nothing to ask.
	FirstContact(ctx context.Context, cell, agent string) (fleet.FirstContact, error)
	AnswerFirstContact(ctx context.Context, directory string, trusted bool) error
	// Restart starts a slot's program again, in its conversation.
	Restart(ctx context.Context, r fleet.Ref) error
	Stop(ctx context.Context, r fleet.Ref) error
	// Delete moves a slot, or with Slot -1 its cell, to the trash.
	Delete(ctx context.Context, r fleet.Ref) error
	// Undo takes the newest undoable action back and says which.
	Undo(ctx context.Context) (string, error)
	Rename(ctx context.Context, r fleet.Ref, title string) error
	Pin(ctx context.Context, cell string, pinned bool) error
	Archive(ctx context.Context, r fleet.Ref, archived bool) error
	Interrupt(ctx context.Context, r fleet.Ref) error
	// Trust approves a cell's project file as Details.Approval showed it: hash
	// is the one that came with it, and a file that changed since is refused.
	Trust(ctx context.Context, cell, hash string) error
	// Agents are the choices of the agent menu for a cell, in the order in which
	// they are offered: the first that is found is what Open takes for "".
	Agents(ctx context.Context, cell string) ([]fleet.AgentChoice, error)
	// CancelWork ends a Work of the snapshot by its ID.
	CancelWork(ctx context.Context, id string) error
	// Proposal shows what Commit would commit for a cell whose own git can only
	// read (Cell.CommitsOnHost).
	Proposal(ctx context.Context, cell string) (fleet.Proposal, error)
	// Commit commits a cell's work as Proposal showed it, on the host, and returns
	// the commit; work that has changed since is refused.
	Commit(ctx context.Context, cell string, shown fleet.Proposal, message string) (string, error)
}

// Details answers what the user asks about one row.
type Details interface {
	// Selected tells which row the user looks at, so that its cell's git state
	// is read (on selection, at a turn's end and on refresh, never on a timer).
	// The answer arrives as a snapshot.
	Selected(ctx context.Context, r fleet.Ref) error
	// Diff is the uncommitted work of a cell as a unified diff without escapes.
	Diff(ctx context.Context, cell string) (string, error)
	Info(ctx context.Context, r fleet.Ref) ([]fleet.Fact, error)
	// Approval says what of a cell's project file waits for the user.
	Approval(ctx context.Context, cell string) (fleet.Approval, error)
	// Events returns what cellmux did, newest first, at most n.
	Events(ctx context.Context, n int) ([]fleet.Event, error)
}

// Panes looks at panes and lends the terminal to them.
type Panes interface {
	// Capture returns the visible screen of a pane with its SGR colours, and
	// offset lines of history above it when offset is positive.
	Capture(ctx context.Context, pane string, offset int) (fleet.Screen, error)
	// Attach returns a value for tea.Exec: it runs in the foreground until the
	// user detaches.
	Attach(ctx context.Context, pane string) (fleet.Attachment, error)
	// Type sends keys as tmux names them (type-in mode).
	Type(ctx context.Context, pane string, keys []string) error
}

// Shell runs `!` lines.
type Shell interface {
	// Start records and starts a line; where says where it runs, for the prompt.
	Start(ctx context.Context, r fleet.Ref, line string, mode run.Mode, onHost bool) (run.Handle, error)
	// Where is the prompt's text: "host ~/src/api", "docker:api-auth /src".
	Where(ctx context.Context, r fleet.Ref, onHost bool) (string, error)
	Log(ctx context.Context, r fleet.Ref, n int) ([]run.Execution, error)
	Complete(ctx context.Context, r fleet.Ref, line string, cursor int) ([]string, error)
}

// Conversation reads and extends conversations.
type Conversation interface {
	// Send stores a message for a slot and delivers it when it can be.
	Send(ctx context.Context, r fleet.Ref, text string) (convo.Entry, error)
	// Review asks for a review of the cell's uncommitted work, in a slot of its
	// own whose agent may change nothing.
	Review(ctx context.Context, r fleet.Ref) (fleet.Ref, convo.Entry, error)
	Page(ctx context.Context, r fleet.Ref, before int64, n int) ([]convo.Entry, error)
	Search(ctx context.Context, q convo.Query) ([]convo.Hit, error)
	// Around returns up to n messages before a found one and n from it on.
	Around(ctx context.Context, e convo.Entry, n int) ([]convo.Entry, error)
	// Decide says the user's word about a message whose fate is open.
	Decide(ctx context.Context, seq int64, word fleet.Word) (convo.Entry, error)
	// Asks tells whether the agent of a slot answers `!` lines; global is what
	// the user's settings say where the conversation says nothing.
	Asks(ctx context.Context, r fleet.Ref, global bool) (bool, error)
	// SetAsks changes that for one conversation.
	SetAsks(ctx context.Context, r fleet.Ref, asks bool) error
	// Changed tells that a conversation grew or a state changed; it holds one.
	Changed(ctx context.Context) <-chan string
}

// Ports joins what the screen asks of the world. Those marked optional may be
// nil: what needs them is then off, and says why.
type Ports struct {
	Fleet        Fleet
	Details      Details
	Panes        Panes
	Shell        Shell
	Conversation Conversation
	Journal      Journal   // optional
	Jobs         Jobs      // optional
	Clipboard    Clipboard // optional
	Editor       Editor    // optional
}

// Journal tells what cellmux logged (L); what it did (@) is Details.Events.
type Journal interface {
	// Log returns the newest n lines of the log file, newest last.
	Log(ctx context.Context, n int) ([]string, error)
}

// Job is a background process that a `!` command left behind.
type Job = fleet.Job

// Jobs lists and ends background processes of `!` commands.
type Jobs interface {
	Jobs(ctx context.Context) ([]Job, error)
	KillJob(ctx context.Context, id string) error
}

// Clipboard is the system's clipboard; OSC 52 is written by the screen itself.
type Clipboard interface {
	Copy(ctx context.Context, text string) error
}

// Editor lends the terminal to the user's editor. After the attachment has run,
// text returns what was saved.
type Editor interface {
	Edit(ctx context.Context, text string) (a fleet.Attachment, saved func() (string, error), err error)
}
