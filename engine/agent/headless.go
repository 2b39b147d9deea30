package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Turn is what a headless turn came to.
type Turn struct {
	Text    string         // the final answer
	Error   string         // a sentence; "" is success
	Session string         // the agent's own ID of the conversation
	Usage   map[string]any // tokens and cost as the agent counts them, flat; nil unknown
	Denied  []string       // tools that the turn asked for and did not get
}

// TurnReader reads the output of one headless turn. It is an io.Writer for the
// program's standard output, keeps no more than the longest line, and is not
// safe for concurrent use.
type TurnReader struct {
	parse   func(t *TurnReader, event []byte)
	planned string
	emit    func(string)
	rest    []byte
	turn    Turn
	ended   bool   // the agent said that the turn is over
	failure string // what the agent called an error
	warning string // what it called an error and may be none
	pending string // why there may be no final answer
}

// maxEvent bounds one line of a stream, in bytes; a longer one (a tool's output)
// is left out, since nothing that is judged by is that long.
const maxEvent = 8 << 20

// Turn returns a reader for the output of a headless turn that was planned with
// session; emit receives the answer's text as it comes, and may be nil.
func (a *Agent) Turn(session string, emit func(string)) (*TurnReader, error) {
	if !a.Headless() {
		return nil, fmt.Errorf("%s has no turns without a terminal", a.name)
	}
	if emit == nil {
		emit = func(string) {}
	}
	return &TurnReader{parse: a.stream, planned: session, emit: emit}, nil // no parse: all of it is the answer
}

// Headless says whether the agent can run a turn without a terminal.
func (a *Agent) Headless() bool { return a.stream != nil || a.printsAnswer }

// Write implements io.Writer; it never fails.
func (t *TurnReader) Write(p []byte) (int, error) {
	n := len(p)
	if t.parse == nil {
		if len(t.turn.Text)+n <= maxEvent {
			t.say(string(p))
		}
		return n, nil
	}
	for {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if len(t.rest)+len(line) <= maxEvent {
			t.rest = append(t.rest, line...)
		} else {
			t.rest = append(t.rest[:0], '!') // no event; its remainder is dropped too
		}
		if !whole {
			return n, nil
		}
		t.take()
		p = rest
	}
}

func (t *TurnReader) take() {
	if event := bytes.TrimSpace(t.rest); len(event) > 0 && event[0] == '{' {
		t.parse(t, event)
	}
	t.rest = t.rest[:0]
}

// say adds text of the answer.
func (t *TurnReader) say(text string) {
	if text == "" {
		return
	}
	t.turn.Text += text
	t.emit(text)
}

// Result judges the turn: exit is the program's exit status, stderr the end of
// its error output, cancelled says that cellmux signalled it. A turn is a success
// only when the agent said that it ended, without an error, and with an answer:
// claude and gemini exit with 0 after a cancel, opencode after a rejected tool.
func (t *TurnReader) Result(exit int, stderr string, cancelled bool) Turn {
	t.take()
	turn := t.turn
	if t.parse == nil {
		turn.Text = passage(turn.Text)
		t.ended = exit == 0
	}
	switch {
	case cancelled:
		turn.Error = "cancelled"
	case t.failure != "":
		turn.Error = t.failure
	case exit != 0 && t.warning != "":
		turn.Error = t.warning
	case exit != 0:
		turn.Error = fmt.Sprintf("it ended with exit status %d", exit)
		if last := lastLine(stderr); last != "" {
			turn.Error += ": " + last
		}
	case t.planned != "" && turn.Session != "" && turn.Session != t.planned:
		turn.Error = fmt.Sprintf("it answered in another conversation (%s) than the slot's", turn.Session)
	case !t.ended:
		turn.Error = "it ended without saying that the turn is over"
		if t.pending != "" {
			turn.Error = "it ended without an answer: " + t.pending
		}
	case strings.TrimSpace(turn.Text) == "":
		turn.Error = "it ended without an answer"
		if t.pending != "" {
			turn.Error += ": " + t.pending
		}
	}
	turn.Error = line(turn.Error)
	return turn
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return line(lines[len(lines)-1])
}

func (t *TurnReader) usage(name string, value any) {
	if t.turn.Usage == nil {
		t.turn.Usage = map[string]any{}
	}
	t.turn.Usage[name] = value
}

// claudeStream reads `claude -p --output-format stream-json --verbose`. What
// counts is is_error: subtype says "success" after an API error too.
func claudeStream(t *TurnReader, data []byte) {
	var e struct {
		Type      string
		Subtype   string
		SessionID string `json:"session_id"`
		Message   struct {
			Content []struct{ Type, Text string }
		}
		ParentToolUseID string `json:"parent_tool_use_id"`
		IsError         bool   `json:"is_error"`
		Result          string
		Usage           map[string]json.RawMessage
		TotalCost       *float64 `json:"total_cost_usd"`
		TerminalReason  string   `json:"terminal_reason"`
		Denials         []struct {
			ToolName string `json:"tool_name"`
		} `json:"permission_denials"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	if e.SessionID != "" {
		t.turn.Session = e.SessionID
	}
	switch e.Type {
	case "assistant":
		if e.ParentToolUseID != "" {
			return // a subagent's words are not the answer
		}
		var text strings.Builder
		for _, part := range e.Message.Content {
			if part.Type == "text" {
				text.WriteString(part.Text)
			}
		}
		if text.Len() > 0 {
			t.turn.Text = "" // the final answer is the last one
			t.say(text.String())
		}
	case "result":
		t.ended = true
		if e.Result != "" {
			t.turn.Text = e.Result
		}
		for _, denial := range e.Denials {
			t.turn.Denied = append(t.turn.Denied, denial.ToolName)
		}
		for name, raw := range e.Usage {
			var n float64
			if json.Unmarshal(raw, &n) == nil {
				t.usage(name, n)
			}
		}
		if e.TotalCost != nil {
			t.usage("cost_usd", *e.TotalCost)
		}
		if e.IsError {
			t.failure = e.Result
			if t.failure == "" {
				t.failure = strings.TrimSpace(e.Subtype + " " + e.TerminalReason)
			}
		}
	}
}

// codexStream reads `codex exec --json`. An item of type error may be a mere
// warning; turn.failed is not.
func codexStream(t *TurnReader, data []byte) {
	var e struct {
		Type     string
		ThreadID string `json:"thread_id"`
		Message  string
		Item     struct{ Type, Text, Message string }
		Usage    map[string]float64
		Error    struct{ Message string }
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "thread.started":
		t.turn.Session = e.ThreadID
	case "item.completed":
		switch e.Item.Type {
		case "agent_message":
			t.turn.Text = ""
			t.say(e.Item.Text)
		case "error":
			t.warning = e.Item.Message
		}
	case "error":
		t.warning = e.Message
	case "turn.completed":
		t.ended = true
		t.usage("cumulative", true) // a resumed thread's numbers hold the turns before
		for name, n := range e.Usage {
			t.usage(name, n)
		}
	case "turn.failed":
		t.ended = true
		t.failure = errorText(e.Error.Message)
	}
}

// geminiStream reads `gemini --output-format stream-json`. Without its result a
// turn was cut off, whatever the exit status.
func geminiStream(t *TurnReader, data []byte) {
	var e struct {
		Type      string
		SessionID string `json:"session_id"`
		Role      string
		Content   string
		Delta     bool
		Status    string
		Error     *struct{ Message string }
		Stats     map[string]json.RawMessage
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "init":
		t.turn.Session = e.SessionID
	case "message":
		if e.Role == "assistant" {
			t.say(e.Content)
		}
	case "tool_use":
		t.turn.Text = ""
	case "error":
		if e.Error != nil {
			t.warning = errorText(e.Error.Message)
		}
	case "result":
		t.ended = true
		for name, raw := range e.Stats {
			var n float64
			if json.Unmarshal(raw, &n) == nil {
				t.usage(name, n)
			}
		}
		if e.Status != "success" {
			t.failure = "the turn failed"
			if e.Error != nil {
				t.failure = errorText(e.Error.Message)
			}
		}
	}
}

// opencodeStream reads `opencode run --format json`, which has no final event: a
// step that finishes with "stop" is the end, one that finishes with "tool-calls"
// and is followed by nothing is a tool that was rejected.
func opencodeStream(t *TurnReader, data []byte) {
	var e struct {
		Type      string
		SessionID string `json:"sessionID"`
		Part      struct {
			Text   string
			Reason string
			Tool   string
			Cost   *float64
			Tokens map[string]json.RawMessage
			State  struct{ Status, Error string }
		}
		Error struct {
			Name string
			Data struct{ Message string }
		}
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	if e.SessionID != "" {
		t.turn.Session = e.SessionID
	}
	switch e.Type {
	case "text":
		t.say(e.Part.Text)
	case "tool_use":
		t.turn.Text = ""
		if e.Part.State.Status == "error" {
			t.turn.Denied = append(t.turn.Denied, e.Part.Tool)
			t.pending = e.Part.Tool + ": " + e.Part.State.Error
		}
	case "step_finish":
		t.ended = e.Part.Reason != "tool-calls"
		if !t.ended && t.pending == "" {
			t.pending = "a tool it asked for was rejected"
		}
		if e.Part.Reason == "tool-calls" {
			t.turn.Text = ""
		}
		for name, raw := range e.Part.Tokens {
			var n float64
			if json.Unmarshal(raw, &n) == nil {
				before, _ := t.turn.Usage[name].(float64)
				t.usage(name, before+n)
			}
		}
		if e.Part.Cost != nil {
			before, _ := t.turn.Usage["cost_usd"].(float64)
			t.usage("cost_usd", before+*e.Part.Cost)
		}
	case "error":
		t.failure = e.Error.Data.Message
		if t.failure == "" {
			t.failure = e.Error.Name
		}
	}
}
