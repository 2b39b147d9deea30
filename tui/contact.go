package tui

import (
	"strings"

	"cellmux/engine/fleet"
)

// askContact asks once for each directory of this host whether agents need not
// ask about it themselves. Esc neither opens anything nor keeps an answer.
func (m *Model) askContact(c fleet.FirstContact, then intent) {
	d := &confirm{
		title: "Trust this directory for agents?", verb: "Trust",
		yes: answerContact{c.Directory, true, then}, no: answerContact{c.Directory, false, then},
		lines: []string{
			clean(c.Shown), "",
			clean(c.Agent) + " would ask on its first start there: " + clean(strings.Join(c.Asks, "; ")) + ".", "",
			"Yes answers that for every agent there: what the project says about agents takes effect.",
		},
	}
	if c.File != "" {
		d.lines = append(d.lines, "It writes to your own "+clean(c.File)+"; nothing else in it changes.")
	}
	d.lines = append(d.lines, "", "No leaves it to each agent to ask. You are asked once.")
	m.overlay = d
}
