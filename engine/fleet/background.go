package fleet

import (
	"context"
	"sync"
)

// background owns goroutines that nobody waits for one by one: they run only
// between open and close, and close waits for all of them.
type background struct {
	mu  sync.Mutex
	ctx context.Context // nil while closed
	all sync.WaitGroup
}

func (b *background) open(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ctx = ctx
}

// close returns after everything has ended; the context of open must have ended
// before, or be ended by somebody else.
func (b *background) close() {
	b.mu.Lock()
	b.ctx = nil
	b.mu.Unlock()
	b.all.Wait()
}

// start does nothing while closed.
func (b *background) start(do func(ctx context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx := b.ctx; ctx != nil {
		b.all.Go(func() { do(ctx) })
	}
}
