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
	return ContentPart{raw: append(append([]byte(`{"type":"text","text":`), plainString(text)...), '}')}
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
	var out bytes.Buffer
	field := func(key string, value []byte) {
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.Write(plainString(key))
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('{')
	field("schema_version", plainString(cmp.Or(m.SchemaVersion, SchemaVersion)))
	field("id", plainString(m.ID))
	field("role", plainString(string(m.Role)))
	if m.CreatedAt != "" {
		field("created_at", plainString(m.CreatedAt))
	}
	var content bytes.Buffer
	content.WriteByte('[')
	for i, part := range m.Content {
		if i > 0 {
			content.WriteByte(',')
		}
		content.Write(orDefault(part.raw, "null"))
	}
	content.WriteByte(']')
	field("content", content.Bytes())
	field("addr", orDefault(m.Addr, "{}"))
	field("meta", rawObject(m.Meta))
	if len(m.Ref) > 0 {
		field("ref", m.Ref)
	}
	for _, key := range slices.Sorted(maps.Keys(m.Extra)) {
		if !slices.Contains(known, key) {
			field(key, orDefault(m.Extra[key], "null"))
		}
	}
	out.WriteByte('}')
	if !json.Valid(out.Bytes()) {
		return nil, fmt.Errorf("encode message %s: a kept value is not JSON", m.ID)
	}
	return out.Bytes(), nil
}

// MarshalJSON is Encode.
func (m ChatMessage) MarshalJSON() ([]byte, error) { return m.Encode() }

func rawObject(object map[string]json.RawMessage) []byte {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, key := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(plainString(key))
		out.WriteByte(':')
		out.Write(orDefault(object[key], "null"))
	}
	out.WriteByte('}')
	return out.Bytes()
}

func orDefault(raw json.RawMessage, missing string) []byte {
	if len(raw) == 0 {
		return []byte(missing)
	}
	return raw
}

// plainString is text as a JSON string, with < > & readable.
func plainString(text string) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always encodes
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
