package fleet

import (
	"context"
	"slices"
	"testing"
	"time"

	"cellmux/engine/agent"
	"cellmux/shellctx/convo"
)

func TestAnswersAreKeptOnceForEachTurn(t *testing.T) {
	out := &outbox{told: make(chan string, 20)}
	w := newWorld(t, func(o *Options) { o.Conversations = out })
	ref, err := w.Open(t.Context(), w.cellWith(t), "claude")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	lists := w.Watch(ctx)
	first := time.Unix(1_800_000_000, 0)
	for _, step := range []struct {
		status agent.Status
		want   Status
		told   []string
	}{
		// The answer may come before the state says that the turn ended, and after.
		{agent.Status{State: agent.Working, Answer: "one\ntwo", TurnEnded: first}, Running, []string{"answered api at 08:00: assistant one\ntwo"}},
		{agent.Status{State: agent.Idle, Answer: "one\ntwo", TurnEnded: first}, Idle, []string{"answered"}},
		{agent.Status{State: agent.Working, Answer: "one\ntwo", TurnEnded: first}, Running, nil},
		{agent.Status{State: agent.Idle, Answer: "three", TurnEnded: first.Add(time.Minute)}, Idle, []string{"answered", "answered api at 08:01: assistant three"}},
	} {
		w.watcher.set(ref.String(), step.status)
		waitFor(t, lists, func(s Snapshot) bool { return s.Cells[0].Slots[0].Status == step.want })
		// Answers are read from the watcher itself, which may be ahead of the list.
		var told []string
		for range step.told {
			told = append(told, <-out.told)
		}
		slices.Sort(told)
		if slices.Sort(step.told); !slices.Equal(told, step.told) {
			t.Errorf("told %q, want %q", told, step.told)
		}
	}
	cancel()
	<-ended
	if len(out.told) != 0 {
		t.Errorf("told %q besides", <-out.told)
	}
	var _ Outbox = (*convo.Service)(nil)
}
