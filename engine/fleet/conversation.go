package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cellmux/cell"
	"cellmux/cell/cfg"
	"cellmux/shellctx"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
	"cellmux/shellctx/run"
)

// sendPatience bounds how long Send waits for the outcome of a message that an
// agent takes at once; a busy or asking one leaves it queued.
const sendPatience = 20 * time.Second

// Conversation reads and extends the conversations of slots. It is safe for
// concurrent use.
type Conversation struct {
	fleet   *Fleet
	service *convo.Service
}

// NewConversation returns the conversations of a fleet's slots.
func NewConversation(f *Fleet, service *convo.Service) *Conversation {
	return &Conversation{fleet: f, service: service}
}

// Send stores a message for a slot and delivers it when it can be. The entry
// says what became of it; a message that cannot go now is queued, which is no
// error. The agent gets it as text, also where its box would take it for a
// command such as /compact: those are typed into its pane.
func (c *Conversation) Send(ctx context.Context, r Ref, text string) (convo.Entry, error) {
	target, err := c.fleet.target(ctx, r)
	if err != nil {
		return convo.Entry{}, err
	}
	if a, known := c.fleet.o.Agents.Lookup(target.Agent); known && !a.TakesMessages() {
		return convo.Entry{}, fmt.Errorf("send to %s: a %s takes no messages; use ! to run a command there", r, target.Agent)
	}
	message := protocol.NewText("", protocol.User, text, c.fleet.o.Now())
	receipt, err := c.service.Submit(ctx, target, message)
	if err != nil {
		return convo.Entry{}, c.fleet.did("send to "+r.String(), err)
	}
	// The message is stored: from here on nothing is an error of sending.
	if c.withoutPane(ctx, r, target) {
		c.fleet.poke()
		return receipt.Entry, nil // a turn takes minutes: whoever runs the conversations begins it
	}
	attempt, cancel := context.WithTimeout(ctx, sendPatience)
	defer cancel()
	deliverErr := c.service.Deliver(attempt, target)
	entry, err := c.service.Entry(context.WithoutCancel(ctx), receipt.Entry.Seq)
	if err != nil {
		return receipt.Entry, nil
	}
	if deliverErr != nil && entry.Delivery == convo.Queued && entry.Reason == "" {
		entry.Reason = deliverErr.Error()
	}
	c.fleet.poke()
	return entry, nil
}

// Deliver tries to hand a slot's queued messages to its agent, once.
func (c *Conversation) Deliver(ctx context.Context, r Ref) error {
	target, err := c.fleet.target(ctx, r)
	if err != nil {
		return err
	}
	attempt, cancel := c.patience(ctx, r, target)
	defer cancel()
	if err := c.service.Deliver(attempt, target); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return ctx.Err()
}

// withoutPane says whether a message to a slot becomes a turn without a pane:
// nothing runs there for certain, and the agent can do that.
func (c *Conversation) withoutPane(ctx context.Context, r Ref, target convo.Target) bool {
	a, known := c.fleet.o.Agents.Lookup(target.Agent)
	if !known || !a.Headless() {
		return false
	}
	list := c.fleet.o.Server.Refresh(ctx)
	if !list.Known {
		return false
	}
	pane, has := panesBySlot(list)[r]
	return !has || pane.Dead
}

// patience bounds an attempt to deliver into a pane. A turn without one is
// bounded by the caller alone: its end would be the turn's.
func (c *Conversation) patience(ctx context.Context, r Ref, target convo.Target) (context.Context, context.CancelFunc) {
	if c.withoutPane(ctx, r, target) {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, sendPatience)
}

// Page returns up to n messages of a slot's conversation that are older than
// before (0: the newest), oldest first.
func (c *Conversation) Page(ctx context.Context, r Ref, before int64, n int) ([]convo.Entry, error) {
	target, err := c.fleet.target(ctx, r)
	if err != nil {
		return nil, err
	}
	return c.service.Page(ctx, target.Session, before, n)
}

// Search searches all conversations.
func (c *Conversation) Search(ctx context.Context, q convo.Query) ([]convo.Hit, error) {
	return c.service.Search(ctx, q)
}

// Changed tells the session IDs of conversations that grew or in which a state
// changed; "" stands for any.
func (c *Conversation) Changed(ctx context.Context) <-chan string { return c.service.Changed(ctx) }

// Record takes a finished `!` execution into its slot's conversation, once: a
// second call for the same execution changes nothing. One that asks the agent
// is queued for it. Executions of no slot stay in the shell log alone.
func (c *Conversation) Record(ctx context.Context, e run.Execution) error {
	if e.Slot < 0 || e.Mode == run.Private {
		return nil
	}
	ref := Ref{e.Cell, e.Slot}
	target, err := c.fleet.target(ctx, ref)
	if errors.Is(err, ErrNotFound) {
		// Its slot went to the trash meanwhile: the conversation outlives it.
		app := cfg.Config{Cell: e.Cell, Slot: e.Slot}.AppName()
		target, err = convo.Target{Session: cell.SessionID(app), Cell: e.Cell, Slot: e.Slot}, nil
	}
	if err != nil {
		return err
	}
	record := e.Record
	if a, known := c.fleet.o.Agents.Lookup(target.Agent); !known || !a.TakesMessages() {
		record.TriggerAgent = false // nobody there would answer
	}
	message, err := shellctx.NewMessage("exec-"+e.ID, record, e.Ended)
	if err != nil {
		return fmt.Errorf("keep what %s printed: %w", ref, err)
	}
	_, err = c.service.Submit(ctx, target, message)
	return err
}

// target is a slot as conversations know it.
func (f *Fleet) target(ctx context.Context, r Ref) (convo.Target, error) {
	_, s, err := f.cellAndSlot(ctx, r)
	if err != nil {
		return convo.Target{}, err
	}
	return convo.Target{Session: s.SessionID, Cell: s.Cell, Slot: s.Number, Agent: s.Agent}, nil
}
