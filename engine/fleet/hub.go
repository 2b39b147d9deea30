package fleet

import (
	"context"
	"sync"
)

// hub hands the newest value to everyone who watches. A watcher's channel holds
// one value: a slow reader finds the newest there and misses the others.
type hub[T any] struct {
	mu       sync.Mutex
	last     T
	has      bool
	watchers map[chan T]struct{}
}

// watch returns a channel that carries the last value at once, and each later
// one, until ctx ends; then it is closed.
func (h *hub[T]) watch(ctx context.Context) <-chan T {
	c := make(chan T, 1)
	h.mu.Lock()
	if h.watchers == nil {
		h.watchers = map[chan T]struct{}{}
	}
	h.watchers[c] = struct{}{}
	if h.has {
		c <- h.last
	}
	h.mu.Unlock()
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, c)
		close(c)
	})
	return c
}

// publish replaces what a watcher has not read yet.
func (h *hub[T]) publish(v T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.has = v, true
	for c := range h.watchers {
		select {
		case <-c:
		default:
		}
		c <- v // never blocks: the channel holds one and only this lock sends
	}
}

// newest is the last published value.
func (h *hub[T]) newest() (T, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, h.has
}
