//go:build linux

// Command floor is what the bench measures cellmux against: about the least
// that a Bubble Tea program can do to show the panes of a tmux server from one
// control client, with a preview of the selected one ten times a second.
//
// It trusts its input and handles no fault; nothing else may use it.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
)

type (
	listed   []string // "%1 name" each
	captured struct {
		pane string
		rows []string
	}
	due struct{}
)

// wire is one control client, used by one command at a time.
type wire struct {
	ask    chan string
	answer chan []string
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
	w := &wire{ask: make(chan string), answer: make(chan []string)}
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
	panes         []string
	at, top       int
	width, height int
	shown         captured
	asking        bool
}

func (m *model) Init() tea.Cmd {
	return func() tea.Msg { return listed(m.w.do("list-panes -a -F '#{pane_id} #{session_name}'")) }
}

func (m *model) capture() tea.Cmd {
	if m.asking || len(m.panes) == 0 {
		return nil
	}
	m.asking = true
	pane, _, _ := strings.Cut(m.panes[m.at], " ")
	return func() tea.Msg { return captured{pane, m.w.do("capture-pane -p -e -t " + pane)} }
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case listed:
		for _, p := range msg {
			if !strings.HasSuffix(p, " _hub") {
				m.panes = append(m.panes, p)
			}
		}
		return m, m.capture()
	case captured:
		m.asking, m.shown = false, msg
		if pane, _, _ := strings.Cut(m.panes[m.at], " "); pane != msg.pane {
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
	var b strings.Builder
	for y := range h {
		left := ""
		if i := m.top + y; i < len(m.panes) {
			if i == m.at {
				left = selected.Render(pad("❯ "+m.panes[i], list))
			} else {
				left = "  " + m.panes[i]
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
