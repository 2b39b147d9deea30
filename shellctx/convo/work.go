package convo

import (
	"context"
	"sync"
	"time"
)

// maxDeliverers bounds how many conversations Run delivers to at a time.
const maxDeliverers = 16

// Run delivers what is queued in all conversations, whoever queued it, until
// ctx ends; it returns when every delivery of its own has ended. It looks when
// a message is submitted here or in another process, when Ready or Answered
// tell of a chance, and every RetryInterval while something is queued.
func (s *Service) Run(ctx context.Context) error {
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	elsewhere := s.Changed(ctx)
	ended := make(chan string, maxDeliverers)
	busy := map[string]bool{}  // sessions that a delivery of ours runs for
	again := map[string]bool{} // of those, the ones to look at once more
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		chosen := func(string) bool { return true }
		chance := false // an agent's state may have changed
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
			chance = true
		case <-retry.C:
		case session := <-elsewhere:
			chosen = func(other string) bool { return session == "" || session == other }
		case session := <-ended:
			delete(busy, session)
			// Without this condition what cannot be delivered would be tried
			// without pause.
			if once := again[session]; once {
				chosen = func(other string) bool { return session == other }
			} else {
				chosen = func(string) bool { return false }
			}
			delete(again, session)
		}
		waiting, err := s.store.waiting(ctx, chance)
		if err != nil {
			s.options.Log.Warn("what is queued could not be read", "error", err.Error())
		}
		for _, t := range waiting {
			if !chosen(t.Session) {
				continue
			}
			if busy[t.Session] || len(busy) == maxDeliverers {
				again[t.Session] = true
				continue
			}
			busy[t.Session] = true
			deliveries.Go(func() {
				if err := s.Deliver(ctx, t); err != nil && ctx.Err() == nil {
					s.options.Log.Warn("delivery failed", "session", t.Session, "error", err.Error())
				}
				select {
				case ended <- t.Session:
				case <-ctx.Done():
				}
			})
		}
		if len(waiting) > 0 || err != nil {
			retry.Reset(s.options.RetryInterval)
		}
	}
}
