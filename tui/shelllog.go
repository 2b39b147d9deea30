package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
	"cellmux/shellctx/run"
)

// shellLog is the `!` lines of the selected pane, newest last.
type shellLog struct {
	generation generation
	ref        fleet.Ref
	entries    []run.Execution
	err        error
	live       map[string]*liveRun // by execution ID, of every pane
	open       map[string]bool     // executions whose output is shown
	chosen     string              // the ID that the keys act on; "" the newest
}

// liveRun is a command that runs now.
type liveRun struct {
	id        string
	ref       fleet.Ref
	line      string
	handle    run.Handle
	tail      []string // newest lines of output
	partial   bool     // the last of tail has no line break yet
	skipped   int64
	cancelled bool
}

const (
	tailLines = 400
	chunkSize = 64 << 10
	// While a command floods, its output is looked at this often.
	floodPause = 33 * time.Millisecond
)

// loadLog asks for the selection's commands.
func (m *Model) loadLog() tea.Cmd {
	l := &m.log
	row, ok := m.list.current()
	if !ok || row.cell == nil || row.cell.Offered {
		l.generation++
		l.entries, l.ref = nil, fleet.Ref{}
		return nil
	}
	ref := m.shellRef()
	if ref != l.ref {
		l.entries, l.chosen = nil, ""
	}
	l.generation++
	l.ref = ref
	g := l.generation
	return m.call(quickly, func(ctx context.Context) tea.Msg {
		executions, err := m.ports.Shell.Log(ctx, ref, 50)
		return logLoaded{g, executions, err}
	})
}

// shellRef is whose shell a `!` line runs in: the selected pane's, or its
// cell's own when the cell has none.
func (m *Model) shellRef() fleet.Ref {
	cell, slot := m.list.target()
	switch {
	case slot != nil:
		return slot.Ref
	case cell != nil:
		return fleet.Ref{Cell: cell.Name, Slot: fleet.WholeCell}
	}
	return fleet.Ref{}
}

// forget empties the log: the selection has moved.
func (l *shellLog) forget() {
	l.generation++
	l.entries, l.chosen, l.err, l.ref = nil, "", nil, noRef
}

// noRef is nobody's: no log is shown for it.
var noRef = fleet.Ref{Slot: fleet.WholeCell - 1}

func (l *shellLog) loaded(r logLoaded) {
	if r.generation != l.generation {
		return
	}
	l.err = r.err
	if r.err == nil {
		l.entries = slices.Clone(r.executions)
		slices.SortStableFunc(l.entries, func(a, b run.Execution) int { return a.Started.Compare(b.Started) })
	}
}

// chosenIndex is the entry that the keys act on, -1 for none.
func (l *shellLog) chosenIndex() int {
	for i := range l.entries {
		if l.entries[i].ID == l.chosen {
			return i
		}
	}
	return len(l.entries) - 1
}

// running is the command that a cancel would end: the chosen one, else the
// newest that runs for this pane.
func (l *shellLog) running() *liveRun {
	if live := l.live[l.chosen]; live != nil {
		return live
	}
	for i := len(l.entries) - 1; i >= 0; i-- {
		if live := l.live[l.entries[i].ID]; live != nil {
			return live
		}
	}
	return nil
}

func (l *shellLog) liveRuns() []*liveRun {
	var all []*liveRun
	for _, live := range l.live {
		all = append(all, live)
	}
	return all
}

func (m *Model) lineStarted(s lineStarted) tea.Cmd {
	if s.err != nil {
		m.warn(s.err)
		return m.loadLog()
	}
	execution := s.handle.Execution()
	live := &liveRun{id: execution.ID, ref: s.ref, line: s.line, handle: s.handle}
	m.log.live[live.id] = live
	m.log.open[live.id] = true
	if s.ref == m.log.ref {
		m.log.entries = append(m.log.entries, execution)
		m.log.chosen = live.id
	}
	return tea.Batch(m.readOutput(live), m.tick())
}

// readOutput waits for output, takes what more is there, and returns it as one
// message, so that a flood costs no more frames than a trickle.
func (m *Model) readOutput(live *liveRun) tea.Cmd {
	return func() tea.Msg {
		out := outputCame{id: live.id}
		var b strings.Builder
		take := func(c run.Chunk, ok bool) bool {
			out.ended = !ok
			out.skipped += c.Skipped
			b.WriteString(c.Text)
			return ok
		}
		select {
		case c, ok := <-live.handle.Chunks():
			take(c, ok)
		case <-m.ctx.Done():
			return nil
		}
		var pause <-chan time.Time
		for !out.ended {
			if pause == nil && b.Len() > chunkSize/4 {
				pause = time.After(floodPause)
			}
			more := true
			if pause == nil {
				select {
				case c, ok := <-live.handle.Chunks():
					more = take(c, ok)
				default:
					more = false
				}
			} else {
				select {
				case c, ok := <-live.handle.Chunks():
					more = take(c, ok)
				case <-pause:
					more = false
				}
			}
			if b.Len() > 4*chunkSize { // only the tail is shown
				text := b.String()
				b.Reset()
				b.WriteString(text[len(text)-chunkSize:])
			}
			if !more {
				break
			}
		}
		out.text = b.String()
		return out
	}
}

func (m *Model) outputCame(o outputCame) tea.Cmd {
	live := m.log.live[o.id]
	if live == nil {
		return nil
	}
	live.skipped += o.skipped
	live.write(o.text)
	if !o.ended {
		return m.readOutput(live)
	}
	return func() tea.Msg {
		execution, err := live.handle.Wait(m.ctx)
		return lineEnded{execution, err}
	}
}

// write adds output to the tail. A carriage return starts its line again, as a
// progress bar means it.
func (l *liveRun) write(text string) {
	if text == "" {
		return
	}
	if rest, cut := lastLines(text, tailLines+1); cut {
		// Splitting a whole flood would cost a frame, for lines that are never shown.
		text, l.tail, l.partial = rest, nil, false
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if l.partial && len(l.tail) > 0 {
		lines[0] = l.tail[len(l.tail)-1] + lines[0]
		l.tail = l.tail[:len(l.tail)-1]
	}
	l.partial = lines[len(lines)-1] != ""
	if !l.partial {
		lines = lines[:len(lines)-1]
	}
	for i, line := range lines {
		if j := strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r'); j >= 0 {
			lines[i] = line[j+1:]
		}
	}
	l.tail = append(l.tail, lines...)
	if extra := len(l.tail) - tailLines; extra > 0 {
		l.tail = slices.Clone(l.tail[extra:])
	}
}

// lastLines returns the last n lines of text, a line without an end included;
// cut says that there are more.
func lastLines(text string, n int) (rest string, cut bool) {
	at := len(text)
	for range n + 1 {
		at = strings.LastIndexByte(text[:at], '\n')
		if at < 0 {
			return text, false
		}
	}
	return text[at+1:], true
}

func (m *Model) lineEnded(e lineEnded) tea.Cmd {
	live := m.log.live[e.execution.ID]
	delete(m.log.live, e.execution.ID)
	if e.err != nil {
		m.warn(e.err)
		return m.loadLog()
	}
	for i := range m.log.entries {
		if m.log.entries[i].ID == e.execution.ID {
			m.log.entries[i] = e.execution
		}
	}
	if live != nil {
		text := "! " + clean(firstLine(live.line)) + ": " + m.outcome(&e.execution)
		if said := remarks(&e.execution); len(said) > 0 {
			text += "; " + firstLine(said[0])
		}
		m.say(text)
	}
	if e.execution.Lines > 12 {
		delete(m.log.open, e.execution.ID)
	}
	return tea.Batch(m.loadLog(), m.conversationGrew(""))
}

// outcome says how an execution ended, in a few words.
func (m *Model) outcome(e *run.Execution) string {
	var text string
	switch e.State {
	case run.Running:
		return "running"
	case run.Cancelled:
		text = "cancelled"
	case run.Interrupted:
		text = "interrupted: cellmux ended"
	case run.NeverStarted:
		return "did not start"
	default:
		text = fmt.Sprintf("exit %d", e.Record.ExitCode)
	}
	text += "  " + plural(e.Lines, "line", "lines")
	if d := e.Ended.Sub(e.Started); d >= time.Second && !e.Ended.IsZero() {
		text += "  " + age(d)
	}
	return text
}

// remarks are sentences about an execution that stand below its row: why it did
// not run or was ended, what it left, and what the user should know beside that.
func remarks(e *run.Execution) []string {
	var out []string
	if e.Record.Error != "" && e.Record.Error != "cancelled" {
		out = append(out, clean(e.Record.Error))
	}
	if e.Leftover > 0 {
		out = append(out, plural(e.Leftover, "background process", "background processes")+" still running")
	}
	if e.Note != "" {
		out = append(out, clean(e.Note))
	}
	return out
}

// fate says whether the record went to the conversation.
func (m *Model) fate(e *run.Execution) string {
	switch e.Mode {
	case run.Private:
		return "private"
	case run.Ask:
		return m.painter.arrow + " agent"
	}
	return m.painter.arrow + " context"
}

func (m *Model) actOnLog(name string) tea.Cmd {
	l := &m.log
	i := l.chosenIndex()
	switch name {
	case "log-down":
		if i+1 < len(l.entries) {
			l.chosen = l.entries[i+1].ID
		}
	case "log-up":
		if i > 0 {
			l.chosen = l.entries[i-1].ID
		}
	case "log-bottom":
		l.chosen = ""
	case "log-open":
		l.open[l.entries[i].ID] = !l.open[l.entries[i].ID]
	case "log-cancel":
		return m.perform(cancelLine{l.running().id})
	case "log-again":
		mark := map[run.Mode]string{run.Private: "!!", run.Ask: "!?"}[l.entries[i].Mode]
		if mark == "" {
			mark = "!"
		}
		return m.perform(composeWith{mark + l.entries[i].Record.Command})
	case "log-copy":
		return m.perform(copyText{"the output", l.entries[i].Record.Output})
	}
	return nil
}
