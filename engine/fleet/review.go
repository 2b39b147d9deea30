package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cellmux/cell/git"
	"cellmux/cell/state"
	"cellmux/shellctx"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
)

// reviewRequest is what a reviewer is asked. The diff rides in front of it, as
// the output of a command that the user ran.
const reviewRequest = "Review the uncommitted changes of this project, which the diff above shows. Name defects first, each with file and line. Change nothing."

// maxReviewed bounds how much of a diff rides in front of a review, in bytes: an
// agent's box is not made for more, and the rest is in the project.
const maxReviewed = 64 << 10

// Review asks for a review of a cell's uncommitted work, by the agent of a slot,
// in a slot of its own whose agent may change nothing, now and at every later
// start. It returns that slot and what became of the message. It blocks as Open
// and Send do. On failure before the message is stored no slot is left behind.
func (c *Conversation) Review(ctx context.Context, r Ref) (Ref, convo.Entry, error) {
	ref, err := c.review(ctx, r)
	if err = c.fleet.did("review "+r.Cell, err); err != nil {
		return Ref{}, convo.Entry{}, err
	}
	entry, err := c.Send(ctx, ref, reviewRequest)
	return ref, entry, err
}

// review opens the slot and leaves the diff in its conversation.
func (c *Conversation) review(ctx context.Context, r Ref) (Ref, error) {
	f := c.fleet
	on, s, err := f.cellAndSlot(ctx, r)
	if err != nil {
		return Ref{}, err
	}
	a, known := f.o.Agents.Lookup(s.Agent)
	if !known || a.ReadOnly() == "" {
		return Ref{}, fmt.Errorf("cellmux knows no read-only mode of %s", s.Agent)
	}
	diff, err := f.Diff(ctx, r.Cell)
	switch {
	case errors.Is(err, git.ErrNoRepository):
		return Ref{}, fmt.Errorf("%s is in no git repository, so that nothing tells what has changed", on.ProjectDir)
	case err != nil:
		return Ref{}, err
	case strings.TrimSpace(diff) == "":
		return Ref{}, errors.New("there are no uncommitted changes")
	}
	program, err := f.findFor(ctx, on, s.Agent)
	if err != nil {
		return Ref{}, err
	}
	made, err := f.o.Store.CreateSlot(ctx, state.Slot{Cell: on.Name, Agent: s.Agent, Title: "review", Review: true})
	if err != nil {
		return Ref{}, err
	}
	ref := Ref{Cell: on.Name, Slot: made.Number}
	err = f.start(ctx, on, made, program)
	if err == nil {
		err = c.show(ctx, ref, on.ProjectDir, diff)
	}
	if err != nil {
		// The caller may have given up; what it asked for must still go away.
		cleanup := context.WithoutCancel(ctx)
		return Ref{}, errors.Join(err, f.delete(cleanup, ref))
	}
	return ref, nil
}

// show leaves a diff in a slot's conversation, enveloped as what a program
// printed: a path after an @ in it attaches nothing.
func (c *Conversation) show(ctx context.Context, ref Ref, dir, diff string) error {
	target, err := c.fleet.target(ctx, ref)
	if err != nil {
		return err
	}
	record := shellctx.Record{Command: "git diff HEAD", CWD: dir, Output: diff, OutputBytes: len(diff)}
	if len(diff) > maxReviewed {
		record.Output = diff[:strings.LastIndexByte(diff[:maxReviewed], '\n')+1]
		record.OutputTruncated = true
	}
	message, err := shellctx.NewMessage("", record, c.fleet.o.Now())
	if err != nil {
		return err
	}
	message.Role = protocol.User
	_, err = c.service.Submit(ctx, target, message)
	return err
}
