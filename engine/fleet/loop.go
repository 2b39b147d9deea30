package fleet

import (
	"context"
	"time"

	"cellmux/shellctx/convo"
)

// firstAnswer is how long the first list waits for tmux.
const firstAnswer = 250 * time.Millisecond

// firstLook bounds what the first list waits for agents: what they have not told
// by then comes with the next one.
const firstLook = 50 * time.Millisecond

// probesAfter is how long after the first list the engines are asked: that starts
// programs, and a start has better use for the processors.
const probesAfter = 150 * time.Millisecond

// Run keeps the list current until ctx ends, and tells conversations when an
// agent's turn has ended or its box may take text again.
func (f *Fleet) Run(ctx context.Context) {
	f.background.open(ctx)
	defer f.background.close()
	f.background.start(f.watchDatabase)
	early := f.early(ctx)
	// Without tmux's answer every row would say "unknown" for a moment.
	answer := time.NewTimer(firstAnswer)
	select {
	case <-f.o.Server.Changes():
	case <-answer.C:
	case <-ctx.Done():
	}
	answer.Stop()
	before, kept := map[Ref]Status{}, map[Ref]time.Time{}
	for first := true; ctx.Err() == nil; first = false {
		if !first {
			select {
			case <-ctx.Done():
				return
			case <-f.o.Server.Changes():
			case <-f.o.Watcher.Changes():
			case <-f.wake:
			}
		}
		// What was told until here is in the list that is made now.
		if taken(f.wake) && first {
			early = f.early(ctx)
		}
		taken(f.o.Server.Changes())
		snap, err := f.list(ctx, early)
		early = nil
		if first {
			taken(f.o.Watcher.Changes()) // it tells what the first look saw
			f.listedOnce.Do(func() { close(f.listed) })
			f.background.start(func(ctx context.Context) {
				if after(ctx, probesAfter) {
					f.Probe(ctx)
				}
			})
			f.background.start(f.watchGuests)
		}
		if err != nil {
			if ctx.Err() == nil {
				f.complain(err)
			}
			continue
		}
		before = f.turns(ctx, before, snap)
		f.keepAnswers(ctx, kept, snap)
		f.settle(snap)
	}
}

// list makes the next list. The first one reads the agents' sources itself: with
// what the watcher has not read yet every row would say "unknown".
func (f *Fleet) list(ctx context.Context, early *listing) (Snapshot, error) {
	if early == nil {
		return f.build(ctx, f.o.Server.List(), noLook)
	}
	f.building.Lock()
	defer f.building.Unlock()
	return f.publish(ctx, *early, f.o.Server.List(), firstLook), nil
}

// taken empties a channel that tells of changes, and says whether it told of one.
func taken(changes <-chan struct{}) bool {
	select {
	case <-changes:
		return true
	default:
		return false
	}
}

// early reads for the first list while tmux has not answered; nil when that
// failed, which the list tells.
func (f *Fleet) early(ctx context.Context) *listing {
	in, err := f.read(ctx)
	if err != nil {
		return nil
	}
	return &in
}

// after waits; it is false when ctx ended first.
func after(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Listed is closed when Run has made the first list, or could not: what else a
// program does at its start waits for it.
func (f *Fleet) Listed() <-chan struct{} { return f.listed }

// complain shows the last list with the reason why there is no newer one.
func (f *Fleet) complain(err error) {
	f.o.Log.Error("the list could not be read", "error", err.Error())
	if last, has := f.snapshots.newest(); has {
		last.Server = "the list is old: " + err.Error()
		f.snapshots.publish(last)
	}
}

// turns tells what the change from one list to the next means for
// conversations, and returns the statuses to compare the next list with. An
// unknown status in between hides no turn's end.
func (f *Fleet) turns(ctx context.Context, before map[Ref]Status, snap Snapshot) map[Ref]Status {
	now := make(map[Ref]Status, len(before))
	for _, c := range snap.Cells {
		for _, s := range c.Slots {
			was := before[s.Ref]
			now[s.Ref] = s.Status
			if s.Status == Unknown {
				now[s.Ref] = was
				continue
			}
			if s.Status == was || f.o.Conversations == nil {
				continue
			}
			target := convo.Target{Session: s.SessionID, Cell: s.Ref.Cell, Slot: s.Ref.Slot, Agent: s.Agent}
			ended := was == Running && (s.Status == Idle || s.Status == Failed)
			if ended {
				f.readGitLater(c.Name)
				if err := f.o.Conversations.Answered(ctx, target, f.o.Now()); err != nil && ctx.Err() == nil {
					f.o.Log.Warn("the end of a turn was not noted", "slot", s.Ref.String(), "error", err.Error())
				}
			}
			if s.Queued > 0 && s.Status.Live() && s.Status != Waiting {
				f.o.Conversations.Ready(target)
			}
		}
	}
	return now
}
