package fleet

import (
	"context"
	"time"

	"cellmux/shellctx/convo"
)

// firstAnswer is how long the first list waits for tmux.
const firstAnswer = 250 * time.Millisecond

// Run keeps the list current until ctx ends, and tells conversations when an
// agent's turn has ended or its box may take text again.
func (f *Fleet) Run(ctx context.Context) {
	f.background.open(ctx)
	defer f.background.close()
	f.background.start(f.watchDatabase)
	f.background.start(func(ctx context.Context) { f.Probe(ctx) })
	// Without tmux's answer every row would say "unknown" for a moment.
	answer := time.NewTimer(firstAnswer)
	select {
	case <-f.o.Server.Changes():
	case <-answer.C:
	case <-ctx.Done():
	}
	answer.Stop()
	f.poke()
	before, kept := map[Ref]Status{}, map[Ref]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.o.Server.Changes():
		case <-f.o.Watcher.Changes():
		case <-f.wake:
		}
		snap, err := f.build(ctx, f.o.Server.List(), false)
		if err != nil {
			if ctx.Err() == nil {
				f.complain(err)
			}
			continue
		}
		before = f.turns(ctx, before, snap)
		f.keepAnswers(ctx, kept, snap)
	}
}

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
				if err := f.o.Conversations.Answered(ctx, target); err != nil && ctx.Err() == nil {
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
