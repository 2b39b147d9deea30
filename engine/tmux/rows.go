package tmux

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A pane's row in a list is one format, used for list-panes and, nested in
// loops over sessions, windows and panes, for the subscription. All of it has
// to survive hostile text on a single line:
//
//   - Control characters are replaced inside the format itself. A working
//     directory may hold a newline, which would inject lines into control mode.
//     The bracket is spelled with the bytes themselves: tmux's regular
//     expressions know no escapes, and a colon would end the modifier.
//   - Numbers come first. The text fields after them lose the separator, too,
//     but for the title, which may hold every printable character: its length
//     in bytes stands among the numbers.
const (
	controls  = "[\x01-\x1f\x7f]"
	separator = "|"
	rowEnd    = "~"
)

func textField(name string) string {
	return "#{s/[\x01-\x1f\x7f" + separator + "]/?/:" + name + "}"
}

var rowFields = []string{
	"#{pane_id}",
	"#{pane_dead}",
	"#{pane_dead_status}",
	"#{pane_dead_signal}",
	"#{pane_pid}",
	"#{pane_width}",
	"#{pane_height}",
	"#{session_attached}",
	"#{window_activity}",
	"#{n;s/" + controls + "/?/:pane_title}",
	textField("@cellmux_slot"),
	textField("@cellmux_cell"),
	textField("@cellmux_agent"),
	textField("session_name"),
	textField("pane_current_command"),
	textField("pane_current_path"),
}

// rowFormat prints one pane.
var rowFormat = strings.Join(rowFields, separator) + separator + "#{s/" + controls + "/?/:pane_title}" + rowEnd

// allRowsFormat prints every pane of the server, whatever the client looks at.
var allRowsFormat = "#{S:#{W:#{P:" + rowFormat + "}}}"

// parseRows reads what rowFormat printed, rows one after the other. One
// malformed row rejects the answer: a list that is silently shorter would make
// panes look stopped.
func parseRows(text string) ([]Pane, error) {
	var panes []Pane
	seen := make(map[string]bool)
	for text != "" {
		p, rest, err := parseRow(text)
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

// parseLines reads what list-panes printed with rowFormat.
func parseLines(lines []string) ([]Pane, error) {
	for i, l := range lines {
		// tmux 3.4 and later escape bytes that are not UTF-8 in what commands
		// print, after the title's length was taken.
		if _, rest, err := parseRow(l); err != nil || rest != "" {
			lines[i] = unescape(l)
		}
	}
	return parseRows(strings.Join(lines, ""))
}

// unescape undoes vis(3)'s octal form of bytes above 0x7f.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil && n > 0x7f {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func parseRow(text string) (p Pane, rest string, err error) {
	fields := strings.SplitN(text, separator, len(rowFields)+1)
	if len(fields) != len(rowFields)+1 {
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
		Cell:       printable(fields[11]),
		Agent:      printable(fields[12]),
		Session:    printable(fields[13]),
		Command:    printable(fields[14]),
		Path:       printable(fields[15]),
		Slot:       -1,
	}
	if signal := number(fields[3]); signal > 0 {
		p.ExitStatus = 128 + signal
	}
	// The tag can be set by anyone who can talk to the server.
	if slot, convErr := strconv.Atoi(fields[10]); convErr == nil && slot >= 0 && p.Cell != "" {
		p.Slot = slot
	}
	size, tail := number(fields[9]), fields[16]
	if err != nil {
		return p, "", err
	}
	if !strings.HasPrefix(p.ID, "%") || size < 0 || size+len(rowEnd) > len(tail) || tail[size:size+len(rowEnd)] != rowEnd {
		return p, "", fmt.Errorf("a row of the pane list does not end where it says: %q", clip(text))
	}
	p.Title = printable(tail[:size])
	return p, tail[size+len(rowEnd):], nil
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
