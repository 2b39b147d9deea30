package tui

import (
	"fmt"
	"slices"
	"strings"
)

// A token is what a part of the screen means; a theme says how that looks.
type token int

// The tokens.
const (
	tText token = iota
	tDim
	tRunning
	tWaiting
	tIdle
	tDead
	tFocus
	tRemote
	tTitle
	tKey
	tSelected
	tMarked
	tAlarm // type-in mode, and what must not be overlooked
	tCode
	tEmphasis
	tAdded
	tRemoved
	tokens
)

var tokenNames = [tokens]string{"text", "dim", "running", "waiting", "idle", "dead", "focus", "remote",
	"title", "key", "selected", "marked", "alarm", "code", "emphasis", "added", "removed"}

// themes are data: token to style words. The colours are the terminal's own 16,
// so that a theme of the terminal's stays what the user chose. What a theme
// leaves out is as in "default".
var themes = map[string]map[string]string{
	"default": {
		"dim": "dim", "running": "green", "waiting": "yellow bold", "idle": "dim", "dead": "red",
		"focus": "blue bold", "remote": "magenta", "title": "bold", "key": "bold",
		"selected": "reverse", "marked": "cyan bold", "alarm": "reverse bold red", "code": "cyan", "emphasis": "italic", "added": "green", "removed": "red",
	},
	"light": {"waiting": "magenta bold", "remote": "cyan", "dim": "bright-black", "idle": "bright-black"},
	"bright": {"running": "bright-green", "waiting": "bright-yellow bold", "dead": "bright-red bold", "focus": "bright-blue bold",
		"remote": "bright-magenta", "dim": "text", "idle": "text"},
	"plain": {"running": "text", "waiting": "bold", "idle": "text", "dead": "bold", "focus": "bold", "remote": "text",
		"dim": "text", "marked": "bold", "alarm": "reverse bold", "code": "text", "added": "text", "removed": "text"},
}

// Themes returns the names of the built-in themes.
func Themes() []string {
	names := make([]string, 0, len(themes))
	for name := range themes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var attributes = map[string]string{"bold": "1", "dim": "2", "italic": "3", "underline": "4", "reverse": "7", "text": ""}

var colours = []string{"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"}

// parseStyle reads words such as "yellow bold" or "white on-blue" into the
// parameters of an SGR sequence, without colours when coloured is false.
func parseStyle(words string, coloured bool) (string, error) {
	var parameters []string
	for _, word := range strings.Fields(words) {
		if p, ok := attributes[word]; ok {
			if p != "" {
				parameters = append(parameters, p)
			}
			continue
		}
		base, name := 30, word
		if rest, ok := strings.CutPrefix(name, "on-"); ok {
			base, name = 40, rest
		}
		if rest, ok := strings.CutPrefix(name, "bright-"); ok {
			base, name = base+60, rest
		}
		i := slices.Index(colours, name)
		if i < 0 {
			return "", fmt.Errorf("no style word is called %q: use %s, bright-…, on-…, bold, dim, italic, underline, reverse or text",
				word, strings.Join(colours, ", "))
		}
		if coloured {
			parameters = append(parameters, fmt.Sprint(base+i))
		}
	}
	return strings.Join(parameters, ";"), nil
}

// styles are the SGR sequences of a theme, by token.
type styles [tokens]string

// CheckTheme tells what is wrong with a theme: a name that nothing has, a part of
// the screen or a style that there is not.
func CheckTheme(name string, own map[string]map[string]string) error {
	_, err := newStyles(name, own, true)
	return err
}

// newStyles reads a theme. Names beyond the built-in ones come from own.
func newStyles(name string, own map[string]map[string]string, coloured bool) (*styles, error) {
	if name == "" {
		name = "default"
	}
	layers := []map[string]string{themes["default"], themes[name], own[name]}
	if layers[1] == nil && layers[2] == nil {
		return nil, fmt.Errorf("no theme is called %q: use %s, or define it under [themes.%s]", name, strings.Join(Themes(), ", "), name)
	}
	if !coloured && layers[1] == nil {
		layers = slices.Insert(layers, 1, themes["plain"])
	}
	var s styles
	for _, layer := range layers {
		for key, words := range layer {
			i := slices.Index(tokenNames[:], key)
			if i < 0 {
				return nil, fmt.Errorf("theme %q styles %q, which is none of %s", name, key, strings.Join(tokenNames[:], ", "))
			}
			parameters, err := parseStyle(words, coloured)
			if err != nil {
				return nil, fmt.Errorf("theme %q, %s: %w", name, key, err)
			}
			s[i] = parameters
		}
	}
	return &s, nil
}

// paint draws text in a style. Text must not hold sequences of its own.
func (s *styles) paint(t token, text string) string {
	if s[t] == "" || text == "" {
		return text
	}
	return "\x1b[" + s[t] + "m" + text + "\x1b[m"
}

// glyphs are the characters of the frame, in Unicode or ASCII.
type glyphs struct {
	running, waiting, idle, dead, unknown, archived, stopped, failed string
	open, closed, marked, pinned, selected                           string
	horizontal, vertical, teeRight, teeDown, teeUp                   string
	topLeft, topRight, bottomLeft, bottomRight                       string
	ellipsis, arrow, barFull, barEmpty                               string
	ascii                                                            bool
}

var unicodeGlyphs = glyphs{
	running: "●", waiting: "?", idle: "○", dead: "✗", unknown: "…", archived: "z", stopped: "-", failed: "!",
	open: "▾", closed: "▸", marked: "✓", pinned: "^", selected: "❯",
	horizontal: "─", vertical: "│", teeRight: "├", teeDown: "┬", teeUp: "┴",
	topLeft: "┌", topRight: "┐", bottomLeft: "└", bottomRight: "┘",
	ellipsis: "…", arrow: "→", barFull: "━", barEmpty: "─",
}

var asciiGlyphs = glyphs{
	running: "*", waiting: "?", idle: "-", dead: "x", unknown: "~", archived: "z", stopped: ".", failed: "!",
	open: "v", closed: ">", marked: "+", pinned: "^", selected: ">",
	horizontal: "-", vertical: "|", teeRight: "+", teeDown: "+", teeUp: "+",
	topLeft: "+", topRight: "+", bottomLeft: "+", bottomRight: "+",
	ellipsis: "~", arrow: "->", barFull: "=", barEmpty: "-", ascii: true,
}
