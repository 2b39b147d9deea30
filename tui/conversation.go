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

// conversationLines draws messages in rows of w cells. anchors tells of each
// row which folded record it belongs to, 0 for none.
func (m *Model) conversationLines(page []convo.Entry, w int) (lines []string, anchors []int64) {
	add := func(seq int64, rows ...string) {
		for _, r := range rows {
			lines = append(lines, r)
			anchors = append(anchors, seq)
		}
	}
	for i := range page {
		e := &page[i]
		if shellctx.IsCommitAck(e.Message) {
			continue
		}
		if len(lines) > 0 {
			add(0, "")
		}
		add(0, m.messageHead(e, w))
		if record, ok := shellctx.FromMessage(e.Message); ok {
			rows, folded := m.recordLines(e, record, w)
			seq := int64(0)
			if folded {
				seq = e.Seq
			}
			add(seq, rows...)
			continue
		}
		text := e.Message.Text()
		if e.Message.Role == protocol.Assistant {
			add(0, m.markdown(text, w)...)
		} else {
			add(0, m.proseLines(text, w)...)
		}
		if why := metaString(e, protocol.ErrorKey); why != "" {
			add(0, m.painter.paint(tDead, m.painter.fit("  "+clean(why), w)))
		}
	}
	return lines, anchors
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
	head := p.paint(t, who) + p.paint(tDim, "  "+e.Stored.Local().Format("15:04"))
	state, st := string(e.Delivery), tDim
	switch e.Delivery {
	case convo.Saved, convo.Answered, "":
		state = ""
	case convo.Failed:
		st = tDead
	case convo.Unconfirmed, convo.Queued, convo.Typed:
		st = tWaiting
	}
	if e.Message.Role != protocol.User {
		state = ""
	}
	if state != "" {
		if e.Reason != "" {
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
	if foldable && !m.tabs.opened[e.Seq] {
		shown = output[:foldAt-1]
	}
	for _, row := range shown {
		lines = append(lines, "  "+m.guestRow(row, w-2))
	}
	if hidden := len(output) - len(shown); hidden > 0 {
		lines = append(lines, p.paint(tDim, p.fit(fmt.Sprintf("  %s %d more lines (%s)", p.ellipsis, hidden, m.keys.show("older")), w)))
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
