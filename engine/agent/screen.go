package agent

import (
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Look is what can be seen of a pane now.
type Look struct {
	Rows  []string // the visible screen, top first, with or without its SGR colours
	Title string   // control characters removed
}

// Box says what an agent's input box can take. The zero value is unknown: not
// to be typed into.
type Box struct {
	Known  bool   // the screen was understood
	Ready  bool   // it takes text
	Busy   bool   // a turn runs
	Asking bool   // a question is open: an Enter would answer it
	Draft  string // what the user has half typed; "" is nothing
	Reason string // why it is not Ready, a sentence
}

// ScreenRule reads a screen by regular expressions over single rows, without
// colours. An empty expression matches nothing.
type ScreenRule struct {
	// Ready is a row that is there when the box takes text; none set: always
	// ready. Its first group, if it has one, is what stands in the box.
	Ready  string `toml:"ready"`
	Busy   string `toml:"busy"`   // a row that is there while a turn runs
	Asking string `toml:"asking"` // a row that is there while a question is open
}

func (r ScreenRule) empty() bool { return r == ScreenRule{} }

// rule reads a box by a ScreenRule. An expression that does not compile makes
// the box unknown, with the reason.
func (r ScreenRule) read(l Look) Box {
	var b Box
	for _, e := range []struct {
		expression string
		found      *bool
	}{{r.Ready, &b.Ready}, {r.Busy, &b.Busy}, {r.Asking, &b.Asking}} {
		if e.expression == "" {
			continue
		}
		re, err := regexp.Compile(e.expression)
		if err != nil {
			return Box{Reason: "its screen rule is no regular expression: " + err.Error()}
		}
		for _, row := range slices.Backward(l.Rows) {
			found := re.FindStringSubmatch(ansi.Strip(row))
			if found == nil {
				continue
			}
			*e.found = true
			if e.found == &b.Ready && len(found) > 1 {
				b.Draft = strings.TrimSpace(found[1])
			}
			break
		}
	}
	b.Known = true
	if r.Ready == "" {
		b.Ready = true
	}
	if b.Asking {
		b.Ready, b.Reason = false, "it asks a question"
	} else if !b.Ready {
		b.Reason = "its box is not on the screen"
	}
	return b
}

// Box reads the agent's input box from the screen and what its level source
// said last. A question known from either is a question: the cost of holding a
// message back is small, that of approving a command is not.
func (a *Agent) Box(l Look, s Status) Box {
	if a.box == nil {
		return Box{Reason: a.name + " takes no messages"}
	}
	b := a.box(l)
	switch s.State {
	case Unknown:
		if a.mustSay && b.Ready {
			b.Ready, b.Reason = false, "it is starting"
		}
	case Waiting:
		b.Asking, b.Ready, b.Reason = true, false, "it asks a question"
	case Working:
		b.Busy = true
	case Idle:
		// A level is better than a word on the screen, which a message may hold; of
		// an agent that is read by its screen this one is the newer.
		if b.Known && a.rule == nil {
			b.Busy = false
		}
	case LoginNeeded:
		b.Ready, b.Reason = false, "it needs a login"
	case Ended:
		b = Box{Known: true, Reason: "it has ended"}
	}
	return b
}

// plain returns a row without colours and trailing blanks.
func plain(row string) string { return strings.TrimRight(ansi.Strip(row), " \u00a0") }

// isRule says whether a row is a horizontal line across the screen, perhaps
// with a label in it.
func isRule(row string) bool {
	text := strings.TrimSpace(plain(row))
	return strings.HasPrefix(text, "────────") || strings.HasPrefix(text, "▀▀▀▀▀▀▀▀") || strings.HasPrefix(text, "▄▄▄▄▄▄▄▄")
}

// bright returns the text of a row that is not drawn dim or in grey: what is
// left of an input box is what the user typed, not the agent's hint.
func bright(row string) string {
	var out strings.Builder
	var p pen
	parser := ansi.NewParser()
	state := byte(0)
	for len(row) > 0 {
		sequence, width, n, next := ansi.DecodeSequence(row, state, parser)
		if n <= 0 {
			break
		}
		state = next
		row = row[n:]
		if width > 0 {
			if !p.dim && !p.grey {
				out.WriteString(sequence)
			}
			continue
		}
		if strings.HasPrefix(sequence, "\x1b[") && strings.HasSuffix(sequence, "m") {
			p.apply(parser.Params())
		}
	}
	return strings.TrimRight(out.String(), " \u00a0")
}

// pen is the part of the SGR state that tells a hint from typed text.
type pen struct{ dim, grey bool }

func (p *pen) apply(params ansi.Params) {
	if len(params) == 0 {
		*p = pen{}
	}
	for i := 0; i < len(params); i++ {
		switch n := params[i].Param(0); {
		case n == 0:
			*p = pen{}
		case n == 2:
			p.dim = true
		case n == 22:
			p.dim = false
		case n == 90:
			p.grey = true
		case n == 38 && i+2 < len(params) && params[i+1].Param(0) == 5:
			color := params[i+2].Param(0)
			p.grey = color >= 238 && color <= 250 || color == 8
			i += 2
		case n == 38 && i+4 < len(params) && params[i+1].Param(0) == 2:
			r, g, b := params[i+2].Param(0), params[i+3].Param(0), params[i+4].Param(0)
			p.grey = max(r, g, b) < 0xb0 && max(r, g, b)-min(r, g, b) < 0x20
			i += 4
		case n == 48 && i+2 < len(params) && params[i+1].Param(0) == 5:
			i += 2
		case n == 48 && i+4 < len(params) && params[i+1].Param(0) == 2:
			i += 4
		case n == 39 || n >= 30 && n <= 37 || n >= 91 && n <= 97:
			p.grey = false
		}
	}
}

// questionOn returns the row that matches an expression, and the two before it:
// what a screen rule can tell of a question.
func questionOn(rows []string, expression string) string {
	re, err := regexp.Compile(expression)
	if err != nil {
		return ""
	}
	for i, row := range rows {
		if re.MatchString(ansi.Strip(row)) {
			return joinRows(rows[max(0, i-2) : i+1])
		}
	}
	return ""
}

// joinRows makes one line of rows, without colours and frames.
func joinRows(rows []string) string {
	var words []string
	for _, row := range rows {
		text := strings.Trim(plain(row), " │┃|╭╮╰╯─╌━▀▄█▌▐▎▏")
		if text != "" {
			words = append(words, text)
		}
	}
	return line(strings.Join(words, " "))
}
