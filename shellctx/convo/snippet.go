package convo

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marks around a match in a snippet. Neither is left in the text itself.
const (
	MatchStart = '\x02'
	MatchEnd   = '\x03'
)

// snippetWidth is the length of a snippet in runes.
const snippetWidth = 160

// snippet is the part of a text around its first match, on one line, with the
// matches marked and other control characters taken out. Without terms it is
// the beginning.
func snippet(text string, terms []term) string {
	const scan = 256 << 10 // a match further in is shown by the beginning
	text = text[:min(len(text), scan)]
	spans := tokens(text)
	var matches [][2]int
	for i, span := range spans {
		if matched(text, spans[i:], terms) {
			matches = append(matches, span)
			if span[0]-matches[0][0] > 4*snippetWidth {
				break
			}
		}
	}
	from := 0
	if len(matches) > 0 {
		from = back(text, matches[0][0], snippetWidth/4)
	}
	var out strings.Builder
	if from > 0 {
		out.WriteString("…")
	}
	width, space := 0, true
	for at, r := range text[from:] {
		at += from
		if len(matches) > 0 && at == matches[0][1] {
			out.WriteRune(MatchEnd)
			matches = matches[1:]
		}
		if width >= snippetWidth && (len(matches) == 0 || at < matches[0][0] || at >= matches[0][1]) {
			out.WriteString("…")
			return out.String()
		}
		if len(matches) > 0 && at == matches[0][0] {
			out.WriteRune(MatchStart)
		}
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			if !space {
				out.WriteByte(' ')
				width++
			}
			space = true
			continue
		}
		space = false
		out.WriteRune(r)
		width++
	}
	if len(matches) > 0 && matches[0][1] >= len(text) {
		out.WriteRune(MatchEnd)
	}
	return strings.TrimRight(out.String(), " ")
}

// matched reports whether the word at spans[0] begins or is within a match. A
// phrase is taken by its words, which is enough for a mark.
func matched(text string, spans [][2]int, terms []term) bool {
	word := fold(text[spans[0][0]:spans[0][1]])
	return slices.ContainsFunc(terms, func(t term) bool {
		for i, token := range t.tokens {
			last := i == len(t.tokens)-1
			if word == token || last && t.prefix && strings.HasPrefix(word, token) {
				return true
			}
		}
		return false
	})
}

// back goes up to n runes back from at.
func back(text string, at, n int) int {
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return at
}
