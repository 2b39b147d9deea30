package cfg

import (
	"fmt"
	"strings"
)

// Problem is one fault of a file, or one thing about it that the user should
// know.
type Problem struct {
	File string
	Position
	Key     string // dotted; "" when it is about the file as a whole
	Message string
}

// String is "file:line:col: key: message", with the parts that are known.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
		if p.Line > 0 {
			fmt.Fprintf(&b, "%d:%d:", p.Line, p.Col)
		}
		b.WriteByte(' ')
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	return b.String() + p.Message
}

// Error holds every fault of the sources, in their order.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
