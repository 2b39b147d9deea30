// Package shellctx identifies shell executions that a user asked for and that
// are kept as conversation context, in one wire form for the screen, remotes
// and turns.
//
// The rule it keeps: what a message is gets read from its metadata, never from
// its text. It imports the standard library and protocol alone.
package shellctx

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"cellmux/shellctx/protocol"
)

// Keys of a message's metadata (spec/shellcontext.txt).
const (
	// MetaKey carries the record beside its text form.
	MetaKey = "sahara.shell_context"
	// CommitAckMetaKey marks the empty final that ends a context-only save.
	CommitAckMetaKey = "sahara.shell_context_committed"
)

// Record is the durable, provider-neutral description of one shell execution
// (spec/shellcontext.txt).
type Record struct {
	Command         string `json:"command"`
	CWD             string `json:"cwd"`
	Output          string `json:"output,omitempty"`
	ExitCode        int    `json:"exit_code"`
	Error           string `json:"error,omitempty"`
	OutputBytes     int    `json:"output_bytes,omitempty"` // produced, before any cut
	OutputTruncated bool   `json:"output_truncated,omitempty"`
	TriggerAgent    bool   `json:"trigger_agent"` // the agent is to answer
}

// NewMessage is the user message of a record: its ContextText, with the record
// in the metadata.
func NewMessage(id string, record Record, created time.Time) (protocol.ChatMessage, error) {
	message := protocol.NewText(id, protocol.User, ContextText(record), created)
	err := Put(&message, record)
	return message, err
}

// Put attaches a record to a message's metadata. Messages that share the map
// do not change. A record without a command is refused: FromMessage would not
// find it again.
func Put(message *protocol.ChatMessage, record Record) error {
	if strings.TrimSpace(record.Command) == "" {
		return errors.New("attach shell record: it has no command")
	}
	if err := message.SetMeta(MetaKey, record); err != nil {
		return fmt.Errorf("attach shell record: %w", err)
	}
	return nil
}

// FromMessage returns the record of a message; false when there is none, when
// its JSON is bad, or when its command is blank.
func FromMessage(message protocol.ChatMessage) (Record, bool) {
	raw, present := message.Meta[MetaKey]
	if !present {
		return Record{}, false
	}
	var record Record
	if json.Unmarshal(raw, &record) != nil || strings.TrimSpace(record.Command) == "" {
		return Record{}, false
	}
	return record, true
}

// IsContextOnly reports whether a message is to be kept without asking the
// agent for an answer.
func IsContextOnly(message protocol.ChatMessage) bool {
	record, ok := FromMessage(message)
	return ok && !record.TriggerAgent
}

// MarkCommitAck marks a final that only acknowledges a save.
func MarkCommitAck(message *protocol.ChatMessage) {
	_ = message.SetMeta(CommitAckMetaKey, true) // true always encodes
}

// IsCommitAck reports whether a final only acknowledges a save.
func IsCommitAck(message protocol.ChatMessage) bool {
	return message.Flag(CommitAckMetaKey)
}

// DisplayText is the compact form for a transcript: the command after "$ ",
// the output without its trailing newlines, the exit code, and the error where
// it says more than the code.
func DisplayText(record Record) string {
	var text strings.Builder
	text.WriteString("$ " + record.Command + "\n")
	if output := strings.TrimRight(record.Output, "\r\n"); output != "" {
		text.WriteString(output + "\n")
	}
	if record.OutputTruncated {
		fmt.Fprintf(&text, "[exit %d, output truncated]", record.ExitCode)
	} else {
		fmt.Fprintf(&text, "[exit %d]", record.ExitCode)
	}
	if record.Error != "" && record.Error != fmt.Sprintf("exit status %d", record.ExitCode) {
		text.WriteString("\n" + record.Error)
	}
	return text.String()
}
