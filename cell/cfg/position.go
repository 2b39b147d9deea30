package cfg

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// Position is a place in a file, counted from 1; Col is in characters. The zero
// value is no place.
type Position struct{ Line, Col int }

// keyOffsets finds where each key of a TOML text is written: the offset of its
// first byte by toml.Key.String. An entry of an array of tables is addressed by
// its index, as in "wireguard.0.name". The text must have been parsed before:
// the scan trusts its syntax, and stops where that fails.
//
// It exists because the decoder gives positions for syntax errors alone, while a
// user needs them for unknown keys and wrong types above all.
func keyOffsets(text string) map[string]int {
	s := &keyScanner{text: text, offsets: make(map[string]int), entries: make(map[string]int)}
	s.document()
	return s.offsets
}

type keyScanner struct {
	text    string
	at      int
	offsets map[string]int
	entries map[string]int // arrays of tables: index of the newest entry
}

func (s *keyScanner) document() {
	if strings.HasPrefix(s.text, "\ufeff") {
		s.at = len("\ufeff") // the decoder skips a byte order mark, too
	}
	var table toml.Key
	for {
		s.blanks()
		if s.at >= len(s.text) {
			return
		}
		start := s.at
		if s.text[s.at] == '[' {
			table = s.header()
		} else {
			s.pair(table)
		}
		if s.at == start { // no progress: not the TOML that was promised
			return
		}
	}
}

// header reads [a.b] or [[a.b]] and returns the table that the lines below it
// belong to.
func (s *keyScanner) header() toml.Key {
	array := strings.HasPrefix(s.text[s.at:], "[[")
	s.at++
	if array {
		s.at++
	}
	start, key := s.key()
	for s.at < len(s.text) && s.text[s.at] == ']' {
		s.at++
	}
	var table toml.Key
	for i, part := range key {
		table = append(table, part)
		s.note(table, start)
		name := table.String()
		if array && i == len(key)-1 {
			if n, ok := s.entries[name]; ok {
				s.entries[name] = n + 1
			} else {
				s.entries[name] = 0
			}
		}
		if n, ok := s.entries[name]; ok {
			table = append(table, strconv.Itoa(n))
			s.note(table, start)
		}
	}
	return table
}

// pair reads key = value.
func (s *keyScanner) pair(table toml.Key) {
	start, key := s.key()
	full := append(toml.Key{}, table...)
	for _, part := range key {
		full = append(full, part)
		s.note(full, start)
	}
	s.spaces()
	if s.at < len(s.text) && s.text[s.at] == '=' {
		s.at++
	}
	s.spaces()
	s.value(full)
}

func (s *keyScanner) note(key toml.Key, offset int) {
	name := key.String()
	if _, seen := s.offsets[name]; !seen {
		s.offsets[name] = offset
	}
}

// key reads a dotted key and returns where it began.
func (s *keyScanner) key() (start int, key toml.Key) {
	s.spaces()
	start = s.at
	for s.at < len(s.text) {
		s.spaces()
		part, ok := s.keyPart()
		if !ok {
			break
		}
		key = append(key, part)
		s.spaces()
		if s.at >= len(s.text) || s.text[s.at] != '.' {
			break
		}
		s.at++
	}
	return start, key
}

func (s *keyScanner) keyPart() (string, bool) {
	if s.at >= len(s.text) {
		return "", false
	}
	start := s.at
	switch s.text[s.at] {
	case '\'':
		s.quoted()
		return strings.Trim(s.text[start:s.at], "'"), true
	case '"':
		s.quoted()
		return unquoteKey(s.text[start:s.at]), true
	}
	for s.at < len(s.text) && !strings.ContainsRune(" \t\r\n.=[]{},#\"'", rune(s.text[s.at])) {
		s.at++
	}
	return s.text[start:s.at], s.at > start
}

// unquoteKey decodes the escapes of a basic string with the decoder itself.
func unquoteKey(quoted string) string {
	var v struct{ K string }
	if _, err := toml.Decode("K="+quoted, &v); err != nil {
		return quoted
	}
	return v.K
}

// value skips a value; of a table and of an array's tables it notes the keys.
func (s *keyScanner) value(key toml.Key) {
	if s.at >= len(s.text) {
		return
	}
	switch s.text[s.at] {
	case '"', '\'':
		s.quoted()
	case '[':
		s.array(key)
	case '{':
		s.inlineTable(key)
	default:
		for s.at < len(s.text) && !strings.ContainsRune(",]}#\n", rune(s.text[s.at])) {
			s.at++
		}
	}
}

func (s *keyScanner) array(key toml.Key) {
	s.at++
	for index := 0; s.at < len(s.text); {
		s.blanks()
		if s.at >= len(s.text) {
			return
		}
		switch s.text[s.at] {
		case ']':
			s.at++
			return
		case ',':
			s.at++
			index++
		default:
			start := s.at
			entry := append(append(toml.Key{}, key...), strconv.Itoa(index))
			s.note(entry, start)
			s.value(entry)
			if s.at == start {
				return
			}
		}
	}
}

func (s *keyScanner) inlineTable(key toml.Key) {
	s.at++
	for s.at < len(s.text) {
		s.blanks()
		if s.at >= len(s.text) {
			return
		}
		switch s.text[s.at] {
		case '}':
			s.at++
			return
		case ',':
			s.at++
		default:
			start := s.at
			s.pair(key)
			if s.at == start {
				return
			}
		}
	}
}

// quoted skips a string of any of the four kinds.
func (s *keyScanner) quoted() {
	quote := s.text[s.at : s.at+1]
	long := strings.HasPrefix(s.text[s.at:], quote+quote+quote)
	if !long {
		s.at++
		for s.at < len(s.text) && s.text[s.at] != quote[0] && s.text[s.at] != '\n' {
			s.skipCharacter(quote)
		}
		s.at = min(s.at+1, len(s.text))
		return
	}
	s.at += 3
	for s.at < len(s.text) && !strings.HasPrefix(s.text[s.at:], quote+quote+quote) {
		s.skipCharacter(quote)
	}
	s.at = min(s.at+3, len(s.text))
	for s.at < len(s.text) && s.text[s.at] == quote[0] { // """a"""" ends in a quote of its own
		s.at++
	}
}

func (s *keyScanner) skipCharacter(quote string) {
	if quote == `"` && s.text[s.at] == '\\' {
		s.at++
	}
	s.at = min(s.at+1, len(s.text))
}

func (s *keyScanner) spaces() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t') {
		s.at++
	}
}

// blanks skips spaces, newlines and comments.
func (s *keyScanner) blanks() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		case '#':
			for s.at < len(s.text) && s.text[s.at] != '\n' {
				s.at++
			}
		default:
			return
		}
	}
}

// lineIndex turns offsets into positions.
type lineIndex struct {
	text   string
	starts []int // offset of each line
}

func newLineIndex(text string) lineIndex {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return lineIndex{text, starts}
}

func (x lineIndex) position(offset int) Position {
	line := sort.Search(len(x.starts), func(i int) bool { return x.starts[i] > offset }) - 1
	return Position{Line: line + 1, Col: utf8.RuneCountInString(x.text[x.starts[line]:offset]) + 1}
}

// KeyPositions finds where each key of a TOML text that parses is written, by
// toml.Key.String; the decoder gives positions for faults of syntax alone.
func KeyPositions(text string) map[string]Position {
	lines := newLineIndex(text)
	positions := map[string]Position{}
	for key, offset := range keyOffsets(text) {
		positions[key] = lines.position(offset)
	}
	return positions
}
