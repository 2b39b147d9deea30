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
		verified := d.verified
		if verified == "" && !d.shell {
			verified = "not run, from its documentation"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", d.name, dash(verified), dash(d.facts.identity), dash(d.facts.overlay),
			dash(d.facts.status), dash(settle), dash(enter), dash(strings.Join(d.interrupt, " ")))
	}
	b.WriteString(conversationRules)
	b.WriteString(contactRules)
	b.WriteString("\nA review (`:review`, `cellmux review`) runs in a slot of its own, which stays read-only:\n\n")
	for _, d := range builtin() {
		if d.readOnly != "" {
			fmt.Fprintf(&b, "- %s: %s\n", d.name, d.readOnly)
		}
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

// conversationRules are the rules of identity, the same for every agent.
const conversationRules = `
## Whose conversation

A slot has one conversation, and no two live panes share one:

- A conversation that you begin or resume inside the agent (` + "`/clear`, `/new`, `/resume`" + `) is the slot's from then on: after
  a crash that one goes on. The list says so until your next message, the conversation says where it happened, and the Info
  tab keeps the IDs of the earlier ones. Nothing is followed while a turn runs.
- An ID that an agent, its hooks or a guest tell counts only in the form of that agent's own IDs.
- Where the agent of one pane was put into the conversation of another slot, it is not followed: its row says so, and its
  messages wait until it has left.
- A slot is started by one process at a time; who comes second finds it running. No turn without a pane runs beside a pane,
  and none opens beside a turn.
- A conversation that a program of this host has open in another terminal is not opened a second time; one that you open by
  hand while its pane runs is told on the Info tab. Inside guests nobody can look.
- An ID that was reserved and never answered is started again; an agent that was upgraded meanwhile resumes the same one.
`

// contactRules are how first questions are answered.
const contactRules = `
## The first start in a directory

An agent asks on its first start whether you trust the directory, and claude more than that. In a cell with a home of its own
cellmux answers there, without asking. On the host those are your own files and your word:

- The screen asks once for each directory, before the first agent is opened there; ` + "`cellmux open`" + ` asks on a terminal, and
  takes ` + "`--trust-directory`" + ` in scripts. The answer is remembered, for every agent; ` + "`--trust-directory=false`" + ` takes it back.
- With a yes claude's ` + "`~/.claude.json`" + ` gets the answers, and else stays byte for byte as it is; codex and gemini are told by
  flags of the launch. What you have told an agent yourself about a directory stands over it.
- With a no, and without an answer, nothing of yours is written: the agent asks in its pane, and its row says what.
- A login is always left to you: the row says that it is needed.
`
