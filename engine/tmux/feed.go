package tmux

import (
	"context"
	"errors"
	"time"
)

// FeedEvent is a new look at a followed pane. Err is ErrGone when there is
// nothing to follow any more; with another error the screen is not known now,
// and the feed goes on.
type FeedEvent struct {
	Screen Screen
	Err    error
}

const (
	// quietAfter is how long a pane shows no change until it is looked at less
	// often, at every quietTicks-th tick.
	quietAfter = 3 * time.Second
	quietTicks = 2
	// processEvery bounds the looks that cost a process each, while there is no
	// control client.
	processEvery = time.Second
	// echoAfter is when a program has usually answered a key.
	echoAfter = 15 * time.Millisecond
	echoLater = 60 * time.Millisecond
)

// feed is one Follow.
type feed struct {
	pane  string
	typed chan struct{} // something was typed into the pane; holds one
}

// Follow sends the visible screen of a pane at once and whenever it has changed,
// looking at it every interval (0 is 100 ms; less often while it is quiet, at
// once after keys were sent through this Server). The channel holds the newest
// event; it is closed when ctx ends or the pane is gone. Over the control
// client a look costs a fraction of a millisecond and starts no process.
func (s *Server) Follow(ctx context.Context, pane string, offset int, interval time.Duration) <-chan FeedEvent {
	if interval <= 0 {
		interval = 100 * time.Millisecond
	}
	f := &feed{pane: pane, typed: make(chan struct{}, 1)}
	s.mu.Lock()
	s.feeds[f] = struct{}{}
	s.mu.Unlock()
	out := make(chan FeedEvent, 1)
	go func() {
		defer close(out)
		defer func() {
			s.mu.Lock()
			delete(s.feeds, f)
			s.mu.Unlock()
		}()
		s.follow(ctx, f, offset, interval, out)
	}()
	return out
}

func (s *Server) follow(ctx context.Context, f *feed, offset int, interval time.Duration, out chan FeedEvent) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last rawScreen
	var lastErr string
	changed := time.Now()
	var echo <-chan time.Time
	var echoes int
	for n := 0; ; n++ {
		began := time.Now()
		raw, err := s.capture(ctx, f.pane, offset)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil:
			if err.Error() != lastErr {
				lastErr = err.Error()
				last = rawScreen{}
				offer(out, FeedEvent{Screen: Screen{Pane: f.pane, Taken: time.Now()}, Err: err})
			}
			if errors.Is(err, ErrGone) {
				return
			}
		case lastErr != "" || !raw.equal(last):
			last, lastErr, changed = raw, "", time.Now()
			screen, err := raw.screen(f.pane, offset)
			offer(out, FeedEvent{Screen: screen, Err: err})
			if errors.Is(err, ErrGone) {
				return
			}
		}
		for looked := false; !looked; {
			select {
			case <-ctx.Done():
				return
			case <-f.typed:
				changed, echoes = time.Now(), 2
				echo = time.After(echoAfter)
			case <-echo:
				looked, echo = true, nil
				if echoes--; echoes > 0 {
					echo = time.After(echoLater)
				}
			case <-tick.C:
				n++
				looked = (time.Since(changed) < quietAfter || n%quietTicks == 0) &&
					(s.connected() || time.Since(began) >= processEvery)
			}
		}
	}
}

// offer replaces an event that was not taken yet. Only the feed's goroutine
// sends, so the second send always fits.
func offer(out chan FeedEvent, e FeedEvent) {
	select {
	case out <- e:
		return
	default:
	}
	select {
	case <-out:
	default:
	}
	out <- e
}

// poke tells the feeds of a pane that its program is about to draw.
func (s *Server) poke(pane string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.feeds {
		if f.pane == pane {
			select {
			case f.typed <- struct{}{}:
			default:
			}
		}
	}
}
