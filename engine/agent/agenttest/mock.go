// Package agenttest is what tests of the real agents stand on: a mock of the
// four providers' APIs on loopback, and the programs themselves, when they are
// installed.
//
// The rule it keeps: a test reads what reached the wire from the mock's log,
// never from an argv or from a screen.
package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Words that a user's text may hold, and what the model then does. Anything
// else is answered with "MOCK-REPLY".
const (
	WordTool    = "RUN-TOUCH"   // calls the shell tool with ToolCommand; its result is answered with "TOOL-DONE"
	WordForce   = "FORCE-TOUCH" // calls it even where no such tool is offered, and without asking for more rights
	WordSlow    = "SLOW"        // says "SLOW-START" and is silent until the client goes or SlowFor has passed
	WordFail400 = "BOOM400"
	WordFail401 = "BOOM401"
	WordFail500 = "BOOM500"
)

// ToolCommand is the command of the model's tool call. It leaves ToolFile in
// the working directory, so that a test sees whether it ran.
const (
	ToolFile    = "made-by-tool"
	ToolCommand = "touch " + ToolFile + " && date"
)

// SlowFor is how long an answer to WordSlow takes when nobody interrupts it.
const SlowFor = 60 * time.Second

// Provider is whose API a request spoke.
type Provider string

// The providers.
const (
	Anthropic Provider = "anthropic" // Messages
	Responses Provider = "responses" // OpenAI Responses
	Gemini    Provider = "gemini"    // generateContent
	Chat      Provider = "chat"      // OpenAI chat completions
)

// Message is one message of a request, its text parts joined by a newline.
type Message struct {
	Role   string
	Text   string
	Result bool // it holds the result of a tool call
}

// Request is one model request as it arrived.
type Request struct {
	Provider Provider
	Path     string
	Model    string
	System   string // every system and developer text, in order
	Messages []Message
	Tools    []string // names of the tools that were offered
	Body     []byte
	At       time.Time
}

// LastUser is the text of the user messages after the last answer, which is
// what this request asks.
func (r Request) LastUser() string {
	var texts []string
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := r.Messages[i]
		if m.Role == "assistant" || m.Role == "model" {
			break
		}
		if m.Role == "user" && !m.Result {
			texts = append([]string{m.Text}, texts...)
		}
	}
	return strings.Join(texts, "\n")
}

// side says whether an agent asked besides its own loop, for a title or a
// route: such a request offers no tool, or codex's one.
func (r Request) side() bool {
	if r.Provider == Chat && len(r.Tools) == 0 {
		// A reviewing opencode offers no tools in its turns either.
		return strings.Contains(r.System, "title generator")
	}
	return len(r.Tools) < 2
}

// UserText is every user text of the conversation, in order.
func (r Request) UserText() string {
	var texts []string
	for _, m := range r.Messages {
		if m.Role == "user" {
			texts = append(texts, m.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Mock answers as the four providers do, and keeps what it was asked.
type Mock struct {
	server *httptest.Server

	mu       sync.Mutex
	requests []Request
	other    []string // requests that no provider's API explains
	changed  chan struct{}
	serial   int
}

// NewMock starts a mock on the loopback that ends with the test.
func NewMock(t testing.TB) *Mock { return NewMockAt(t, "127.0.0.1") }

// NewMockAt starts a mock at an address of this host, for agents in containers,
// which don't reach its loopback.
func NewMockAt(t testing.TB, address string) *Mock {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	m := &Mock{changed: make(chan struct{})}
	m.server = httptest.NewUnstartedServer(http.HandlerFunc(m.serve))
	_ = m.server.Listener.Close()
	m.server.Listener = listener
	m.server.Start()
	t.Cleanup(func() {
		m.server.CloseClientConnections()
		m.server.Close()
	})
	return m
}

// URL is the mock's address, such as "http://127.0.0.1:4711".
func (m *Mock) URL() string { return m.server.URL }

// Requests returns what has arrived, oldest first.
func (m *Mock) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Request(nil), m.requests...)
}

// Turns returns the requests that an agent's own loop made, without side
// requests such as those for titles and routing.
func (m *Mock) Turns() []Request {
	var turns []Request
	for _, r := range m.Requests() {
		if !r.side() {
			turns = append(turns, r)
		}
	}
	return turns
}

// Other lists requests outside the four APIs, for a failing test's message.
func (m *Mock) Other() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.other...)
}

// Wait blocks until a turn matches, or fails the test after a while with what
// did arrive.
func (m *Mock) Wait(t testing.TB, within time.Duration, what string, match func(Request) bool) Request {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		m.mu.Lock()
		changed := m.changed
		m.mu.Unlock()
		turns := m.Turns()
		for _, r := range turns {
			if match(r) {
				return r
			}
		}
		select {
		case <-changed:
		case <-deadline.C:
			var seen []string
			for _, r := range turns {
				seen = append(seen, fmt.Sprintf("%q", clip(r.LastUser(), 400)))
			}
			t.Fatalf("no request with %s within %s; %d turns: %s; other requests: %v", what, within, len(turns), strings.Join(seen, "\n"), m.Other())
		}
	}
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

func (m *Mock) keep(r Request) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.At = time.Now()
	m.requests = append(m.requests, r)
	m.serial++
	close(m.changed)
	m.changed = make(chan struct{})
	return m.serial
}

func (m *Mock) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	path := r.URL.Path
	switch {
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		// Codex tries a websocket first and falls back at once on this answer.
		w.WriteHeader(http.StatusUpgradeRequired)
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/v1/messages"):
		m.answer(w, r, body, anthropicAPI{})
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/responses"):
		m.answer(w, r, body, responsesAPI{})
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/chat/completions"):
		m.answer(w, r, body, chatAPI{})
	case r.Method == http.MethodPost && (strings.HasSuffix(path, ":streamGenerateContent") || strings.HasSuffix(path, ":generateContent")):
		m.answer(w, r, body, geminiAPI{stream: strings.HasSuffix(path, ":streamGenerateContent")})
	case strings.HasSuffix(path, ":countTokens"):
		writeJSON(w, http.StatusOK, object{"totalTokens": 11})
	case strings.HasSuffix(path, "/count_tokens"):
		writeJSON(w, http.StatusOK, object{"input_tokens": 11})
	default:
		m.mu.Lock()
		m.other = append(m.other, r.Method+" "+path)
		m.mu.Unlock()
		writeJSON(w, http.StatusNotFound, object{"error": object{"message": "the mock has no " + path}})
	}
}

// api is one provider's way to say the four things a model says.
type api interface {
	parse(body []byte) (Request, error)
	// write sends an answer; a slow one sends its text and then waits.
	write(w http.ResponseWriter, a answer)
	fail(w http.ResponseWriter, status int, text string)
}

// answer is what the model says: text, or a call of the tool that runs shell
// commands.
type answer struct {
	serial int
	model  string
	text   string
	tool   string // its name; "" is no call
	args   string // JSON
	hold   func() // called between the text and the end; nil is no pause
}

func (m *Mock) answer(w http.ResponseWriter, r *http.Request, body []byte, p api) {
	request, err := p.parse(body)
	if err != nil {
		p.fail(w, http.StatusBadRequest, "the mock cannot read this: "+err.Error())
		return
	}
	request.Path, request.Body = r.URL.Path, body
	a := answer{serial: m.keep(request), model: request.Model}
	var last string
	var afterTool bool
	if n := len(request.Messages); n > 0 {
		// The last message and the last word in it: an interrupted turn leaves
		// its words before them.
		last, afterTool = request.Messages[n-1].Text, request.Messages[n-1].Result
	}
	side := request.side()
	said := ""
	for _, w := range []string{WordTool, WordForce, WordSlow, WordFail400, WordFail401, WordFail500} {
		if at := strings.LastIndex(last, w); at >= 0 && (said == "" || at > strings.LastIndex(last, said)) {
			said = w
		}
	}
	word := func(w string) bool { return !side && !afterTool && said == w }
	switch {
	case afterTool:
		a.text = "TOOL-DONE"
	case word(WordFail400):
		p.fail(w, http.StatusBadRequest, "mock bad request")
		return
	case word(WordFail401):
		p.fail(w, http.StatusUnauthorized, "mock bad key")
		return
	case word(WordFail500):
		p.fail(w, http.StatusInternalServerError, "mock server error")
		return
	case word(WordTool):
		a.tool, a.args = shellTool(request.Tools)
		if a.tool == "" {
			a.text = "MOCK-REPLY (no shell tool was offered)"
		}
	case word(WordForce):
		a.tool, a.args = forcedTool(request)
	case word(WordSlow):
		a.text = "SLOW-START"
		a.hold = func() {
			timer := time.NewTimer(SlowFor)
			defer timer.Stop()
			select {
			case <-r.Context().Done():
			case <-timer.C:
			}
		}
	case side:
		a.text = "A mock title"
	default:
		a.text = "MOCK-REPLY"
	}
	p.write(w, a)
}

// shellTool picks the tool that runs a command, by the names that the four
// agents give it, and writes its arguments. Codex is told that the command
// needs to leave its sandbox, since it would not ask otherwise.
func shellTool(offered []string) (name, args string) {
	for _, tool := range offered {
		switch tool {
		case "Bash", "bash", "run_shell_command":
			return tool, marshal(object{"command": ToolCommand, "description": "touch a file"})
		case "exec_command":
			return tool, marshal(object{"cmd": ToolCommand, "sandbox_permissions": "require_escalated", "justification": "need it"})
		case "shell_command":
			return tool, marshal(object{"command": ToolCommand, "sandbox_permissions": "require_escalated", "justification": "need it"})
		case "shell":
			return tool, marshal(object{"command": []string{"bash", "-lc", ToolCommand}, "sandbox_permissions": "require_escalated", "justification": "need it"})
		}
	}
	return "", ""
}

// forcedTool is the tool that runs a command, by the name that the agent of a
// provider gives it, whatever was offered: a model may call what it has seen
// before. Nothing in its arguments asks to leave a sandbox.
func forcedTool(r Request) (name, args string) {
	plain := marshal(object{"command": ToolCommand, "description": "touch a file"})
	switch r.Provider {
	case Anthropic:
		return "Bash", plain
	case Gemini:
		return "run_shell_command", plain
	case Chat:
		return "bash", plain
	}
	switch name, _ := shellTool(r.Tools); name {
	case "shell":
		return name, marshal(object{"command": []string{"bash", "-lc", ToolCommand}})
	case "shell_command":
		return name, plain
	default:
		return "exec_command", marshal(object{"cmd": ToolCommand})
	}
}

type object = map[string]any

func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // only values of this package are marshalled
	}
	return string(data)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, marshal(v)) // a client that went away is no news
}

// events writes server-sent events.
type events struct{ w http.ResponseWriter }

func newEvents(w http.ResponseWriter) events {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return events{w}
}

func (e events) send(name string, v any) {
	if name != "" {
		_, _ = fmt.Fprintf(e.w, "event: %s\n", name)
	}
	_, _ = fmt.Fprintf(e.w, "data: %s\n\n", marshal(v))
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
}

// textOf joins the text of a content value that is a string or a list of parts.
func textOf(raw json.RawMessage, key string) (text string, result bool) {
	var plain string
	if json.Unmarshal(raw, &plain) == nil {
		return plain, false
	}
	var parts []map[string]json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return "", false
	}
	var texts []string
	for _, part := range parts {
		var kind, s string
		_ = json.Unmarshal(part["type"], &kind)
		if kind == "tool_result" || part["functionResponse"] != nil {
			result = true
		}
		if json.Unmarshal(part[key], &s) == nil {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n"), result
}
