// Package convo keeps conversations: the durable, ordered messages of one
// session ID, and what becomes of each.
//
// The rule it keeps: a message is stored before anything else happens to it,
// it is given to an agent at most once without the user's word, and what it is
// gets read from its metadata, never from its text.
package convo

import (
	"context"
	"errors"
	"time"

	"cellmux/shellctx/protocol"
)

// Delivery is where a message stands on its way to an agent.
type Delivery string

// The states. Context-only messages stay Saved until they have ridden in front
// of a delivery.
const (
	Saved       Delivery = "saved"
	Queued      Delivery = "queued"
	Typed       Delivery = "typed"       // pasted, Enter not yet given
	Unconfirmed Delivery = "unconfirmed" // perhaps submitted; only the user repeats it
	Submitted   Delivery = "submitted"
	Answered    Delivery = "answered"
	Failed      Delivery = "failed"
)

// Entry is a stored message.
type Entry struct {
	Seq      int64 // total order within a conversation, and over all of them
	Session  string
	Cell     string
	Slot     int
	Agent    string
	Message  protocol.ChatMessage
	Delivery Delivery  // "" for what was never to be delivered, such as an answer
	Reason   string    // why it is queued, unconfirmed or failed; a sentence
	Steering bool      // handed to a turn that ran already
	Partial  bool      // an answer that is still growing; it has no Seq yet
	Stored   time.Time // for the first time: of an imported one, where it was exported
}

// ErrRefused, wrapped by what a transport returns, says that nothing has reached
// the agent: the message stays queued. Any other error of Paste, Enter or Run
// leaves it unconfirmed.
var ErrRefused = errors.New("refused, nothing was typed")

// Target is the slot that a message is for, with what delivery must know.
type Target struct {
	Session string // session ID
	Cell    string
	Slot    int
	Agent   string
}

// PaneState is what an agent's pane can take right now, read immediately
// before a paste and after it.
type PaneState struct {
	Live    bool   // a pane runs the slot
	Ready   bool   // the agent's box takes text
	Busy    bool   // a turn runs
	Asking  bool   // a question is open: Enter would approve it
	Draft   bool   // the user has half typed something
	Reason  string // why not Ready, a sentence
	Unknown bool   // no answer: treat as not ready
}

// PaneTransport hands text to a live agent pane. It is implemented over tmux
// and the agent's declaration.
type PaneTransport interface {
	State(ctx context.Context, t Target) (PaneState, error)
	// Paste puts text into the agent's box as one bracketed paste. It returns
	// only after tmux has accepted or refused it; a proven refusal, such as of a
	// dead pane, wraps ErrRefused.
	Paste(ctx context.Context, t Target, text string) error
	// Enter submits what is in the box, after the agent's settle time.
	Enter(ctx context.Context, t Target) error
	// Submitted looks for proof that text became a turn, until ctx ends:
	// (true, nil) proven, (false, nil) proven not, error unknown.
	Submitted(ctx context.Context, t Target, text string, since time.Time) (bool, error)
	// SteersOnEnter says whether the agent takes a message while a turn runs.
	SteersOnEnter(t Target) bool
}

// Turn is one headless turn's outcome.
type Turn struct {
	Text  string
	Error string // a sentence; "" is success
	Usage map[string]any
}

// HeadlessTransport runs one turn through the agent's non-interactive mode.
type HeadlessTransport interface {
	// Run blocks until the turn has ended; emit receives assistant text as it
	// comes, in pieces that belong behind each other, and is called from one
	// goroutine at a time. Ending ctx cancels the turn and its process group. An
	// error that wraps ErrRefused says that no turn was begun, for instance
	// because the agent has no such mode.
	Run(ctx context.Context, t Target, text string, emit func(string)) (Turn, error)
}

// Query is a search over all conversations. Zero fields do not narrow.
type Query struct {
	Text    string // words; Search says how they are read
	Session string
	Cell    string
	Agent   string
	ExitNot *int // records whose exit code differs
	Exit    *int // records with this exit code
	Since   time.Time
	Before  int64 // only messages with a lower Seq: what comes after a hit
	Ranked  bool  // best match first in place of newest first
	Limit   int   // 0: 50
}

// Hit is a found message. Snippet marks matches with U+0002 and U+0003.
type Hit struct {
	Entry   Entry
	Snippet string
}
