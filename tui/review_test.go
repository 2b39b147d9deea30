package tui_test

import (
	"testing"
	"time"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
	"cellmux/tui/tuitest"
)

func TestReviewIsAskedOfTheSelectedAgent(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("j", ":").Type("review").Press("enter").Called("Review api-auth:0").Row("Asked api-auth:0 for a review: submitted")
	})
}

func TestAnswerSaysWhatItsTurnUsed(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		now := time.Date(2000, 1, 1, 11, 0, 0, 0, time.UTC)
		answer := protocol.NewText("1", protocol.Assistant, "done", now)
		if err := answer.SetMeta("cellmux.usage", map[string]any{"input_tokens": 120, "output_tokens": 7, "cost_usd": 0.5}); err != nil {
			t.Fatal(err)
		}
		ui.Fleet.Say(fleet.Ref{Cell: "api-auth"}, convo.Entry{Message: answer, Stored: now})
		ui.Press("j", "]").Row("agent  11:00  120 in, 7 out, $0.5000")
	})
}
