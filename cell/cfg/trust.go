package cfg

import (
	"fmt"
	"reflect"
	"strings"
)

// Approvals remembers which project files the user approved.
type Approvals interface {
	// Approved says whether the file at path, with links resolved, was approved
	// with the content of that hash.
	Approved(path, hash string) bool
}

// Pending is a project's file that waits for the user's approval. It can be
// shown and approved; it holds no configuration, and nothing in it can be
// expanded, resolved or run.
type Pending struct {
	Path    string // with links resolved
	Hash    string // of the content below: an approval names both
	Text    string // the file, as it is: show it with its control characters escaped
	Waiting []PendingValue
}

// PendingValue is one value that has no effect yet.
type PendingValue struct {
	Value
	Acts string // what it would do: a phrase such as "shares directories of the host"; "" nothing beyond its section
}

// Summary is one sentence for the list.
func (p *Pending) Summary() string {
	var keys []string
	for _, w := range p.Waiting {
		if section, _, _ := strings.Cut(w.Key, "."); len(keys) == 0 || keys[len(keys)-1] != section {
			keys = append(keys, section)
		}
	}
	if len(keys) == 0 {
		return "its project file waits for approval, and sets nothing"
	}
	return "its project file waits for approval: " + strings.Join(keys, ", ")
}

func newPending(doc *document, asked CellConfig, origins map[string]Origin) *Pending {
	p := &Pending{Path: doc.path, Hash: doc.hash, Text: doc.text}
	valuesOf(asked, origins, func(v Value, tag reflect.StructTag) {
		if hasNoMeaning(tag) {
			return
		}
		acts := tag.Get("acts")
		if runsCommand(v.Text) {
			acts = "runs a command"
		}
		p.Waiting = append(p.Waiting, PendingValue{v, acts})
	})
	return p
}

// runsCommand says that a value, once approved, starts a program.
func runsCommand(text string) bool {
	return strings.Contains(text, "$(") || strings.Contains(text, "`") || strings.HasPrefix(text, `"`+SecretCommand)
}

// Lines says what waits for approval, a line a value: where it stands, what it
// says, and what it would do. They hold no control characters.
func (p *Pending) Lines() []string {
	lines := make([]string, 0, len(p.Waiting))
	for _, w := range p.Waiting {
		line := fmt.Sprintf("line %d: %s = %s", w.Origin.Line, w.Key, w.Text)
		if w.Acts != "" {
			line += "   " + w.Acts
		}
		lines = append(lines, line)
	}
	return lines
}
