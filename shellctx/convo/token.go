package convo

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxToken is where a word is cut, in bytes: what is longer is no word, but
// encoded data.
const maxToken = 128

// tokens are the places of the words in a text: runs of letters, digits and
// private-use characters with the combining marks that follow them. Scripts
// without spaces have a word for each character, so that a part of a sentence
// is found as a phrase.
//
// The index gets its words from here and from fold, one by one, and cuts none
// itself: SQLite's own tokenizer has the letters of an old Unicode.
func tokens(text string) [][2]int {
	var spans [][2]int
	start, alone := -1, false
	end := func(at int) {
		if start >= 0 {
			spans = append(spans, [2]int{start, at})
			start = -1
		}
	}
	for at, r := range text {
		switch {
		case r < utf8.RuneSelf:
			if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				if start >= 0 && alone {
					end(at)
				}
				if start < 0 {
					start, alone = at, false
				}
			} else {
				end(at)
			}
		case unicode.Is(unicode.Mn, r):
			// belongs to what is before it
		case r == utf8.RuneError:
			end(at)
		case unicode.In(r, spaceless...):
			end(at)
			start, alone = at, true
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r):
			if start >= 0 && alone {
				end(at)
			}
			if start < 0 {
				start, alone = at, false
			}
		default:
			end(at)
		}
	}
	end(len(text))
	return spans
}

// spaceless are the scripts that write no spaces between words.
var spaceless = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// fold makes a word what the index has: lower case, without accents, at most
// maxToken long.
func fold(word string) string {
	folded := strings.ToLower(word)
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			folded = norm.NFC.String(strings.Map(func(r rune) rune {
				if unicode.Is(unicode.Mn, r) {
					return -1
				}
				return r
			}, norm.NFD.String(folded)))
			break
		}
	}
	if len(folded) > maxToken {
		folded = strings.ToValidUTF8(folded[:maxToken], "")
	}
	return folded
}

// words is a text as the index gets it.
func words(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	for _, span := range tokens(text) {
		out.WriteString(fold(text[span[0]:span[1]]))
		out.WriteByte(' ')
	}
	return out.String()
}
