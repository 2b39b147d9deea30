package tui

import (
	"strings"

	"github.com/charmbracelet/colorprofile"
)

// terminal is what the environment tells about the user's terminal. It is read
// once: asking the terminal itself would wait for an answer that may not come.
type terminal struct {
	dumb     bool
	ascii    bool
	profile  colorprofile.Profile
	mosh     bool
	vscode   bool
	insideOf bool // cellmux runs inside tmux
}

var terminalVariables = []string{"TERM", "COLORTERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM_PROGRAM", "TMUX", "WT_SESSION"}

func readTerminal(getenv func(string) string) terminal {
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	environment := []string{"TTY_FORCE=1"} // whether this is a terminal was asked before
	for _, name := range terminalVariables {
		if value := getenv(name); value != "" {
			environment = append(environment, name+"="+value)
		}
	}
	t := terminal{
		dumb:     getenv("TERM") == "dumb",
		ascii:    !utf8Locale(getenv),
		profile:  colorprofile.Env(environment),
		mosh:     getenv("MOSH_CONNECTION") != "",
		vscode:   getenv("TERM_PROGRAM") == "vscode",
		insideOf: getenv("TMUX") != "",
	}
	// https://no-color.org: any value but the empty one; bixense.com/clicolors.
	if getenv("NO_COLOR") != "" || getenv("CLICOLOR") == "0" {
		t.profile = colorprofile.Ascii
	}
	return t
}

// utf8Locale follows setlocale(3): the first of the three that is not empty.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := getenv(name); value != "" {
			value = strings.ToLower(value)
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}

func (t terminal) coloured() bool { return t.profile > colorprofile.Ascii }
