package tui

import (
	"fmt"
	"strings"
	"time"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
)

func (m *Model) agentsCame(a agentsListed) {
	if a.err != nil {
		m.warn(a.err)
		return
	}
	p := &picker{title: "Open which agent in " + a.cell + "?", empty: "No agent is declared."}
	for _, c := range a.choices {
		it := item{label: c.Name, intents: []intent{openPane{cell: a.cell, agent: c.Name}}}
		if !c.Found {
			it.off = clean(c.Reason)
			if it.off == "" {
				it.off = "not found"
			}
		}
		p.items = append(p.items, it)
	}
	m.overlay = p
}

func (m *Model) textCame(t textRead) {
	if t.err != nil {
		m.warn(t.err)
		return
	}
	p := &pager{title: t.title, end: true}
	for _, l := range t.lines {
		p.lines = append(p.lines, wrap(clean(l), min(m.width-4, 110))...)
	}
	m.overlay = p
}

// eventLines are oldest first, each with the command that it ran.
func eventLines(events []fleet.Event) []string {
	var lines []string
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		line := e.At.Local().Format("15:04:05") + "  " + e.Action
		if e.Error != "" {
			line += "  FAILED: " + e.Error
		}
		lines = append(lines, line)
		if len(e.Command) > 0 {
			lines = append(lines, "          $ "+strings.Join(e.Command, " "))
		}
	}
	return lines
}

func (m *Model) jobsCame(j jobsListed) {
	if j.err != nil {
		m.warn(j.err)
		return
	}
	now := time.Now()
	p := &picker{title: "Commands that run: enter ends one", empty: "No ! command runs, and none left anything running."}
	for _, job := range j.jobs {
		stop := &confirm{title: "End it?", lines: []string{clean(job.Command), "in " + job.Ref.Cell + jobWhere(job) + ", with all that it started."}, verb: "End it", yes: killJob{job.ID}}
		p.items = append(p.items, item{
			label: clean(job.Command), detail: job.Ref.Cell + ", for " + age(now.Sub(job.Started)) + jobWhere(job),
			intents: []intent{askConfirm{stop}},
		})
	}
	m.overlay = p
}

// jobWhere says what is not as one expects of a job.
func jobWhere(j Job) string {
	where := ""
	if !j.Running {
		where = ", in the background"
	}
	if j.Elsewhere {
		where += ", of another cellmux"
	}
	return where
}

func sortMenu(m *Model) *picker {
	p := &picker{title: "Sort by"}
	for _, by := range [][2]string{{"attention", "who waits first"}, {"name", ""}, {"created", "oldest first"}} {
		p.items = append(p.items, item{label: by[0], detail: by[1], hint: chosen(m.list.sort == by[0]), intents: []intent{setSort{by[0]}}})
	}
	return p
}

func groupMenu(m *Model) *picker {
	p := &picker{title: "Group by"}
	for _, by := range [][2]string{{"", "nothing"}, {"engine", "engine"}, {"status", "status"}, {"directory", "directory"}, {"workspace", "workspace"}} {
		p.items = append(p.items, item{label: by[1], hint: chosen(m.list.group == by[0]), intents: []intent{setGroup{by[0]}}})
	}
	return p
}

func chosen(yes bool) string {
	if yes {
		return "now"
	}
	return ""
}

// bulkMenu acts on the marked rows.
func (m *Model) bulkMenu() *picker {
	refs := m.list.marked()
	n := plural(len(refs), "pane", "panes")
	var live, dead []fleet.Ref
	for _, r := range refs {
		if _, s := m.list.find(r); s != nil && s.Pane != "" && s.Status != fleet.Dead {
			live = append(live, r)
		} else {
			dead = append(dead, r)
		}
	}
	p := &picker{title: "With " + n}
	stop := &confirm{title: "Stop " + plural(len(live), "pane", "panes") + "?", lines: append(m.losses(live), "The conversations are kept."), verb: "Stop", yes: stopPanes{live}}
	remove := &confirm{title: "Delete " + n + "?", lines: append(m.losses(refs), "They go to the trash: "+m.keys.show("undo")+" brings them back."), verb: "Delete", yes: deleteRefs{refs}}
	restart := item{label: "restart", detail: "those that do not run: " + fmt.Sprint(len(dead)), hint: m.keys.show("restart")}
	for _, r := range dead {
		restart.intents = append(restart.intents, restartPane{r})
	}
	if len(dead) == 0 {
		restart.off = "all of them run"
	}
	stopItem := item{label: "stop", detail: "those that run: " + fmt.Sprint(len(live)), hint: m.keys.show("stop"), intents: []intent{askConfirm{stop}}}
	if len(live) == 0 {
		stopItem.off = "none of them runs"
	}
	p.items = []item{
		{label: "message", detail: "the same text to each", hint: m.keys.show("message"), intents: []intent{composeWith{""}}},
		restart, stopItem,
		{label: "archive", hint: m.keys.show("archive"), intents: []intent{archiveRefs{refs, true}}},
		{label: "delete", hint: m.keys.show("delete"), intents: []intent{askConfirm{remove}}},
	}
	return p
}

// copyMenu offers what of the selection is worth copying.
func (m *Model) copyMenu() *picker {
	p := &picker{title: "Copy", empty: "There is nothing to copy here."}
	add := func(what, text string) {
		if text != "" {
			p.items = append(p.items, item{label: what, detail: clean(firstLine(text)), intents: []intent{copyText{what, text}}})
		}
	}
	r, ok := m.list.current()
	if !ok {
		return p
	}
	cell, slot := m.list.target()
	if m.tabs.current == conversationTab {
		if e := m.inSight(func(*convo.Entry) bool { return true }); e != nil {
			add("the last message in sight", messageText(e))
		}
		if e := m.inSight(func(e *convo.Entry) bool { return e.Message.Role == protocol.Assistant }); e != nil {
			add("the agent's last answer in sight", messageText(e))
		}
	}
	if m.preview.shown {
		add("the preview", plainText(m.preview.screen.Rows))
	}
	if slot != nil {
		add("the question", slot.Question)
		add("session ID", slot.SessionID)
		add("reference", slot.Ref.String())
		add("attach command", "cellmux attach "+slot.Ref.String())
	}
	if cell != nil {
		add("directory", cell.ProjectDir)
		add("cell name", cell.Name)
	}
	if r.outside != nil {
		add("directory", r.outside.Path)
	}
	if i := m.log.chosenIndex(); i >= 0 {
		add("last command", m.log.entries[i].Record.Command)
		add("its output", m.log.entries[i].Record.Output)
	}
	return p
}

// plainText is a screen without colours and trailing blanks.
func plainText(rows []string) string {
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = strings.TrimRight(clean(r), " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}
