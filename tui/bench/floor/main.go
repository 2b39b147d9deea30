//go:build linux

// Command floor is what the bench measures cellmux against: about the least
// that a Bubble Tea program can do to show the panes of a tmux server from one
// control client, what runs in each and for how long it has been silent, with a
// preview of the selected one ten times a second. The list is pushed, by one
// subscription over every pane.
//
// It trusts its input and handles no fault; nothing else may use it.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
)

type (
	listed   []pane
	captured struct {
		pane string
		rows []string
	}
	due struct{}
)

// pane is a row of the list.
type pane struct {
	id, session, command, title string
	dead                        bool
	activity                    time.Time
}

// rowFormat prints one pane; what it trusts is that no field holds a tab.
const rowFormat = "#{pane_id}\t#{session_name}\t#{pane_dead}\t#{window_activity}\t#{pane_current_command}\t#{pane_title}\t\t"

func parse(text string) listed {
	var all listed
	for row := range strings.SplitSeq(text, "\t\t") {
		f := strings.Split(row, "\t")
		if len(f) < 6 || f[1] == "_hub" {
			continue
		}
		at, _ := strconv.ParseInt(f[3], 10, 64)
		all = append(all, pane{id: f[0], session: f[1], dead: f[2] == "1", activity: time.Unix(at, 0), command: f[4], title: f[5]})
	}
	return all
}

// wire is one control client, used by one command at a time.
type wire struct {
	ask    chan string
	answer chan []string
	pushed chan listed // the newest list that was pushed
}

func connect(socket string) (*wire, error) {
	cmd := exec.Command("tmux", "-u", "-L", socket, "-C", "attach-session", "-t", "=_hub", "-f", "no-output,ignore-size")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &wire{ask: make(chan string), answer: make(chan []string), pushed: make(chan listed, 16)}
	lines := bufio.NewReaderSize(out, 1<<20)
	block := func() []string {
		var got []string
		inside := false
		for {
			l, err := lines.ReadString('\n')
			if err != nil {
				os.Exit(1)
			}
			l = strings.TrimSuffix(l, "\n")
			switch {
			case !inside && strings.HasPrefix(l, "%begin "):
				inside = true
			case inside && (strings.HasPrefix(l, "%end ") || strings.HasPrefix(l, "%error ")):
				return got
			case inside:
				got = append(got, l)
			case strings.HasPrefix(l, "%subscription-changed "):
				if _, value, ok := strings.Cut(l, " : "); ok {
					w.pushed <- parse(value)
				}
			}
		}
	}
	block() // of the attach itself
	go func() {
		for q := range w.ask {
			_, _ = fmt.Fprintln(in, q)
			w.answer <- block()
		}
	}()
	return w, nil
}

func (w *wire) do(q string) []string {
	w.ask <- q
	return <-w.answer
}

type model struct {
	w             *wire
	panes         []pane
	at, top       int
	width, height int
	shown         captured
	asking        bool
}

func (m *model) Init() tea.Cmd {
	return tea.Batch(func() tea.Msg {
		all := m.w.do("display-message -p '#{S:#{W:#{P:" + rowFormat + "}}}'")
		m.w.do("refresh-client -B 'panes::#{S:#{W:#{P:" + rowFormat + "}}}'")
		return parse(strings.Join(all, ""))
	}, m.listen)
}

func (m *model) listen() tea.Msg { return <-m.w.pushed }

func (m *model) capture() tea.Cmd {
	if m.asking || len(m.panes) == 0 {
		return nil
	}
	m.asking = true
	pane := m.panes[m.at].id
	return func() tea.Msg { return captured{pane, m.w.do("capture-pane -p -e -t " + pane)} }
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case listed:
		first := m.panes == nil
		m.panes = msg
		if first {
			return m, m.capture()
		}
		return m, m.listen
	case captured:
		m.asking, m.shown = false, msg
		if m.panes[m.at].id != msg.pane {
			return m, m.capture()
		}
		return m, tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return due{} })
	case due:
		return m, m.capture()
	case tea.KeyMsg:
		switch msg.String() {
		case "q", "ctrl+c":
			return m, tea.Quit
		}
		for _, r := range keys(msg) {
			switch r {
			case "j":
				m.at = min(m.at+1, len(m.panes)-1)
			case "k":
				m.at = max(m.at-1, 0)
			}
		}
		return m, m.capture()
	}
	return m, nil
}

// keys splits what Bubble Tea reads as one key: letters of one read.
func keys(msg tea.KeyMsg) []string {
	switch msg.Type {
	case tea.KeyDown:
		return []string{"j"}
	case tea.KeyUp:
		return []string{"k"}
	case tea.KeyRunes:
		return strings.Split(string(msg.Runes), "")
	}
	return nil
}

var selected = lipgloss.NewStyle().Reverse(true)

func (m *model) View() string {
	if len(m.panes) == 0 || m.height == 0 {
		return ""
	}
	h := m.height - 1
	if m.at < m.top {
		m.top = m.at
	}
	if m.at >= m.top+h {
		m.top = m.at - h + 1
	}
	const list = 46
	now := time.Now()
	var b strings.Builder
	for y := range h {
		left := ""
		if i := m.top + y; i < len(m.panes) {
			p := m.panes[i]
			left = pad(ansi.Truncate(p.session+"  "+p.command+"  "+p.title, list-8, "…"), list-8) + age(now.Sub(p.activity))
			if i == m.at {
				left = selected.Render(pad("❯ "+left, list))
			} else {
				left = "  " + left
			}
		}
		b.WriteString(pad(left, list))
		if y < len(m.shown.rows) {
			b.WriteString(ansi.Truncate(m.shown.rows[y], m.width-list, ""))
			b.WriteString("\x1b[0m")
		}
		b.WriteByte('\n')
	}
	b.WriteString("j k move   q quit")
	return b.String()
}

func age(d time.Duration) string {
	if d < time.Minute {
		return strconv.Itoa(int(d.Seconds())) + "s"
	}
	return strconv.Itoa(int(d.Minutes())) + "m"
}

func pad(s string, w int) string { return s + strings.Repeat(" ", max(0, w-ansi.StringWidth(s))) }

func main() {
	w, err := connect(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if _, err := tea.NewProgram(&model{w: w}, tea.WithAltScreen(), tea.WithFPS(120)).Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
