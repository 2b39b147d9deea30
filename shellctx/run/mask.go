package run

import (
	"bytes"
	"slices"
)

// masked stands in output for the value of a secret.
const masked = "********"

// minSecret is the shortest value that is masked: masking "1" would ruin every
// output and protect nothing.
const minSecret = 4

// masker takes the values of secrets out of a stream, also where a value is cut
// by the pieces in which it arrives. The zero value masks nothing and copies
// nothing.
type masker struct {
	values [][]byte // longest first
	held   []byte   // the end of what was read, which may begin a value
}

func newMasker(values []string) *masker {
	m := &masker{}
	for _, v := range values {
		if len(v) >= minSecret {
			m.values = append(m.values, []byte(v))
		}
	}
	slices.SortFunc(m.values, func(a, b []byte) int { return len(b) - len(a) })
	return m
}

// write returns what may be passed on of the stream so far. The result is valid
// until the next call.
func (m *masker) write(p []byte) []byte {
	if len(m.values) == 0 {
		return p
	}
	data := m.replace(append(m.held, p...))
	keep := m.begun(data)
	out := data[:len(data)-keep]
	m.held = slices.Clone(data[len(data)-keep:])
	return out
}

// finish returns what was held back.
func (m *masker) finish() []byte {
	out := m.held
	m.held = nil
	return out
}

func (m *masker) replace(data []byte) []byte {
	for _, v := range m.values {
		data = bytes.ReplaceAll(data, v, []byte(masked))
	}
	return data
}

// begun is the length of the longest end of data that begins a value.
func (m *masker) begun(data []byte) int {
	longest := 0
	for _, v := range m.values {
		for n := min(len(v)-1, len(data)); n > longest; n-- {
			if bytes.HasSuffix(data, v[:n]) {
				longest = n
			}
		}
	}
	return longest
}
