// Package shellctx identifies shell executions that a user asked for and that
// are kept as conversation context, in one wire form for the screen, remotes
// and turns.
//
// The rule it keeps: what a message is gets read from its metadata, never from
// its text. It imports the standard library and protocol alone.
package shellctx

// Record is the durable, provider-neutral description of one shell execution
// (spec/shellcontext.txt).
type Record struct {
	Command         string `json:"command"`
	CWD             string `json:"cwd"`
	Output          string `json:"output,omitempty"`
	ExitCode        int    `json:"exit_code"`
	Error           string `json:"error,omitempty"`
	OutputBytes     int    `json:"output_bytes,omitempty"`
	OutputTruncated bool   `json:"output_truncated,omitempty"`
	TriggerAgent    bool   `json:"trigger_agent"`
}
