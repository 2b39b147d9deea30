// Package protocol holds the chat message that every surface exchanges.
//
// The rule it keeps: what one side does not know survives the other side's
// round trip, byte for byte.
package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SchemaVersion is filled in where a message names none.
const SchemaVersion = "1.0"

// Role says who a message is from.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	System    Role = "system"
	Tool      Role = "tool"
)

// Keys of Meta that are not a package's own.
const (
	SteeringKey  = "steering"  // true: for a turn that runs already
	ErrorKey     = "error"     // a sentence: why a turn failed
	CancelledKey = "cancelled" // true: the user ended the turn
)

// ChatMessage is one message of a conversation. The zero value encodes. Copies
// share their maps: change metadata through SetMeta, which does not.
type ChatMessage struct {
	SchemaVersion string                     `json:"schema_version"`
	ID            string                     `json:"id"`
	Role          Role                       `json:"role"`
	CreatedAt     string                     `json:"created_at,omitempty"` // RFC 3339
	Content       []ContentPart              `json:"content"`
	Addr          json.RawMessage            `json:"addr"`
	Meta          map[string]json.RawMessage `json:"meta"`
	Ref           json.RawMessage            `json:"ref,omitempty"`
	Extra         map[string]json.RawMessage `json:"-"` // unknown top-level keys
}

// ContentPart is one part of a message's content, kept as its exact bytes.
type ContentPart struct{ raw json.RawMessage }

// NewText is a message of one text part.
func NewText(id string, role Role, text string, created time.Time) ChatMessage {
	return ChatMessage{
		SchemaVersion: SchemaVersion,
		ID:            id,
		Role:          role,
		CreatedAt:     created.UTC().Format(time.RFC3339Nano),
		Content:       []ContentPart{TextPart(text)},
	}
}

// TextPart is a part that holds text. Invalid UTF-8 becomes U+FFFD.
func TextPart(text string) ContentPart {
	raw := make([]byte, 0, len(text)+32)
	return ContentPart{raw: append(appendString(append(raw, `{"type":"text","text":`...), text), '}')}
}

// AsText returns the text of a text part, and false for any other.
func (p ContentPart) AsText() (string, bool) {
	var fields map[string]json.RawMessage
	var kind, text string
	if json.Unmarshal(p.raw, &fields) != nil ||
		json.Unmarshal(fields["type"], &kind) != nil || kind != "text" ||
		json.Unmarshal(fields["text"], &text) != nil {
		return "", false
	}
	return text, true
}

// Raw returns the part's exact bytes; the caller must not change them.
func (p ContentPart) Raw() json.RawMessage { return p.raw }

// UnmarshalJSON keeps the bytes.
func (p *ContentPart) UnmarshalJSON(data []byte) error {
	p.raw = bytes.Clone(data)
	return nil
}

// MarshalJSON returns the bytes that UnmarshalJSON kept, null for the zero value.
func (p ContentPart) MarshalJSON() ([]byte, error) { return orDefault(p.raw, "null"), nil }

// Text joins the message's text parts with newlines.
func (m ChatMessage) Text() string {
	var texts []string
	for _, part := range m.Content {
		if text, ok := part.AsText(); ok {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// SetMeta sets one key of the metadata to the JSON of value, in a map of this
// message's own: messages that it was copied from or to do not change.
func (m *ChatMessage) SetMeta(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("set metadata %q: %w", key, err)
	}
	meta := maps.Clone(m.Meta)
	if meta == nil {
		meta = make(map[string]json.RawMessage, 1)
	}
	meta[key] = raw
	m.Meta = meta
	return nil
}

// Flag reports whether a key of the metadata is exactly true.
func (m ChatMessage) Flag(key string) bool {
	return string(bytes.TrimSpace(m.Meta[key])) == "true"
}

// known lists the top-level keys that have a field.
var known = []string{"schema_version", "id", "role", "created_at", "content", "addr", "meta", "ref"}

// UnmarshalJSON takes known keys into their fields and keeps all others in
// Extra. Values that are not strings, objects or arrays where the field needs
// one are errors.
func (m *ChatMessage) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("decode message: %w", err)
	}
	if fields == nil {
		return errors.New("decode message: null is no message")
	}
	var decoded ChatMessage
	for key, into := range map[string]any{
		"schema_version": &decoded.SchemaVersion,
		"id":             &decoded.ID,
		"role":           &decoded.Role,
		"created_at":     &decoded.CreatedAt,
		"content":        &decoded.Content,
		"meta":           &decoded.Meta,
	} {
		raw, present := fields[key]
		if !present {
			continue
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("decode message: %q: %w", key, err)
		}
	}
	// A RawMessage inside a map aliases nothing: Unmarshal copies it.
	decoded.Addr, decoded.Ref = fields["addr"], fields["ref"]
	for _, key := range known {
		delete(fields, key)
	}
	if len(fields) > 0 {
		decoded.Extra = fields
	}
	*m = decoded
	return nil
}

// Encode is the message's JSON with every kept value byte for byte. A known
// key in Extra is left out: the field wins. (json.Marshal gives the same
// document, but strips white space inside kept values and escapes < > &.)
func (m ChatMessage) Encode() ([]byte, error) {
	size := 160 + len(m.ID) + len(m.Addr) + len(m.Ref)
	for _, part := range m.Content {
		size += len(part.raw) + 1
	}
	return m.AppendJSON(make([]byte, 0, size))
}

// AppendJSON appends what Encode returns.
func (m ChatMessage) AppendJSON(out []byte) ([]byte, error) {
	var invalid error
	// Parts are valid by construction; what lies in exported fields may not be.
	check := func(what string, value json.RawMessage) {
		if len(value) > 0 && !json.Valid(value) {
			invalid = fmt.Errorf("encode message %s: %s is not JSON", m.ID, what)
		}
	}
	out = append(out, `{"schema_version":`...)
	out = appendString(out, cmp.Or(m.SchemaVersion, SchemaVersion))
	out = appendString(append(out, `,"id":`...), m.ID)
	out = appendString(append(out, `,"role":`...), string(m.Role))
	if m.CreatedAt != "" {
		out = appendString(append(out, `,"created_at":`...), m.CreatedAt)
	}
	out = append(out, `,"content":[`...)
	for i, part := range m.Content {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, orDefault(part.raw, "null")...)
	}
	check(`"addr"`, m.Addr)
	out = append(append(out, `],"addr":`...), orDefault(m.Addr, "{}")...)
	out = append(out, `,"meta":{`...)
	for i, name := range sortedKeys(m.Meta) {
		if i > 0 {
			out = append(out, ',')
		}
		check(fmt.Sprintf("metadata %q", name), m.Meta[name])
		out = append(append(appendString(out, name), ':'), orDefault(m.Meta[name], "null")...)
	}
	out = append(out, '}')
	if len(m.Ref) > 0 {
		check(`"ref"`, m.Ref)
		out = append(append(out, `,"ref":`...), m.Ref...)
	}
	for _, name := range sortedKeys(m.Extra) {
		if slices.Contains(known, name) {
			continue
		}
		check(strconv.Quote(name), m.Extra[name])
		out = append(append(appendString(append(out, ','), name), ':'), orDefault(m.Extra[name], "null")...)
	}
	return append(out, '}'), invalid
}

// sortedKeys costs nothing for the many messages that have none.
func sortedKeys(values map[string]json.RawMessage) []string {
	if len(values) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(values))
}

// MarshalJSON is Encode.
func (m ChatMessage) MarshalJSON() ([]byte, error) { return m.Encode() }

func orDefault(raw json.RawMessage, missing string) []byte {
	if len(raw) == 0 {
		return []byte(missing)
	}
	return raw
}

// appendString appends text as a JSON string, with < > & readable.
func appendString(out []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			var encoded bytes.Buffer
			encoder := json.NewEncoder(&encoded)
			encoder.SetEscapeHTML(false)
			_ = encoder.Encode(text) // a string always encodes
			return append(out, bytes.TrimSuffix(encoded.Bytes(), []byte("\n"))...)
		}
	}
	return append(append(append(out, '"'), text...), '"')
}
