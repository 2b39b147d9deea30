package tui

import (
	"strings"
	"time"

	"cellmux/shellctx/run"
)

// logLines are at most h rows of w cells: the commands, and under those that
// are open their output.
func (m *Model) logLines(w, h int) []string {
	l := &m.log
	if h <= 0 {
		return nil
	}
	if l.err != nil {
		return []string{m.painter.paint(tDead, m.painter.fit("The log could not be read: "+clean(sentence(l.err)), w))}
	}
	if len(l.entries) == 0 {
		return []string{m.painter.paint(tDim, m.painter.fit("No command has run here yet.", w))}
	}
	chosen := l.chosenIndex()
	var lines []string
	last := 0 // the row after the chosen entry
	for i := range l.entries {
		lines = append(lines, m.entryLines(&l.entries[i], w, h, i == chosen && m.focus == inLog)...)
		if i == chosen {
			last = len(lines)
		}
	}
	end := min(len(lines), max(last, h))
	if l.chosen == "" || chosen == len(l.entries)-1 {
		end = len(lines)
	}
	return lines[max(0, end-h):end]
}

func (m *Model) entryLines(e *run.Execution, w, h int, selected bool) []string {
	p := m.painter
	mark := map[run.Mode]string{run.Private: "!! ", run.Ask: "!? "}[e.Mode]
	if mark == "" {
		mark = "! "
	}
	command := e.Record.Command
	if live := m.log.live[e.ID]; live != nil && command == "" {
		command = live.line
	}
	end := m.outcome(e)
	t := tDim
	switch {
	case e.State == run.Running:
		t = tRunning
		if live := m.log.live[e.ID]; live != nil && live.cancelled {
			end = "cancelling"
		}
		end += "  " + age(time.Since(e.Started))
	case e.State != run.Exited || e.Record.ExitCode != 0:
		t = tDead
	}
	if e.OnHost {
		end = "on the host  " + end
	}
	fate := m.fate(e)
	if w < 56 {
		fate = ""
	}
	endWidth := min(width(end), max(8, w-8-12-width(fate)))
	room := w - 6 - endWidth - 1
	if fate != "" {
		room -= 11
	}
	segments := []segment{
		{tDim, e.Started.Local().Format("15:04") + " "},
		{tText, p.fit(mark+clean(command), room)}, {tText, " "},
		{t, p.fit(end, endWidth)},
	}
	if fate != "" {
		segments = append(segments, segment{tText, "  "}, segment{tDim, p.fit(fate, 9)})
	}
	lines := []string{p.join(selected, segments...)}
	for _, said := range remarks(e) {
		for line := range strings.SplitSeq(said, "\n") {
			lines = append(lines, p.paint(t, p.fit("  "+line, w)))
		}
	}
	if !m.log.open[e.ID] {
		return lines
	}
	return append(lines, m.outputLines(e, w, h)...)
}

// outputLines are the newest rows of an execution's output.
func (m *Model) outputLines(e *run.Execution, w, h int) []string {
	var output []string
	if live := m.log.live[e.ID]; live != nil {
		output = live.tail
	} else if e.Record.Output != "" {
		output = strings.Split(strings.TrimRight(e.Record.Output, "\n"), "\n")
	}
	most := max(3, h-1)
	if m.zoomed && m.focus == inLog {
		most = len(output)
	}
	hidden := len(output) - most
	var lines []string
	if hidden > 0 {
		output = output[hidden:]
	}
	for _, line := range output {
		lines = append(lines, "  "+m.guestRow(line, w-2))
	}
	if e.Spill != "" && e.Record.OutputTruncated {
		lines = append(lines, m.painter.paint(tDim, m.painter.fit("  all of it: "+clean(e.Spill), w)))
	}
	return lines
}
