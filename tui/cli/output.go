package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"cellmux/engine/fleet"
)

// The JSON shapes below are what scripts build on: fields are added, never
// renamed or dropped.

type cellJSON struct {
	Name         string     `json:"name"`
	Title        string     `json:"title"`
	Workspace    string     `json:"workspace"`
	ProjectDir   string     `json:"project_dir"`
	Engine       string     `json:"engine"`
	EngineReason string     `json:"engine_reason,omitempty"`
	Problem      string     `json:"problem,omitempty"`
	Approval     string     `json:"approval,omitempty"`
	Git          string     `json:"git,omitempty"`
	Pinned       bool       `json:"pinned"`
	Archived     bool       `json:"archived"`
	Created      time.Time  `json:"created"`
	Slots        []slotJSON `json:"slots"`
}

type slotJSON struct {
	Ref        string       `json:"ref"`
	Slot       int          `json:"slot"`
	Agent      string       `json:"agent"`
	Title      string       `json:"title,omitempty"`
	SessionID  string       `json:"session_id"`
	Status     fleet.Status `json:"status"`
	Detail     string       `json:"detail,omitempty"`
	Question   string       `json:"question,omitempty"`
	Since      *time.Time   `json:"since,omitempty"`
	Pane       string       `json:"pane,omitempty"`
	ExitStatus *int         `json:"exit_status,omitempty"` // of a dead pane
	Queued     int          `json:"queued"`
	Archived   bool         `json:"archived"`
}

func toCellJSON(c fleet.Cell) cellJSON {
	out := cellJSON{
		Name: c.Name, Title: c.Title, Workspace: c.Workspace, ProjectDir: c.ProjectDir, Engine: c.Engine,
		EngineReason: c.EngineReason, Problem: c.Problem, Approval: c.Approval, Git: c.Git, Pinned: c.Pinned,
		Archived: c.Archived, Created: c.Created, Slots: []slotJSON{},
	}
	for _, s := range c.Slots {
		out.Slots = append(out.Slots, toSlotJSON(s))
	}
	return out
}

func toSlotJSON(s fleet.Slot) slotJSON {
	out := slotJSON{
		Ref: s.Ref.String(), Slot: s.Ref.Slot, Agent: s.Agent, Title: s.Title, SessionID: s.SessionID,
		Status: s.Status, Detail: s.Detail, Question: s.Question, Pane: s.Pane, Queued: s.Queued, Archived: s.Archived,
	}
	if !s.Since.IsZero() {
		out.Since = &s.Since
	}
	if s.Status == fleet.Dead {
		out.ExitStatus = &s.ExitStatus
	}
	return out
}

// printJSON writes one value, indented, and a newline.
func (c *commands) printJSON(v any) error {
	encoder := json.NewEncoder(c.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// printJSONLine writes one value on a line of its own (JSON lines).
func (c *commands) printJSONLine(v any) error {
	encoder := json.NewEncoder(c.Stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// table writes aligned columns; the cells are cleaned of control characters.
func (c *commands) table(rows [][]string) error {
	w := tabwriter.NewWriter(c.Stdout, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		for i, field := range row {
			row[i] = oneLine(field)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// oneLine makes text of agents, panes and files safe for a terminal's row.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, text)
}

// age is a duration as the list shows it: 12s, 4m, 3h, 2d.
func age(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	switch d := max(now.Sub(since), 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// clean is text of several lines made safe for a terminal: no escape but
// colours' leftovers survives, as none is needed on a plain stream.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, ansi.Strip(text))
}
