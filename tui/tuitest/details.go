package tuitest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
	"cellmux/tui"
)

// Approve sets what of a cell's project file waits.
func (f *Fleet) Approve(cell string, acts ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.approval[cell] = fleet.Approval{Cell: cell, File: "/src/" + cell + "/devcell.toml", Hash: "hash-of-" + cell, Acts: acts}
}

// SetDiff sets the uncommitted work of a cell.
func (f *Fleet) SetDiff(cell, diff string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.diffs[cell] = diff
}

// Deliver sets what becomes of messages from now on.
func (f *Fleet) Deliver(d convo.Delivery, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delivery, f.reason = d, reason
}

// Say adds a message to a conversation, as an agent does.
func (f *Fleet) Say(r fleet.Ref, e convo.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.say(r, e)
}

func (f *Fleet) say(r fleet.Ref, e convo.Entry) convo.Entry {
	e.Seq = int64(len(f.entries[r]) + 1)
	e.Cell, e.Slot = r.Cell, r.Slot
	if e.Stored.IsZero() {
		e.Stored = time.Now()
	}
	f.entries[r] = append(f.entries[r], e)
	for _, c := range f.grown {
		select {
		case <-c:
		default:
		}
		c <- f.session(r)
	}
	return e
}

// session is a slot's session ID as the snapshot has it.
func (f *Fleet) session(r fleet.Ref) string {
	for _, c := range f.snapshot.Cells {
		for _, s := range c.Slots {
			if s.Ref == r {
				return s.SessionID
			}
		}
	}
	return ""
}

// Selected implements tui.Details.
func (f *Fleet) Selected(ctx context.Context, r fleet.Ref) error { return nil }

// Diff implements tui.Details.
func (f *Fleet) Diff(ctx context.Context, cell string) (string, error) {
	err := f.called(ctx, "Diff", cell)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.diffs[cell], err
}

// Info implements tui.Details.
func (f *Fleet) Info(ctx context.Context, r fleet.Ref) ([]fleet.Fact, error) {
	return []fleet.Fact{{Label: "Reference", Value: r.String()}, {Label: "Session", Value: "sid-" + r.String()}}, f.called(ctx, "Info", r)
}

// Approval implements tui.Details.
func (f *Fleet) Approval(ctx context.Context, cell string) (fleet.Approval, error) {
	err := f.called(ctx, "Approval", cell)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.approval[cell], err
}

// Events implements tui.Details.
func (f *Fleet) Events(ctx context.Context, n int) ([]fleet.Event, error) {
	now := time.Now()
	return []fleet.Event{
		{At: now, Action: "stop api:1", Error: "no answer within the deadline"},
		{At: now.Add(-time.Minute), Action: "open api:0", Command: []string{"tmux", "new-session", "-d", "-s", "api-0"}},
	}, f.called(ctx, "Events", n)
}

// Send implements tui.Conversation.
func (f *Fleet) Send(ctx context.Context, r fleet.Ref, text string) (convo.Entry, error) {
	if err := f.called(ctx, "Send", r, text); err != nil {
		return convo.Entry{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.say(r, convo.Entry{Message: protocol.NewText("id", protocol.User, text, time.Now()), Delivery: f.delivery, Reason: f.reason}), nil
}

// Page implements tui.Conversation.
func (f *Fleet) Page(ctx context.Context, r fleet.Ref, before int64, n int) ([]convo.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := slices.Clone(f.entries[r])
	if before > 0 {
		all = slices.DeleteFunc(all, func(e convo.Entry) bool { return e.Seq >= before })
	}
	return all[max(0, len(all)-n):], f.failures["Page"]
}

// Search implements tui.Conversation.
func (f *Fleet) Search(ctx context.Context, q convo.Query) ([]convo.Hit, error) {
	err := f.called(ctx, "Search", q.Text)
	f.mu.Lock()
	defer f.mu.Unlock()
	if errors.Is(err, context.Canceled) {
		f.calls = append(f.calls, "gave up Search "+q.Text)
	}
	var hits []convo.Hit
	for _, entries := range f.entries {
		for _, e := range entries {
			if strings.Contains(e.Message.Text(), strings.TrimSuffix(q.Text, "*")) && (q.Before == 0 || e.Seq < q.Before) {
				hits = append(hits, convo.Hit{Entry: e, Snippet: e.Message.Text()})
			}
		}
	}
	slices.SortFunc(hits, func(a, b convo.Hit) int { return cmp.Compare(b.Entry.Seq, a.Entry.Seq) })
	if q.Limit > 0 {
		hits = hits[:min(len(hits), q.Limit)]
	}
	return hits, err
}

// Review implements tui.Conversation.
func (f *Fleet) Review(ctx context.Context, r fleet.Ref) (fleet.Ref, convo.Entry, error) {
	err := f.called(ctx, "Review", r)
	return r, convo.Entry{Delivery: convo.Submitted}, err
}

// Around implements tui.Conversation.
func (f *Fleet) Around(ctx context.Context, e convo.Entry, n int) ([]convo.Entry, error) {
	err := f.called(ctx, "Around", e.Seq)
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.entries[fleet.Ref{Cell: e.Cell, Slot: e.Slot}]
	at := int(e.Seq - 1)
	return slices.Clone(all[max(0, at-n):min(len(all), at+n)]), err
}

// Decide implements tui.Conversation.
func (f *Fleet) Decide(ctx context.Context, seq int64, word fleet.Word) (convo.Entry, error) {
	err := f.called(ctx, "Decide", string(word), seq)
	f.mu.Lock()
	defer f.mu.Unlock()
	for ref, entries := range f.entries {
		for i := range entries {
			if entries[i].Seq == seq && entries[i].Delivery == convo.Unconfirmed {
				f.entries[ref][i].Delivery, f.entries[ref][i].Reason = f.delivery, f.reason
				return entries[i], err
			}
		}
	}
	return convo.Entry{}, err
}

// Asks implements tui.Conversation.
func (f *Fleet) Asks(ctx context.Context, r fleet.Ref, global bool) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	asks, ok := f.asks[r]
	return asks || !ok && global, nil
}

// SetAsks implements tui.Conversation.
func (f *Fleet) SetAsks(ctx context.Context, r fleet.Ref, asks bool) error {
	err := f.called(ctx, "SetAsks", r, asks)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks[r] = asks
	return err
}

// Changed implements tui.Conversation.
func (f *Fleet) Changed(ctx context.Context) <-chan string {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan string, 1)
	f.grown = append(f.grown, c)
	return c
}

// journal implements tui.Journal; Fleet's own Log is tui.Shell's.
type journal struct{}

func (journal) Log(context.Context, int) ([]string, error) { return []string{"a line of the log"}, nil }

// Jobs implements tui.Jobs.
func (f *Fleet) Jobs(ctx context.Context) ([]tui.Job, error) {
	return []tui.Job{{ID: "job-1", Ref: fleet.Ref{Cell: "api", Slot: 0}, Command: "sleep 1000", Started: time.Now().Add(-time.Minute)}}, f.called(ctx, "Jobs")
}

// KillJob implements tui.Jobs.
func (f *Fleet) KillJob(ctx context.Context, id string) error { return f.called(ctx, "KillJob", id) }

// Copy implements tui.Clipboard.
func (f *Fleet) Copy(ctx context.Context, text string) error { return f.called(ctx, "Copy", text) }

// Edit implements tui.Editor: the user adds a line.
func (f *Fleet) Edit(ctx context.Context, text string) (fleet.Attachment, func() (string, error), error) {
	err := f.called(ctx, "Edit", text)
	return attachment{func() error { return nil }}, func() (string, error) { return text + " and more", nil }, err
}
