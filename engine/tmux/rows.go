package tmux

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The list of panes is one format, a row nested in loops over sessions, windows
// and panes, for the subscription and for a question (list-panes would ask for a
// format that is expanded for each pane). All of it has to survive hostile text
// on a single line:
//
//   - Control characters are replaced inside the format itself. A working
//     directory may hold a newline, which would inject lines into control mode.
//     The bracket is spelled with the bytes themselves: tmux's regular
//     expressions know no escapes, and a colon would end the modifier.
//   - Numbers come first; each text behind them ends in a mark that nobody who
//     writes a text can know.
//
// The server expands the subscription every second. What costs there is each
// regular expression (it is compiled each time) more than any field, so that one
// replaces in all rows together.
const (
	controls  = "[\x01-\x1f\x7f]"
	separator = "|"
)

// rowForm writes the format and reads what it printed.
type rowForm struct{ mark string }

func newRowForm() rowForm {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails, crypto/rand.Read
	return rowForm{mark: fmt.Sprintf("~%x~", random)}
}

var rowNumbers = []string{
	"pane_id",
	"pane_dead",
	"pane_dead_status",
	"pane_dead_signal",
	"pane_pid",
	"pane_width",
	"pane_height",
	"session_attached",
	"window_activity",
}

var rowTexts = []string{
	"@cellmux_slot",
	"@cellmux_cell",
	"@cellmux_agent",
	"session_name",
	"pane_current_command",
	"pane_current_path",
	"pane_title",
}

// raw prints one pane with whatever its texts hold.
func (f rowForm) raw() string {
	var row strings.Builder
	for _, name := range rowNumbers {
		row.WriteString("#{" + name + "}" + separator)
	}
	for _, name := range rowTexts {
		row.WriteString("#{" + name + "}" + f.mark)
	}
	return row.String()
}

// all prints every pane of the server, whatever the client looks at.
func (f rowForm) all() string {
	return "#{s/" + controls + "/?/:#{S:#{W:#{P:" + f.raw() + "}}}}"
}

// parseAll reads what all printed, rows one after the other. One
// malformed row rejects the answer: a list that is silently shorter would make
// panes look stopped.
func (f rowForm) parseAll(text string) ([]Pane, error) {
	var panes []Pane
	seen := make(map[string]bool)
	for text != "" {
		p, rest, err := f.parse(text)
		if err != nil {
			return nil, err
		}
		text = rest
		// A window can be linked to several sessions; it is the same pane.
		if p.Session != hubSession && !seen[p.ID] {
			seen[p.ID] = true
			panes = append(panes, p)
		}
	}
	slices.SortFunc(panes, func(a, b Pane) int {
		return cmp.Or(strings.Compare(a.Session, b.Session), cmp.Compare(idNumber(a.ID), idNumber(b.ID)))
	})
	return panes, nil
}

func (f rowForm) parse(text string) (p Pane, rest string, err error) {
	fields := strings.SplitN(text, separator, len(rowNumbers)+1)
	if len(fields) != len(rowNumbers)+1 {
		return p, "", fmt.Errorf("a row of the pane list has %d fields: %q", len(fields), clip(text))
	}
	number := func(s string) int {
		if s == "" {
			return 0
		}
		n, convErr := strconv.Atoi(s)
		if convErr != nil && err == nil {
			err = fmt.Errorf("a row of the pane list holds %q for a number: %q", clip(s), clip(text))
		}
		return n
	}
	p = Pane{
		ID:         fields[0],
		Dead:       fields[1] == "1",
		ExitStatus: number(fields[2]),
		ExitKnown:  fields[1] == "1" && (fields[2] != "" || fields[3] != ""),
		PID:        number(fields[4]),
		Width:      number(fields[5]),
		Height:     number(fields[6]),
		Attached:   number(fields[7]),
		Activity:   time.Unix(int64(number(fields[8])), 0),
		Slot:       -1,
	}
	if signal := number(fields[3]); signal > 0 {
		p.ExitStatus = 128 + signal
	}
	var texts [7]string
	rest = fields[len(rowNumbers)]
	for i := range texts {
		value, after, ends := strings.Cut(rest, f.mark)
		if !ends {
			return p, "", fmt.Errorf("a row of the pane list has %d texts: %q", i, clip(text))
		}
		texts[i], rest = printable(value), after
	}
	if err == nil && !strings.HasPrefix(p.ID, "%") {
		err = fmt.Errorf("a row of the pane list begins with %q: %q", clip(p.ID), clip(text))
	}
	if err != nil {
		return p, "", err
	}
	p.Cell, p.Agent, p.Session, p.Command, p.Path, p.Title = texts[1], texts[2], texts[3], texts[4], texts[5], texts[6]
	// The tag can be set by anyone who can talk to the server.
	if slot, convErr := strconv.Atoi(texts[0]); convErr == nil && slot >= 0 && p.Cell != "" {
		p.Slot = slot
	}
	return p, rest, nil
}

// printable drops what a frame or a log must not hold: control characters,
// those of C1 too, and bytes that are not UTF-8.
func printable(s string) string {
	clean := func(r rune) bool { return r != utf8.RuneError && !unicode.IsControl(r) }
	if !strings.ContainsFunc(s, func(r rune) bool { return !clean(r) }) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if clean(r) {
			return r
		}
		return '?'
	}, s)
}

func idNumber(id string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "%"))
	return n
}

func clip(s string) string {
	const most = 120
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
