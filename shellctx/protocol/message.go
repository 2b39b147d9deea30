// Package protocol holds the chat message that every surface exchanges.
//
// The rule it keeps: what one side does not know survives the other side's
// round trip, byte for byte.
package protocol

import "encoding/json"

// Role says who a message is from.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	System    Role = "system"
	Tool      Role = "tool"
)

// ChatMessage is one message of a conversation.
type ChatMessage struct {
	SchemaVersion string                     `json:"schema_version"`
	ID            string                     `json:"id"`
	Role          Role                       `json:"role"`
	CreatedAt     string                     `json:"created_at,omitempty"`
	Content       []ContentPart              `json:"content"`
	Addr          json.RawMessage            `json:"addr"`
	Meta          map[string]json.RawMessage `json:"meta"`
	Ref           json.RawMessage            `json:"ref,omitempty"`
	Extra         map[string]json.RawMessage `json:"-"` // unknown top-level keys
}

// ContentPart is one part of a message's content, kept as its exact bytes.
type ContentPart struct{ raw json.RawMessage }
