package tmux

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Prefs are the user's choices about an attached pane.
type Prefs struct {
	DetachKeys   []string // as tmux names them; nil is C-q and F12
	HistoryLimit int      // lines kept of each pane; 0 is 10000
	Mouse        bool     // tmux takes the mouse of an attached terminal
}

func (p Prefs) detachKeys() []string {
	if len(p.DetachKeys) == 0 {
		return []string{"C-q", "F12"}
	}
	return p.DetachKeys
}

// confText is our whole tmux configuration; the user's own is never read. Its
// hash is an option of the server, so that a later cellmux sees whether a
// running server has it.
func confText(p Prefs, getenv func(string) string) string {
	limit := p.HistoryLimit
	if limit <= 0 {
		limit = 10_000
	}
	mouse := "off"
	if p.Mouse {
		mouse = "on"
	}
	var b strings.Builder
	for _, l := range []string{
		// A failure stays readable, and a slot's session ends only when asked.
		"set -g remain-on-exit on",
		"set -g destroy-unattached off",
		// Names are ours; a program must not change what targets resolve to,
		// nor keep the server busy with guessing them.
		"set -g allow-rename off",
		"set -g automatic-rename off",
		"set -g set-titles off",
		// Nothing of an attaching client's environment reaches a pane.
		"set -g update-environment ''",
		"set -g default-terminal " + paneTerminal(getenv),
		fmt.Sprintf("set -g history-limit %d", limit),
		"set -g mouse " + mouse,
		"set -g window-size latest",
		"set -g focus-events on",
		"set -s escape-time 10",
		"set -s set-clipboard on",
		// A program that asks for it can tell Shift-Enter from Enter.
		"set -sq extended-keys on",
		"set -g lock-after-time 0",
		"set -g status on",
		// Two keys within a millisecond of each other, or of the attach, would be
		// taken for a paste and bound to nothing: the first ctrl-q was lost. Real
		// pastes are bracketed.
		"set -g assume-paste-time 0",
		"set -g status-interval 0",
		"set -g status-position bottom",
		"set -g status-style 'fg=default,bg=default'",
		"set -g status-left-length 60",
		"set -g status-left ' #{@cellmux_cell}:#{@cellmux_slot} #{@cellmux_agent} '",
		"set -g status-right-length 60",
		"set -g status-right '" + strings.Join(shown(p.detachKeys()), " or ") + ": back to the list '",
		"set -g window-status-format ''",
		"set -g window-status-current-format ''",
		// Keys that an earlier configuration may have bound.
		"unbind -n C-q",
		"unbind -n F12",
	} {
		b.WriteString(l + "\n")
	}
	for _, key := range p.detachKeys() {
		b.WriteString(line(command{"bind", "-n", key, "detach-client"}) + "\n")
	}
	sum := sha256.Sum256([]byte(b.String()))
	fmt.Fprintf(&b, "set -g %s %x\n", confOption, sum[:8])
	return b.String()
}

const confOption = "@cellmux_conf"

// confHash returns what confOption is on a server that has read text.
func confHash(text string) string {
	i := strings.LastIndex(text, confOption+" ")
	return strings.TrimSpace(text[i+len(confOption)+1:])
}

// shown writes keys as people do: "ctrl-q", "F12".
func shown(keys []string) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = printable(strings.ReplaceAll(strings.ReplaceAll(k, "C-", "ctrl-"), "'", ""))
	}
	return out
}

// paneTerminal is the TERM of a pane: tmux's own where the system knows it.
// Not all do, and a program with an unknown TERM refuses to draw.
func paneTerminal(getenv func(string) string) string {
	dirs := []string{getenv("TERMINFO")}
	if home := getenv("HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, ".terminfo"))
	}
	dirs = append(dirs, filepath.SplitList(getenv("TERMINFO_DIRS"))...)
	dirs = append(dirs, "/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/share/lib/terminfo", "/usr/local/share/terminfo", "/opt/homebrew/share/terminfo")
	const name = "tmux-256color"
	for _, dir := range dirs {
		for _, folder := range []string{"t", "74"} { // macOS names folders by the byte
			if dir == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join(dir, folder, name)); err == nil {
				return name
			}
		}
	}
	return "screen-256color"
}

const confName = "tmux.conf"

func (s *Server) confPath() string { return filepath.Join(s.opts.RuntimeDir, confName) }

// writeConf writes our configuration below the runtime directory and returns
// its path. A reader sees the old text or the new one, never a part.
func writeConf(dir, text string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("write tmux's configuration: %w", err)
	}
	path := filepath.Join(dir, confName)
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return path, nil
	}
	f, err := os.CreateTemp(dir, ".tmux.conf-*") // mode 0600
	if err != nil {
		return "", fmt.Errorf("write tmux's configuration: %w", err)
	}
	_, err = f.WriteString(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("write tmux's configuration: %w", err)
	}
	return path, nil
}
