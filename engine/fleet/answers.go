package fleet

import (
	"context"
	"strconv"
	"time"

	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
)

// keepAnswers stores what agents answered in their conversations, as far as they
// tell it. kept holds, for each slot, the turn whose answer was stored last. The
// end of a turn names its answer, so that several screens store it once.
func (f *Fleet) keepAnswers(ctx context.Context, kept map[Ref]time.Time, snap Snapshot) {
	if f.o.Conversations == nil {
		return
	}
	for _, c := range snap.Cells {
		for _, s := range c.Slots {
			if s.Pane == "" {
				continue
			}
			act := f.o.Watcher.Status(s.Ref.String())
			if act.Answer == "" || act.TurnEnded.IsZero() || kept[s.Ref].Equal(act.TurnEnded) {
				continue
			}
			kept[s.Ref] = act.TurnEnded
			target := convo.Target{Session: s.SessionID, Cell: s.Ref.Cell, Slot: s.Ref.Slot, Agent: s.Agent}
			answer := protocol.NewText("answer-"+strconv.FormatInt(act.TurnEnded.UnixNano(), 36), protocol.Assistant, act.Answer, act.TurnEnded)
			if _, err := f.o.Conversations.Append(ctx, target, answer); err != nil && ctx.Err() == nil {
				f.o.Log.Warn("an answer was not kept", "slot", s.Ref.String(), "error", err.Error())
			}
		}
	}
}
