package agent

import (
	"context"
	"time"
)

// grok is declared from public documentation and was never run: its
// conversation cannot be chosen, so it is its own affair.
func grok() declaration {
	return declaration{
		name:      "grok",
		title:     "Grok CLI",
		programs:  []string{"grok"},
		settle:    300 * time.Millisecond,
		interrupt: []string{"Escape"},
		rule:      &ScreenRule{},
		observe:   func(sight) Status { return Status{} },
		box:       ScreenRule{}.read,
		readOnly:  "`--deny '*'`",
		plan: func(_ context.Context, p *planning) error {
			p.argv(p.program)
			p.note("grok is declared from its documentation: its conversation is not resumed")
			if p.Review {
				p.argv("--deny", "*")
			}
			return nil
		},
		facts: facts{identity: "none", overlay: "none", status: "output activity"},
	}
}
