package fleet

import (
	"context"
	"io"

	"cellmux/shellctx/convo"
)

// Word is what a user says about a message whose fate is open.
type Word string

// The words. Only the user says them; nothing repeats a message by itself.
const (
	Again   Word = "again"   // send it once more, with the context that rode with it
	Arrived Word = "arrived" // the agent has it
	Drop    Word = "drop"    // it is not to be sent
)

// Decide says a word about a message, named by its place in the order
// (convo.Entry.Seq), and returns what became of it. One that is sent again is
// delivered as Send delivers.
func (c *Conversation) Decide(ctx context.Context, seq int64, word Word) (convo.Entry, error) {
	var err error
	switch word {
	case Again:
		err = c.service.Retry(ctx, seq)
	case Arrived:
		err = c.service.Confirm(ctx, seq)
	default:
		err = c.service.Discard(ctx, seq)
	}
	if err != nil {
		return convo.Entry{}, c.fleet.did("message "+string(word), err)
	}
	entry, err := c.service.Entry(ctx, seq)
	if err != nil || word != Again {
		return entry, err
	}
	target := convo.Target{Session: entry.Session, Cell: entry.Cell, Slot: entry.Slot, Agent: entry.Agent}
	attempt, cancel := c.patience(ctx, Ref{entry.Cell, entry.Slot}, target)
	defer cancel()
	if err := c.service.Deliver(attempt, target); err != nil && ctx.Err() != nil {
		return entry, ctx.Err() // it stays queued, which is no error otherwise
	}
	c.fleet.poke()
	return c.service.Entry(ctx, seq)
}

// Around returns up to n messages before a found one and n from it on, oldest
// first.
func (c *Conversation) Around(ctx context.Context, e convo.Entry, n int) ([]convo.Entry, error) {
	return c.service.Around(ctx, e.Session, e.Seq, n)
}

// Export writes the conversations of slots as JSON lines, all of them when none
// is named.
func (c *Conversation) Export(ctx context.Context, w io.Writer, refs ...Ref) error {
	var sessions []string
	for _, r := range refs {
		target, err := c.fleet.target(ctx, r)
		if err != nil {
			return err
		}
		sessions = append(sessions, target.Session)
	}
	return c.service.Export(ctx, w, sessions...)
}

// Import reads what Export wrote. Nothing that is imported is delivered.
func (c *Conversation) Import(ctx context.Context, r io.Reader) (convo.Imported, error) {
	return c.service.Import(ctx, r)
}

// Asks says whether the agent of a slot answers `!` commands of its
// conversation, where the line itself does not say so.
func (c *Conversation) Asks(ctx context.Context, r Ref, global bool) (bool, error) {
	target, err := c.fleet.target(ctx, r)
	if err != nil {
		return false, err
	}
	return c.service.Asks(ctx, target, false, global)
}

// SetAsks changes that for one conversation.
func (c *Conversation) SetAsks(ctx context.Context, r Ref, asks bool) error {
	target, err := c.fleet.target(ctx, r)
	if err != nil {
		return err
	}
	policy := convo.AskOff
	if asks {
		policy = convo.AskOn
	}
	return c.fleet.did("answers to ! in "+r.String(), c.service.SetAskPolicy(ctx, target, policy))
}
