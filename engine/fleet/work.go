package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"cellmux/engine"
)

// works is the long work that runs now: what makes a cell ready (an image
// build, a clone, a copy).
type works struct {
	mu      sync.Mutex
	next    int
	running []*work
}

type work struct {
	Work
	end context.CancelFunc
}

// begin announces work that ctx's cancellation, or cancel, ends. progress tells
// how far it is and may be called at any rate; done must be called at its end.
func (w *works) begin(ctx context.Context, cell, what string, now time.Time, changed func()) (_ context.Context, progress func(engine.Progress), done func()) {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	w.next++
	one := &work{Work: Work{ID: strconv.Itoa(w.next), Cell: cell, What: what, Started: now}, end: cancel}
	w.mu.Unlock()
	shown := false
	progress = func(p engine.Progress) {
		w.mu.Lock()
		one.Step, one.Done, one.Total, one.Unit = p.Step, p.Done, p.Total, p.Unit
		if !shown {
			shown = true // what tells no progress is not long
			w.running = append(w.running, one)
		}
		w.mu.Unlock()
		changed()
	}
	return ctx, progress, func() {
		cancel()
		w.mu.Lock()
		w.running = slices.DeleteFunc(w.running, func(o *work) bool { return o == one })
		w.mu.Unlock()
		changed()
	}
}

func (w *works) list() []Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Work, len(w.running))
	for i, one := range w.running {
		out[i] = one.Work
	}
	return out
}

func (w *works) cancel(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.running {
		if one.ID == id {
			one.end()
			return nil
		}
	}
	return fmt.Errorf("work %s: %w; it has ended", id, ErrNotFound)
}
