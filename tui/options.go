package tui

import (
	"io"

	tea "github.com/charmbracelet/bubbletea"
)

// Settings is how the user wants the screen to behave (config.toml). The zero
// value is the default.
type Settings struct {
	// Keys replaces the keys of a binding, by the binding's name as docs/keys.md
	// lists it. An empty list takes the binding away. CheckKeys tells clashes.
	Keys map[string][]string
	// Theme names a built-in theme or one of Themes; "" follows the terminal.
	Theme string
	// Themes are the user's own: token to style, such as "waiting": "yellow bold".
	// What a theme leaves out it takes from the default.
	Themes map[string]map[string]string
	// NoMouse leaves the mouse to the terminal until M is pressed.
	NoMouse bool
	// ASCII draws without any character beyond ASCII, whatever the locale says.
	ASCII bool
	// AskByDefault lets agents answer `!` lines without `!?`.
	AskByDefault bool
	// Sort is "attention", "name" or "created"; Group is "", "engine", "status",
	// "directory" or "workspace".
	Sort, Group string
}

// Options is all that Run needs. Ports, In and Out are required.
type Options struct {
	Ports    Ports
	Settings Settings
	Version  string
	In       io.Reader // the terminal; its Fd method, if any, is put in raw mode
	Out      io.Writer // the terminal
	// Getenv answers TERM, COLORTERM, NO_COLOR, CLICOLOR, LANG, LC_ALL, LC_CTYPE,
	// MOSH_CONNECTION, TERM_PROGRAM, TMUX and HOME; nil answers none.
	Getenv func(string) string
	// Directory is where cellmux was started: the selection starts on its cell.
	Directory string
	// Notice is a sentence to begin with, such as what happened to the last run.
	Notice string
	// Exec lends the terminal to a program in the foreground; nil is tea.Exec. A
	// test runs the program itself.
	Exec func(tea.ExecCommand, tea.ExecCallback) tea.Cmd
}
