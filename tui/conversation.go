package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"cellmux/shellctx"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
)

// foldAt is how many lines of a record's output are shown before it is opened.
const foldAt = 4

// messageLines draws one message in rows of w cells, and says whether it is a
// record that can be folded.
func (m *Model) messageLines(e *convo.Entry, w int) (lines []string, foldable bool) {
	lines = []string{m.messageHead(e, w)}
	if record, ok := shellctx.FromMessage(e.Message); ok {
		rows, foldable := m.recordLines(e, record, w)
		return append(lines, rows...), foldable
	}
	text := e.Message.Text()
	if e.Message.Role == protocol.Assistant {
		lines = append(lines, m.markdown(text, w)...)
	} else {
		lines = append(lines, m.proseLines(text, w)...)
	}
	if why := metaString(e, protocol.ErrorKey); why != "" {
		lines = append(lines, m.painter.paint(tDead, m.painter.fit("  "+clean(why), w)))
	}
	return lines, false
}

// messageHead is who, when, and what became of it.
func (m *Model) messageHead(e *convo.Entry, w int) string {
	p := m.painter
	who, t := "you", tFocus
	switch e.Message.Role {
	case protocol.Assistant:
		who, t = "agent", tRunning
	case protocol.System:
		who, t = "system", tDim
	case protocol.Tool:
		who, t = "tool", tDim
	}
	if _, ok := shellctx.FromMessage(e.Message); ok {
		who = "shell"
	}
	if e.Seq != 0 && e.Seq == m.tabs.talk.marked {
		who, t = "> "+who, tWaiting
	}
	head := p.paint(t, who) + p.paint(tDim, "  "+e.Stored.Local().Format("15:04"))
	if e.Partial {
		head += p.paint(tRunning, "  answering "+p.ellipsis)
	}
	state, st := string(e.Delivery), tDim
	if e.Steering && e.Delivery != convo.Queued {
		state = "steering, " + state
	}
	switch e.Delivery {
	case convo.Saved, convo.Answered, "":
		state = ""
	case convo.Failed:
		st = tDead
	case convo.Unconfirmed, convo.Queued, convo.Typed:
		st = tWaiting
	}
	if e.Message.Role != protocol.User {
		state, st = convo.UsageText(e.Message), tDim
	}
	if state != "" {
		if e.Reason != "" && e.Message.Role == protocol.User {
			state += ": " + clean(e.Reason)
		}
		head += "  " + p.paint(st, state)
	}
	return p.fit(head, w)
}

// recordLines shows a shell record: the command, its output up to foldAt lines
// unless opened, and how it ended.
func (m *Model) recordLines(e *convo.Entry, r shellctx.Record, w int) (lines []string, foldable bool) {
	p := m.painter
	mark := "! "
	if r.TriggerAgent {
		mark = "!? "
	}
	for i, row := range wrap(clean(r.Command), w-4) {
		if i > 0 {
			mark = "   "
		}
		lines = append(lines, p.paint(tKey, mark)+row)
	}
	output := strings.Split(strings.TrimRight(r.Output, "\n"), "\n")
	if r.Output == "" {
		output = nil
	}
	foldable = len(output) > foldAt
	shown := output
	if foldable && !m.tabs.talk.opened[e.Seq] {
		shown = output[len(output)-foldAt+1:] // what went wrong comes last
	}
	if hidden := len(output) - len(shown); hidden > 0 {
		lines = append(lines, p.paint(tDim, p.fit(fmt.Sprintf("  %s %d more lines (%s)", p.ellipsis, hidden, m.keys.show("older")), w)))
	}
	for _, row := range shown {
		lines = append(lines, "  "+m.guestRow(row, w-2))
	}
	end, t := fmt.Sprintf("  exit %d", r.ExitCode), tDim
	if r.ExitCode != 0 {
		t = tDead
	}
	if r.OutputTruncated {
		end += "  (cut in the middle)"
	}
	if r.Error != "" {
		end += "  " + clean(r.Error)
	}
	return append(lines, p.paint(t, p.fit(end, w))), foldable
}

func (m *Model) proseLines(text string, w int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		for _, row := range wrap(clean(strings.ReplaceAll(line, "\t", "    ")), w) {
			if m.painter.ascii {
				row = plain(row)
			}
			lines = append(lines, row)
		}
	}
	return lines
}

func metaString(e *convo.Entry, key string) string {
	raw := strings.TrimSpace(string(e.Message.Meta[key]))
	return strings.Trim(raw, `"`)
}

// wrap breaks a clean line into rows of at most w cells, at words where it can;
// an empty line is one row.
func wrap(s string, w int) []string {
	if w <= 0 {
		return nil
	}
	if width(s) <= w {
		return []string{s}
	}
	return strings.Split(ansi.Wrap(s, w, " "), "\n")
}

// wrapHanging is wrap with every row but the first indented, where there is
// room for that.
func wrapHanging(s string, w, hang int) []string {
	if hang > w/2 {
		hang = 2
	}
	if width(s) <= w || w <= hang {
		return wrap(s, w)
	}
	rows := wrap(s, w)
	first := rows[0]
	shown := ansi.Strip(ansi.TruncateLeft(s, width(first), ""))
	blank := len(shown) - len(strings.TrimLeft(shown, " ")) // where it was broken
	rest := wrap(ansi.TruncateLeft(s, width(first)+blank, ""), w-hang)
	for i := range rest {
		rest[i] = strings.Repeat(" ", hang) + rest[i]
	}
	return append([]string{first}, rest...)
}
