package shellctx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"
)

// The lines around an envelope.
const (
	envelopeStart = "[shell_context]"
	envelopeEnd   = "[/shell_context]"
)

// Limits of an envelope, in bytes of its text. They hold after encoding: a NUL
// is one byte of output and six of JSON, so a limit on the output alone would
// let 1 MiB become 6.
const (
	MaxEnvelope   = 64 << 10
	maxCommand    = 16 << 10
	maxOther      = 4 << 10 // the directory, the error
	envelopeFrame = 1 << 10 // keys, numbers, markers and indentation, generously
)

// ContextText is the user-role text that a model gets for a record: the JSON
// of the record between two marker lines. Whatever the record holds,
//   - the text holds each marker exactly once, so that neither a first-match
//     scan nor a JSON reader can be led to another end: in strings the [ of a
//     marker is \u005b;
//   - it holds no control character but newline, and nothing of C1, so that it
//     cannot end a bracketed paste;
//   - its strings hold no @, which claude and gemini read as "attach this
//     file": it is \u0040;
//   - it is valid UTF-8 of at most MaxEnvelope bytes. What is too long is cut
//     after encoding, between characters and escapes, head and tail kept, and
//     output_truncated says so.
//
// Any JSON reader undoes all of the escapes.
func ContextText(record Record) string {
	directory, cut1 := shorten(encode(record.CWD), maxOther)
	command, cut2 := shorten(encode(record.Command), maxCommand)
	failure, cut3 := shorten(encode(record.Error), maxOther)
	room := MaxEnvelope - envelopeFrame - len(directory) - len(command) - len(failure)
	output, cut4 := shorten(encode(record.Output), room)

	produced := record.OutputBytes
	if cut4 && produced == 0 {
		produced = len(record.Output)
	}
	var text bytes.Buffer
	field := func(key string, value []byte) {
		fmt.Fprintf(&text, ",\n  \"%s\": %s", key, value)
	}
	fmt.Fprintf(&text, "%s\n{\n  \"cwd\": %s", envelopeStart, directory)
	field("command", command)
	field("exit_code", strconv.AppendInt(nil, int64(record.ExitCode), 10))
	field("output", output)
	if record.Error != "" {
		field("error", failure)
	}
	if produced != 0 {
		field("output_bytes", strconv.AppendInt(nil, int64(produced), 10))
	}
	if record.OutputTruncated || cut1 || cut2 || cut3 || cut4 {
		field("output_truncated", []byte("true"))
	}
	text.WriteString("\n}\n" + envelopeEnd)
	return text.String()
}

// marker finds both markers in any case: a model does not compare bytes.
var marker = regexp.MustCompile(`(?i)\[(/?shell_context\])`)

// encode is a JSON string, quotes included, with the escapes that ContextText
// promises.
func encode(value string) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // 2>&1 stays readable
	_ = encoder.Encode(value)    // a string always encodes
	plain := marker.ReplaceAll(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte(`\u005b$1`))

	escaped := make([]byte, 0, len(plain))
	for len(plain) > 0 {
		r, size := utf8.DecodeRune(plain)
		if r == '@' || r == 0x7f || r >= 0x80 && r <= 0x9f {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = append(escaped, plain[:size]...)
		}
		plain = plain[size:]
	}
	return escaped
}

// shorten cuts an encoded string to at most limit bytes and reports whether it
// did. The head gets a quarter and the tail the rest: errors come last.
func shorten(encoded []byte, limit int) ([]byte, bool) {
	if len(encoded) <= limit {
		return encoded, false
	}
	body := encoded[1 : len(encoded)-1]
	const note = `\n[… %d bytes of this text cut …]\n`
	room := max(0, limit-2-len(note)-20)
	head, tail := room/4, room-room/4
	// Boundaries are found from the front, since an escape cannot be told from
	// text by looking back: \\u0041 is a backslash and a word.
	headEnd, tailStart, at := 0, len(body), 0
	for at < len(body) {
		if at <= head {
			headEnd = at
		}
		if at >= len(body)-tail {
			tailStart = at
			break
		}
		at += unit(body[at:])
	}
	cut := make([]byte, 0, limit)
	cut = append(append(cut, '"'), body[:headEnd]...)
	cut = fmt.Appendf(cut, note, tailStart-headEnd)
	cut = append(append(cut, body[tailStart:]...), '"')
	// Head and note, or note and tail, must not make a marker out of two halves;
	// they cannot: the note begins and ends with an escape.
	return cut, true
}

// unit is the length of the character or escape at the front of an encoded
// string's inside. A surrogate pair is one unit.
func unit(body []byte) int {
	if body[0] != '\\' {
		_, size := utf8.DecodeRune(body)
		return size
	}
	if len(body) < 2 || body[1] != 'u' {
		return min(2, len(body))
	}
	if len(body) >= 12 && body[6] == '\\' && body[7] == 'u' && (body[2] == 'd' || body[2] == 'D') {
		return 12
	}
	return min(6, len(body))
}
