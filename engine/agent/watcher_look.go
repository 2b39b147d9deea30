package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// look is one reading of a slot's sources. Looks of one slot may overlap, when
// somebody Reads while Run does: the one that began last is right.
type look struct {
	slot   Slot
	serial int
	before Status
}

// begin begins a look; false when the slot is not observed any more.
func (w *Watcher) begin(key string) (look, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slot, ok := w.slots[key]
	w.serial++
	return look{slot, w.serial, w.status[key]}, ok
}

// take reads the sources and keeps what they say. It blocks for as long as the
// agent itself takes to answer.
func (w *Watcher) take(ctx context.Context, l look) {
	status, watched := w.observe(ctx, l.slot, l.before)
	if ctx.Err() != nil {
		return // given up: what was not read says nothing
	}
	key := l.slot.Key
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.slots[key]; !ok || w.taken[key] > l.serial {
		return
	}
	w.taken[key] = l.serial
	if w.status[key] != status {
		w.status[key] = status
		nudge(w.changes)
	}
	if !slices.Equal(w.watched[key], watched) {
		w.watched[key] = watched
		nudge(w.rewatch)
	}
}

// looking is the goroutine in which Run looks at a slot.
type looking struct {
	again  bool               // one more look is due
	gaveUp bool               // the last look was given up
	stop   context.CancelFunc // of the look that is under way
}

// refresh begins a look at each of the given slots, or at all when only is nil,
// in goroutines of their own, which running waits for: an agent that does not
// answer holds up no other. What a slot's agent told while it was looked at makes
// that look old: it is given up for a new one.
func (w *Watcher) refresh(ctx context.Context, running *sync.WaitGroup, only map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.slots {
		if only != nil && !only[key] {
			continue
		}
		if underWay, has := w.looking[key]; has {
			underWay.again = true
			if only != nil && !underWay.gaveUp {
				underWay.gaveUp = true // the next is taken to its end, however much is told
				underWay.stop()
			}
			continue
		}
		this := &looking{stop: func() {}}
		w.looking[key] = this
		running.Go(func() { w.lookOn(ctx, key, this) })
	}
}

// lookOn looks at a slot until nothing more is due.
func (w *Watcher) lookOn(ctx context.Context, key string, this *looking) {
	for again := true; again; {
		one, stop := context.WithCancel(ctx)
		w.mu.Lock()
		this.stop, this.again = stop, false
		w.mu.Unlock()
		if l, ok := w.begin(key); ok {
			w.take(one, l)
		}
		w.mu.Lock()
		this.gaveUp = one.Err() != nil
		stop()
		if again = this.again && ctx.Err() == nil; !again {
			delete(w.looking, key)
		}
		w.mu.Unlock()
	}
}

// watch has the file system tell of the directories that the slots' sources lie
// in. One that is not there yet is tried again with each backstop.
func (w *Watcher) watch(notify *fsnotify.Watcher) {
	if notify == nil {
		return
	}
	dirs := map[string][]string{}
	w.mu.Lock()
	for key, watched := range w.watched {
		for _, dir := range watched {
			dirs[dir] = append(dirs[dir], key)
		}
	}
	w.dirs = dirs
	w.mu.Unlock()
	known := notify.WatchList()
	for dir := range dirs {
		if !slices.Contains(known, dir) {
			_ = notify.Add(dir)
		}
	}
	for _, dir := range known {
		if _, ok := dirs[dir]; !ok {
			_ = notify.Remove(dir)
		}
	}
}
