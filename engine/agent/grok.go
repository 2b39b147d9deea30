package agent

import (
	"context"
	"time"
)

// grok is declared from xAI's public documentation of Grok Build and was never
// run here: https://docs.x.ai/build/overview (install, login), /build/cli/reference
// (subcommands, flags), /build/cli/headless-scripting (sessions, updates, screen).
//
// What those pages do not give stays undone. An interactive session's ID cannot
// be chosen (--session-id is for headless runs), so the conversation is grok's own
// affair; nothing documented tells from outside what it does, so the status is by
// output activity; a headless prompt goes by argument alone, where every process
// of the host can read it, so there are no turns without a pane.
func grok() declaration {
	return declaration{
		name:      "grok",
		title:     "Grok Build",
		programs:  []string{"grok"},
		install:   "curl -fsSL https://x.ai/cli/install.sh | bash",
		settle:    300 * time.Millisecond,
		interrupt: []string{"Escape"},
		flags:     []string{"--no-auto-update", "--no-alt-screen", "--deny"},
		costs:     grokCosts,
		rule:      &ScreenRule{},
		observe:   func(sight) Status { return Status{} },
		box:       ScreenRule{}.read,
		readOnly:  "`--deny '*'`",
		plan: func(_ context.Context, p *planning) error {
			p.argv(p.program)
			for _, flag := range []string{"--no-auto-update", "--no-alt-screen"} {
				if p.features.has(flag) {
					p.argv(flag)
				}
			}
			p.note("grok is declared from its documentation and was never verified: its conversation is not resumed")
			if p.Review {
				// A grok that does not know it refuses to start, which is right.
				p.argv("--deny", "*")
			}
			return nil
		},
		facts: facts{
			identity: "none: its documentation lets no interactive session's ID be chosen",
			overlay:  "none",
			status:   "output activity",
		},
	}
}

func grokCosts(f features, _ bool) []string {
	if f.has("--deny") {
		return nil
	}
	return []string{"this grok knows no --deny: it cannot review"}
}
