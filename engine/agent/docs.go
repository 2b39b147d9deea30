package agent

import (
	"fmt"
	"strings"
)

// Documentation is docs/agents.md, made of the declarations.
func Documentation() string {
	var b strings.Builder
	b.WriteString(`# Agents

<!-- Generated from engine/agent. Run CELLMUX_UPDATE=1 go test ./engine/agent -run Documentation to write it anew. -->

What cellmux knows of each agent is one declaration in ` + "`engine/agent`" + `; this table is made of them. "Verified" names the
version that was run, in real tmux, against a mock of its provider; an agent without one is declared from its documentation.
A binary is asked once for its version and flags, and again when it has changed: what an older one does not know is left
out, and ` + "`cellmux doctor`" + ` and the Info tab say what that costs.

| agent | verified | conversation | prompts | status | settle | Enter while it works | interrupt |
| --- | --- | --- | --- | --- | --- | --- | --- |
`)
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	for _, d := range builtin() {
		enter := "queues"
		if d.steers {
			enter = "steers"
		}
		if d.shell {
			enter = ""
		}
		settle := ""
		if d.settle > 0 {
			settle = d.settle.String()
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", d.name, dash(d.verified), dash(d.facts.identity), dash(d.facts.overlay),
			dash(d.facts.status), dash(settle), dash(enter), dash(strings.Join(d.interrupt, " ")))
	}
	b.WriteString("\nSwitches that are set where you have not set them:\n\n")
	for _, d := range builtin() {
		if len(d.quiet) > 0 {
			fmt.Fprintf(&b, "- %s: `%s`\n", d.name, strings.Join(d.quiet, "`, `"))
		}
	}
	b.WriteString("\nTaken out of the environment, since a parent agent's session leaves them there:\n`" + strings.Join(inherited, "`, `") + "`.\n")
	return b.String()
}
