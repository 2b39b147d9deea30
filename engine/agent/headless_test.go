package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// recorded feeds a recorded stream to an agent's reader.
func recorded(t *testing.T, name, file, session string) *TurnReader {
	t.Helper()
	a, _ := New(Options{}).Lookup(name)
	reader, err := a.Turn(session, nil)
	if err != nil {
		t.Fatal(err)
	}
	if file != "" {
		f, err := os.Open(filepath.Join("testdata", "streams", file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		half := iotest.HalfReader(f) // events arrive in pieces
		buffer := make([]byte, 100)
		for {
			n, err := half.Read(buffer)
			if _, e := reader.Write(buffer[:n]); e != nil {
				t.Fatal(e)
			}
			if err != nil {
				break
			}
		}
	}
	return reader
}

func TestHeadlessTurnsAreJudgedByTheAgentsWord(t *testing.T) {
	for _, test := range []struct {
		name, agent, file, more string
		exit                    int
		cancelled               bool
		text, err               string
	}{
		{name: "claude answers", agent: "claude", file: "claude-headless.stream.jsonl", text: "TOOL-DONE"},
		{name: "claude's subtype says success after an API error", agent: "claude", file: "claude-headless-error.stream.jsonl", exit: 1, text: "Failed to authenticate. API Error: 401 mock bad key", err: "Failed to authenticate. API Error: 401 mock bad key"},
		{name: "claude exits with 0 after an interrupt", agent: "claude", more: "Execution error\n", err: "it ended without saying that the turn is over"},
		{name: "claude exits with 0 after our own interrupt", agent: "claude", file: "claude-headless.stream.jsonl", cancelled: true, text: "TOOL-DONE", err: "cancelled"},
		{name: "claude aborted", agent: "claude", more: `{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}` + "\n", err: "error_during_execution aborted_streaming"},
		{name: "codex answers", agent: "codex", file: "codex-headless.jsonl", text: "TOOL-DONE"},
		{name: "codex fails", agent: "codex", file: "codex-headless-error.jsonl", exit: 1, err: "unexpected status 401 Unauthorized: mock bad key, url: http://127.0.0.1:18092/v1/responses"},
		{name: "codex warns by an item of type error", agent: "codex", more: `{"type":"item.completed","item":{"type":"error","message":"mere warning"}}
{"type":"item.completed","item":{"type":"agent_message","text":"fine"}}
{"type":"turn.completed","usage":{}}
`, text: "fine"},
		{name: "codex stops in the middle", agent: "codex", more: `{"type":"turn.started"}` + "\n", exit: 1, err: "it ended with exit status 1"},
		{name: "gemini answers", agent: "gemini", file: "gemini-headless.stream.jsonl", text: "TOOL-DONE"},
		{name: "gemini fails with 400 mod 256", agent: "gemini", file: "gemini-headless-error.stream.jsonl", exit: 144, err: "mock bad request"},
		{name: "gemini exits with 0 without a result", agent: "gemini", more: `{"type":"message","role":"assistant","content":"half","delta":true}` + "\n", text: "half", err: "it ended without saying that the turn is over"},
		{name: "opencode answers", agent: "opencode", file: "opencode-headless.jsonl", text: "TOOL-DONE"},
		{name: "opencode fails", agent: "opencode", file: "opencode-headless-error.jsonl", exit: 1, err: "mock bad request"},
		{name: "opencode exits with 0 after it rejected a tool itself", agent: "opencode", more: `{"type":"tool_use","part":{"tool":"bash","state":{"status":"error","error":"The user rejected permission"}}}
{"type":"step_finish","part":{"reason":"tool-calls"}}
`, err: "it ended without an answer: bash: The user rejected permission"},
		{name: "nothing at all", agent: "codex", err: "it ended without saying that the turn is over"},
		{name: "a line that is no event", agent: "codex", more: "Reading prompt from stdin...\n{torn\n", err: "it ended without saying that the turn is over"},
		{name: "an event larger than anything that is judged by", agent: "codex", more: `{"type":"item.completed","item":{"type":"agent_message","text":"` + strings.Repeat("x", maxEvent) + "\"}}\n" + `{"type":"turn.completed"}` + "\n", err: "it ended without an answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			reader := recorded(t, test.agent, test.file, "")
			fmt.Fprint(reader, test.more)
			got := reader.Result(test.exit, "", test.cancelled)
			if got.Text != test.text || got.Error != test.err {
				t.Errorf("text %q error %q, want %q %q", got.Text, got.Error, test.text, test.err)
			}
		})
	}
}

func TestHeadlessTurnTellsUsageAndDenials(t *testing.T) {
	claude := recorded(t, "claude", "claude-headless.stream.jsonl", "").Result(0, "", false)
	if claude.Usage["output_tokens"] != 14.0 || claude.Usage["cost_usd"] == nil {
		t.Errorf("claude's usage is %v", claude.Usage)
	}
	opencode := recorded(t, "opencode", "opencode-headless.jsonl", "").Result(0, "", false)
	if opencode.Usage["total"] != 36.0 {
		t.Errorf("opencode's usage over two steps is %v, want 36 in total", opencode.Usage)
	}
}

func TestHeadlessTurnInAnotherConversationIsAFailure(t *testing.T) {
	// `codex exec resume NAME` with an unknown name starts a new thread, exit 0.
	got := recorded(t, "codex", "codex-headless.jsonl", "11111111-0000-4000-8000-000000000000").Result(0, "", false)
	if !strings.Contains(got.Error, "another conversation") {
		t.Errorf("error %q", got.Error)
	}
	if got = recorded(t, "codex", "codex-headless.jsonl", "00000000-0000-4000-8000-000000000018").Result(0, "", false); got.Error != "" {
		t.Errorf("the slot's own conversation: %q", got.Error)
	}
}
