package fleet

import (
	"context"
	"time"

	"cellmux/cell/cfg"
	"cellmux/engine"
	"cellmux/engine/agent"
	"cellmux/engine/tmux"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
)

// The ports below are what the fleet asks of the packages that it joins. They
// are small so that a test can stand in for the world.

// Server is the terminal server (engine/tmux).
type Server interface {
	engine.Panes
	// List is the newest known state; it does not block.
	List() tmux.List
	// Refresh asks the server now and returns the answer, Known false when none
	// came in time.
	Refresh(ctx context.Context) tmux.List
	// Changes receives after the list changed; it holds one.
	Changes() <-chan struct{}
	// Keys presses keys as tmux names them.
	Keys(ctx context.Context, pane string, keys ...string) error
	// Kill ends a pane with its program. A pane that is gone is no error.
	Kill(ctx context.Context, pane string) error
}

// Opener starts a slot's program (engine.Opener).
type Opener interface {
	Open(ctx context.Context, r engine.OpenRequest) (engine.Opened, error)
	Environment(ctx context.Context, r engine.OpenRequest) (engine.Environment, error)
	// EndLeftovers ends the agents that outlived their panes.
	EndLeftovers(ctx context.Context) ([]engine.Leftover, error)
	// End ends what a slot's pane left running in its guest.
	End(ctx context.Context, c engine.Cell, slot int) error
}

// Watcher keeps what the agents in live panes do (agent.Watcher).
type Watcher interface {
	// Observe replaces the list of slots that have a pane.
	Observe(slots []agent.Slot)
	// Read reads the sources of all observed slots now.
	Read(ctx context.Context)
	// Status returns what is known of a slot, by its key (Ref.String).
	Status(key string) agent.Status
	// Direct returns the interface for messages of the agent that runs in a slot,
	// where it has one besides its terminal. It does not block.
	Direct(key string) (agent.Direct, bool)
	// Changes tells that the status of some slot has changed; it holds one.
	Changes() <-chan struct{}
}

// Outbox is what the fleet asks of conversations (convo.Service).
type Outbox interface {
	// Open returns the messages whose fate is open, of all conversations.
	Open(ctx context.Context) ([]convo.Entry, error)
	// Ready tells that an agent can perhaps take what is queued for it.
	Ready(t convo.Target)
	// Answered tells that a turn of an agent ended at some time, with its
	// answers; one that is there already is not stored again.
	Answered(ctx context.Context, t convo.Target, ended time.Time, answers ...protocol.ChatMessage) error
	// Forget removes a conversation for good.
	Forget(ctx context.Context, session string) error
	// Append stores messages that nobody delivers; one that is there already is
	// not stored again.
	Append(ctx context.Context, t convo.Target, messages ...protocol.ChatMessage) ([]convo.Entry, error)
}

// Projects reads the devcell.toml files of a cell; it never executes anything.
type Projects interface {
	// Load gives the effective and approved configuration, which nobody may
	// change; problem and approval are sentences for the list, "" when there is
	// none.
	Load(ctx context.Context, projectDir string) (config cfg.CellConfig, problem, approval string)
	Approval(ctx context.Context, cell, projectDir string) (Approval, error)
	Approve(ctx context.Context, projectDir, hash string) error
	Revoke(ctx context.Context, projectDir string) error
	// ApproveFile approves the content with that hash of another file of a
	// project.
	ApproveFile(path, hash string) error
}
