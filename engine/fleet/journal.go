package fleet

import (
	"context"
	"sync"
	"time"
)

// journalLength bounds what is kept of what cellmux did.
const journalLength = 500

// journal keeps what this cellmux did, for the "what cellmux did" view.
type journal struct {
	mu     sync.Mutex
	events []Event
}

func (j *journal) add(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.events) == journalLength {
		j.events = append(j.events[:0], j.events[1:]...)
	}
	j.events = append(j.events, e)
}

func (j *journal) newest(n int) []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []Event
	for i := len(j.events) - 1; i >= 0 && len(out) < n; i-- {
		out = append(out, j.events[i])
	}
	return out
}

// Events returns what this cellmux did, newest first, at most n.
func (f *Fleet) Events(_ context.Context, n int) ([]Event, error) {
	return f.events.newest(n), nil
}

// Ran notes a command that was run on the user's behalf; it has the shape of an
// observer of processes. argv must hold no value.
func (f *Fleet) Ran(at time.Time, argv []string, err error) {
	e := Event{At: at, Action: "ran", Command: argv}
	if err != nil {
		e.Error = err.Error()
	}
	f.events.add(e)
}

// did notes an action with how it ended, in the journal and in the log, and
// asks for a new list.
func (f *Fleet) did(action string, err error) error {
	e := Event{At: f.o.Now(), Action: action}
	if err != nil {
		e.Error = err.Error()
		f.o.Log.Warn("action failed", "action", action, "error", err.Error())
	} else {
		f.o.Log.Info("action", "action", action)
	}
	f.events.add(e)
	f.poke()
	return err
}
