package tui

import (
	"cmp"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/sahilm/fuzzy"

	"cellmux/shellctx/convo"
)

// picker is a menu: type to narrow, Enter to choose.
type picker struct {
	title string
	items []item
	empty string // what to say when there are none
	field editor
	at    int
	top   int
	// typed, when set, is asked for new items as the user types.
	typed func(text string) []intent
	// more, when set, is asked for once the last item has been reached.
	more []intent
}

// item is an entry of a picker. Where off is set it cannot be chosen.
type item struct {
	label, detail string
	hint          string // its key
	off           string
	intents       []intent
}

// shown are the items that match what was typed, best first.
func (p *picker) shown() []item {
	query := strings.TrimSpace(p.field.text)
	if query == "" || p.typed != nil {
		return p.items
	}
	labels := make([]string, len(p.items))
	for i, it := range p.items {
		labels[i] = it.label + " " + it.detail
	}
	var out []item
	for _, match := range fuzzy.Find(query, labels) {
		out = append(out, p.items[match.Index])
	}
	// A name that was typed comes before sentences that hold its letters.
	slices.SortStableFunc(out, func(a, b item) int { return cmp.Compare(a.distance(query), b.distance(query)) })
	return out
}

// distance is 0 where query is the item's name, 1 where the name begins with it.
func (it item) distance(query string) int {
	name, query := strings.TrimPrefix(it.label, ":"), strings.TrimPrefix(query, ":")
	switch {
	case strings.EqualFold(name, query):
		return 0
	case len(name) > len(query) && strings.EqualFold(name[:len(query)], query):
		return 1
	}
	return 2
}

func (p *picker) key(m *Model, k tea.KeyMsg) ([]intent, bool) {
	items := p.shown()
	switch k.String() {
	case "esc", "ctrl+c":
		return nil, true
	case "down", "ctrl+n", "tab":
		p.at++
	case "up", "ctrl+p", "shift+tab":
		p.at--
	case "pgdown":
		p.at += 10
	case "pgup":
		p.at -= 10
	case "enter":
		if p.at >= len(items) {
			return nil, len(items) == 0 && p.typed == nil
		}
		if why := items[p.at].off; why != "" {
			m.say(items[p.at].label + ": " + why)
			return nil, false
		}
		return items[p.at].intents, true
	default:
		before := p.field.text
		p.field.key(k)
		if p.field.text != before {
			return p.changed(), false
		}
	}
	p.at = max(0, min(p.at, len(p.shown())-1))
	if p.at == len(p.shown())-1 {
		more := p.more
		p.more = nil
		return more, false
	}
	return nil, false
}

func (p *picker) paste(m *Model, text string) []intent {
	p.field.insert(text)
	return p.changed()
}

func (p *picker) changed() []intent {
	p.at, p.top, p.more = 0, 0, nil
	if p.typed != nil {
		return p.typed(p.field.text)
	}
	return nil
}

func (p *picker) box(m *Model, w, h int) box {
	b := box{title: p.title, width: min(w-4, 90), foot: "type to narrow   enter choose   esc close"}
	rows, column, _ := p.field.view(b.width-2, 0)
	b.lines = []string{m.painter.paint(tFocus, "> ") + m.painter.cursorIn(rows[len(rows)-1], column)}
	items := p.shown()
	room := max(1, h-4)
	p.top = max(0, min(min(p.top, p.at), len(items)-room))
	p.top = max(p.top, p.at-room+1)
	label := 0
	for _, it := range items {
		label = max(label, min(width(it.label), b.width/2))
	}
	for i := p.top; i < min(len(items), p.top+room); i++ {
		b.lines = append(b.lines, p.line(m, items[i], b.width, label, i == p.at))
	}
	if len(items) == 0 && p.empty != "" {
		b.lines = append(b.lines, m.painter.paint(tDim, p.empty))
	}
	return b
}

func (p *picker) line(m *Model, it item, w, label int, chosen bool) string {
	g := m.painter
	detail, t := it.detail, tDim
	if it.off != "" {
		detail = it.off
	}
	room := w - label - 2 - 10
	labelToken := tText
	if it.off != "" {
		labelToken = tDim
	}
	if it.hint == "" {
		room += 10
	}
	segments := append([]segment{{labelToken, g.fit(it.label, label)}, {tText, "  "}}, marked(t, g.fit(detail, room))...)
	if it.hint != "" {
		segments = append(segments, segment{tKey, g.fitRight(it.hint, 10)})
	}
	return g.join(chosen, segments...)
}

// marked divides a text at the marks of a search hit.
func marked(t token, text string) []segment {
	var segments []segment
	for text != "" {
		before, rest, found := strings.Cut(text, string(convo.MatchStart))
		segments = append(segments, segment{t, before})
		if !found {
			break
		}
		match, after, _ := strings.Cut(rest, string(convo.MatchEnd))
		segments, text = append(segments, segment{tKey, match}), after
	}
	return segments
}
