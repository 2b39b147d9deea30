package fleet

import (
	"context"
	"sync"
	"time"
)

// Run keeps the list current and hands queued messages over, until ctx ends.
// It returns after everything that it started has ended.
func (f *Fleet) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	if f.o.Deliver != nil {
		snapshots := f.snapshots.watch(ctx)
		all.Go(func() { f.handOver(ctx, snapshots) })
	}
	f.poke()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.o.Server.Changes():
		case <-f.o.Watcher.Changes():
		case <-f.o.Woken:
		case <-f.wake:
		}
		if _, err := f.build(ctx, f.o.Server.List(), false); err != nil && ctx.Err() == nil {
			f.complain(err)
		}
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

// deliveryDeadline bounds one attempt to hand messages over: settle time, Enter
// and the look for proof.
const deliveryDeadline = time.Minute

// handOver tries to deliver what is queued whenever the list changes. Several
// slots are served at once, each by one attempt at a time; an attempt that the
// agent could not take is repeated after the next change.
func (f *Fleet) handOver(ctx context.Context, snapshots <-chan Snapshot) {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	var mu sync.Mutex
	busy := map[Ref]bool{}
	for snap := range snapshots {
		for _, ref := range deliverable(snap) {
			mu.Lock()
			taken := busy[ref]
			busy[ref] = true
			mu.Unlock()
			if taken {
				continue
			}
			attempts.Go(func() {
				defer func() { mu.Lock(); delete(busy, ref); mu.Unlock() }()
				attempt, cancel := context.WithTimeout(ctx, deliveryDeadline)
				defer cancel()
				if err := f.o.Deliver(attempt, ref); err != nil && ctx.Err() == nil {
					f.o.Log.Warn("delivery failed", "slot", ref.String(), "error", err.Error())
				}
			})
		}
	}
}

// deliverable are the slots with a queue whose agent may take a message now. An
// agent that asks something is never among them: the Enter would answer it.
func deliverable(snap Snapshot) []Ref {
	var out []Ref
	for _, c := range snap.Cells {
		for _, s := range c.Slots {
			if s.Queued > 0 && (s.Status == Idle || s.Status == Running || s.Status == Failed) {
				out = append(out, s.Ref)
			}
		}
	}
	return out
}
