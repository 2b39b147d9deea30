package agent

import (
	"context"
	"time"
)

// shell is the plain shell of a cell: always there, without a conversation.
func shell() declaration {
	return declaration{
		name:      "shell",
		title:     "Shell",
		programs:  []string{"bash", "zsh", "sh"},
		shell:     true,
		interrupt: []string{"C-c"},
		plan: func(_ context.Context, p *planning) error {
			program := p.program
			if p.AgentInput.Program == "" && !p.Config.Guest.Isolated {
				if own := p.lookup("SHELL"); own != "" {
					program = own
				}
			}
			p.argv(program)
			return nil
		},
		facts: facts{
			identity: "none: a shell holds no conversation",
			status:   "output activity",
		},
	}
}

// customDeclaration makes a declaration of a user's own agent. Its conversation
// is its own affair; {session} in its command is replaced by the slot's ID.
func customDeclaration(c Custom) declaration {
	d := declaration{
		name:      c.Name,
		title:     c.Name,
		programs:  c.Command[:min(1, len(c.Command))],
		settle:    c.Settle,
		interrupt: []string{"Escape"},
		rule:      &c.Screen,
		box:       c.Screen.read,
		plan: func(_ context.Context, p *planning) error {
			return planCustom(p, c)
		},
		facts: facts{
			identity: "`{session}` in its command",
			status:   "output activity and its screen rule",
		},
	}
	if c.Interrupt != nil {
		d.interrupt = c.Interrupt
	}
	d.printsAnswer = c.Headless != nil
	if d.settle == 0 {
		d.settle = 300 * time.Millisecond
	}
	return d
}
