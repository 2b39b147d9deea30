package fleet

import (
	"context"
	"strconv"
	"time"

	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
)

// keepAnswers notes which turns have ended and stores what agents answered in
// their conversations, as far as they tell it. kept holds, for each slot, the
// turn that was noted last. The end of a turn names its answer, so that several
// screens store it once. A turn may end between two lists, or while no cellmux
// runs: what it answered is known from its end alone.
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
			if act.TurnEnded.IsZero() || kept[s.Ref].Equal(act.TurnEnded) {
				continue
			}
			kept[s.Ref] = act.TurnEnded
			target := convo.Target{Session: s.SessionID, Cell: s.Ref.Cell, Slot: s.Ref.Slot, Agent: s.Agent}
			var answers []protocol.ChatMessage
			if act.Answer != "" {
				id := "answer-" + strconv.FormatInt(act.TurnEnded.UnixNano(), 36)
				answers = append(answers, protocol.NewText(id, protocol.Assistant, act.Answer, act.TurnEnded))
			}
			if err := f.o.Conversations.Answered(ctx, target, act.TurnEnded, answers...); err != nil && ctx.Err() == nil {
				f.o.Log.Warn("the end of a turn was not noted", "slot", s.Ref.String(), "error", err.Error())
			}
		}
	}
}
