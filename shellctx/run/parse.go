package run

import "strings"

// Line is what the user typed into the composer, read once.
type Line struct {
	Shell bool   // a shell command; else prose for the agent
	Mode  Mode   // of a shell command
	Text  string // shell source without its marks, or the prose
}

// ParseLine reads a line of the composer, typed or pasted (UX.md section 4):
//
//	!cmd    shell command, recorded as context
//	!!cmd   private: recorded in the shell log and nowhere else
//	!?cmd   recorded, and the agent answers
//	\!text  prose that begins with !
//	text    prose
//
// White space before the marks, and between them and the command, has no
// meaning. A command may have several lines and keeps them as they are, except
// for empty lines at its end; prose is kept as it is. A bare mark is a command
// with empty Text.
func ParseLine(s string) Line {
	trimmed := strings.TrimLeft(s, " \t\r\n")
	if rest, ok := strings.CutPrefix(trimmed, `\!`); ok {
		return Line{Text: "!" + rest}
	}
	rest, ok := strings.CutPrefix(trimmed, "!")
	if !ok {
		return Line{Text: s}
	}
	mode := Context
	switch {
	case strings.HasPrefix(rest, "!"):
		mode, rest = Private, rest[1:]
	case strings.HasPrefix(rest, "?"):
		mode, rest = Ask, rest[1:]
	}
	rest = strings.TrimLeft(rest, " \t\r\n")
	return Line{Shell: true, Mode: mode, Text: strings.TrimRight(rest, "\r\n")}
}
