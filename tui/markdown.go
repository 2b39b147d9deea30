package tui

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// An agent's answer is Markdown. goldmark parses it and it is drawn here, in the
// theme's own tokens: glamour, which would draw it too, costs every start of
// cellmux (each pane's hand-off among them) tens of milliseconds and 6 MB in
// init, for the highlighting of 250 languages.

// markdown draws a text in rows of at most w cells.
func (m *Model) markdown(source string, w int) []string {
	b := []byte(source)
	parser := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser()
	r := renderer{painter: m.painter, source: b}
	rows := r.blocks(parser.Parse(text.NewReader(b)), w, true)
	if m.painter.ascii {
		for i := range rows {
			rows[i] = plain(rows[i])
		}
	}
	return rows
}

type renderer struct {
	*painter
	source []byte
}

// blocks draws the children of a node, with a blank row between them where
// loose is set.
func (r *renderer) blocks(parent ast.Node, w int, loose bool) []string {
	var rows []string
	if w < 8 { // nested too deeply to indent any more
		w = 8
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		drawn := r.block(n, w)
		if len(drawn) == 0 {
			continue
		}
		if loose && len(rows) > 0 {
			rows = append(rows, "")
		}
		rows = append(rows, drawn...)
	}
	return rows
}

func (r *renderer) block(n ast.Node, w int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		return r.flow(r.inline(n, tTitle), w)
	case *ast.List:
		return r.list(n, w)
	case *ast.Blockquote:
		return prefixed(r.blocks(n, w-2, true), r.paint(tDim, r.vertical)+" ", "")
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		return r.code(n, w)
	case *ast.HTMLBlock:
		return r.code(n, w)
	case *ast.ThematicBreak:
		return []string{r.paint(tDim, strings.Repeat(r.horizontal, min(w, 20)))}
	case *table.Table:
		return r.table(n, w)
	}
	return r.flow(r.inline(n, tText), w)
}

// prefixed puts first before the first row and rest, or first where rest is
// empty, before the others.
func prefixed(rows []string, first, rest string) []string {
	if rest == "" {
		rest = first
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		if out[i] = rest + row; i == 0 {
			out[i] = first + row
		}
	}
	return out
}

func (r *renderer) list(n *ast.List, w int) []string {
	var rows []string
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "- "
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		body := r.blocks(item, w-len(mark), !n.IsTight)
		if len(body) == 0 {
			body = []string{""}
		}
		if !n.IsTight && len(rows) > 0 {
			rows = append(rows, "")
		}
		rows = append(rows, prefixed(body, r.paint(tKey, mark), spaces(len(mark)))...)
	}
	return rows
}

func (r *renderer) code(n ast.Node, w int) []string {
	var rows []string
	lines := n.Lines()
	for i := range lines.Len() {
		at := lines.At(i)
		line := clean(strings.ReplaceAll(strings.TrimRight(string(at.Value(r.source)), "\r\n"), "\t", "    "))
		for _, row := range wrapHard(line, w-2) {
			rows = append(rows, r.paint(tDim, r.vertical)+" "+r.paint(tCode, row))
		}
	}
	return rows
}

// wrapHard breaks at the width alone: code keeps its spaces.
func wrapHard(s string, w int) []string {
	if width(s) <= w {
		return []string{s}
	}
	e := editor{text: s}
	rows, _, _ := e.view(w, 0)
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	return rows
}

// table draws columns side by side, cut where they do not fit.
func (r *renderer) table(n *table.Table, w int) []string {
	var cells [][]string
	var widths []int
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var line []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			content := plainSpans(r.inline(cell, tText))
			if len(line) == len(widths) {
				widths = append(widths, 1)
			}
			widths[len(line)] = max(widths[len(line)], width(content))
			line = append(line, content)
		}
		cells = append(cells, line)
	}
	if len(widths) == 0 {
		return nil
	}
	for total(widths)+2*(len(widths)-1) > w { // take from the widest
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= 3 {
			break
		}
		widths[widest]--
	}
	var rows []string
	for i, line := range cells {
		t := tText
		if i == 0 {
			t = tTitle
		}
		row := ""
		for j, content := range line {
			if j > 0 {
				row += "  "
			}
			row += r.fit(content, widths[j])
		}
		rows = append(rows, r.paint(t, r.fit(row, min(w, width(row)))))
	}
	return rows
}

func total(numbers []int) (sum int) {
	for _, n := range numbers {
		sum += n
	}
	return sum
}

func plainSpans(spans []segment) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.text)
	}
	return strings.TrimSpace(strings.ReplaceAll(b.String(), "\n", " "))
}

// inline flattens a block's inline content into styled spans. A "\n" is a line
// break that the writer meant.
func (r *renderer) inline(parent ast.Node, t token) (spans []segment) {
	add := func(t token, s string) {
		if s != "" {
			spans = append(spans, segment{t, s})
		}
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			add(t, clean(string(n.Segment.Value(r.source))))
			if n.HardLineBreak() {
				add(t, "\n")
			} else if n.SoftLineBreak() {
				add(t, " ")
			}
		case *ast.String:
			add(t, clean(string(n.Value)))
		case *ast.CodeSpan:
			code := plainSpans(r.inline(n, tCode))
			if r.styles[tCode] == "" { // without colours the marks stay
				code = "`" + code + "`"
			}
			add(tCode, code)
		case *ast.Emphasis:
			inner := tEmphasis
			if n.Level > 1 {
				inner = tTitle
			}
			spans = append(spans, r.inline(n, inner)...)
		case *ast.Link:
			spans = append(spans, r.inline(n, t)...)
			add(tDim, " ("+clean(string(n.Destination))+")")
		case *ast.AutoLink:
			add(t, clean(string(n.URL(r.source))))
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				at := n.Segments.At(i)
				add(t, clean(string(at.Value(r.source))))
			}
		default:
			spans = append(spans, r.inline(n, t)...)
		}
	}
	return spans
}

// flow fills rows of at most w cells with the words of spans.
func (r *renderer) flow(spans []segment, w int) []string {
	var rows []string
	row, at := "", 0
	gap := false
	next := func() {
		rows = append(rows, row)
		row, at, gap = "", 0, false
	}
	put := func(t token, word string) {
		for _, part := range wrapHard(word, w) {
			n := width(part)
			space := 0
			if gap && at > 0 {
				space = 1
			}
			if at+space+n > w && at > 0 {
				next()
				space = 0
			}
			row += spaces(space) + r.paint(t, part)
			at += space + n
			gap = false
		}
	}
	for _, s := range spans {
		if s.text == "\n" {
			next()
			continue
		}
		for i, word := range strings.Split(s.text, " ") {
			if i > 0 {
				gap = true
			}
			if word != "" {
				put(s.token, word)
			}
		}
	}
	if row != "" || len(rows) == 0 {
		next()
	}
	return rows
}
