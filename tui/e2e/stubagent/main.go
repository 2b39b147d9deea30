// Command stubagent stands in for Claude Code in tests: it takes the same
// flags, keeps the same files, and has the same dangers.
//
// It is full-screen, takes bracketed paste, treats an Enter that follows a
// paste too closely as a newline, asks for permission with a question that
// Enter approves, refuses to create a session twice and to resume an unknown
// one, and changes its session ID on /clear. Words in a message script it:
//
//	ASK            asks permission for a command before it answers
//	BUSY path      works until path exists
//	QUIT           ends with exit code 3
//
// Everything it received is appended to ~/stubagent/received.jsonl.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"
)

const version = "2.1.332 (Claude Code)"

func main() {
	a := newAgent(os.Args[1:])
	switch {
	case a.has("--version"), a.has("-v"):
		fmt.Println(version)
	case a.has("--help"), a.has("-h"):
		fmt.Println("Usage: claude [options]\n  --session-id <uuid>\n  -r, --resume [value]\n  --append-system-prompt <prompt>\n  --system-prompt <prompt>\n  --system-prompt-snapshot <mode>\n  --settings <file-or-json>\n  -p, --print")
	case a.has("-p"), a.has("--print"):
		os.Exit(a.headless())
	default:
		os.Exit(a.interactive())
	}
}

// agent is one run: its flags, its session, and its files.
type agent struct {
	args    []string
	home    string
	session string
	resumed bool
}

func newAgent(args []string) *agent {
	home, err := os.UserHomeDir()
	if err != nil {
		fatal(err.Error())
	}
	return &agent{args: args, home: home}
}

func (a *agent) has(flag string) bool {
	for _, arg := range a.args {
		if arg == flag {
			return true
		}
	}
	return false
}

func (a *agent) value(flags ...string) string {
	for i, arg := range a.args {
		for _, flag := range flags {
			if arg == flag && i+1 < len(a.args) {
				return a.args[i+1]
			}
			if v, ok := strings.CutPrefix(arg, flag+"="); ok {
				return v
			}
		}
	}
	return ""
}

func fatal(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}

func (a *agent) config() string {
	if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(a.home, ".claude")
}

// transcript is where Claude Code keeps a conversation: the working directory
// with every other character than letters and digits made a dash.
func (a *agent) transcript(session string) string {
	dir, err := os.Getwd()
	if err != nil {
		fatal(err.Error())
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, dir)
	return filepath.Join(a.config(), "projects", name, session+".jsonl")
}

func (a *agent) chooseSession() {
	if id := a.value("--resume", "-r"); id != "" {
		if _, err := os.Stat(a.transcript(id)); err != nil {
			fatal("No conversation found with session ID: " + id)
		}
		a.session, a.resumed = id, true
		return
	}
	id := a.value("--session-id")
	if id == "" {
		id = fmt.Sprintf("00000000-0000-4000-8000-%012d", os.Getpid())
	}
	if _, err := os.Stat(a.transcript(id)); err == nil {
		fatal("Error: Session ID " + id + " is already in use.")
	}
	a.session = id
}

func appendLine(path string, v any) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		fatal(err.Error())
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fatal(err.Error())
	}
	line, err := json.Marshal(v)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
	}
	if err != nil {
		fatal(err.Error())
	}
	if err := f.Close(); err != nil {
		fatal(err.Error())
	}
}

type received struct {
	Session string   `json:"session"`
	Resumed bool     `json:"resumed"`
	Text    string   `json:"text"`
	Overlay string   `json:"overlay,omitempty"`
	Args    []string `json:"args"`
	Env     []string `json:"env"`
}

// receive records a message as a turn of the conversation, and for the test.
func (a *agent) receive(text string) {
	overlay := a.value("--append-system-prompt")
	if path := a.value("--append-system-prompt-file"); path != "" {
		content, err := os.ReadFile(path)
		if err != nil {
			fatal(err.Error())
		}
		overlay = string(content)
	}
	appendLine(filepath.Join(a.home, "stubagent", "received.jsonl"), received{
		Session: a.session, Resumed: a.resumed, Text: text, Overlay: overlay, Args: a.args, Env: os.Environ(),
	})
	now := time.Now().UTC().Format(time.RFC3339Nano)
	appendLine(a.transcript(a.session), map[string]any{
		"type": "user", "sessionId": a.session, "timestamp": now,
		"message": map[string]any{"role": "user", "content": text},
	})
}

func (a *agent) answer(text string) {
	appendLine(a.transcript(a.session), map[string]any{
		"type": "assistant", "sessionId": a.session, "timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		"message": map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": text}}},
	})
}

// register keeps the file in which Claude Code says what it does.
func (a *agent) register(status, waitingFor string) {
	path := filepath.Join(a.config(), "sessions", fmt.Sprint(os.Getpid())+".json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		fatal(err.Error())
	}
	dir, _ := os.Getwd()
	now := time.Now().UnixMilli()
	entry := map[string]any{
		"pid": os.Getpid(), "procStart": processStart(), "sessionId": a.session, "cwd": dir, "version": "2.1.332",
		"kind": "interactive", "status": status, "updatedAt": now, "statusUpdatedAt": now,
	}
	if waitingFor != "" {
		entry["waitingFor"] = waitingFor
	}
	content, err := json.Marshal(entry)
	if err == nil {
		err = os.WriteFile(path+".new", content, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		fatal(err.Error())
	}
}

// processStart is field 22 of /proc/self/stat, or empty elsewhere.
func processStart() string {
	content, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

func (a *agent) headless() int {
	a.chooseSession()
	text := ""
	if n := len(a.args); n > 0 && !strings.HasPrefix(a.args[n-1], "-") && a.value("--session-id", "--resume") != a.args[n-1] {
		text = a.args[n-1]
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		scanner := bufio.NewScanner(os.Stdin)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			if text != "" {
				text += "\n"
			}
			text += scanner.Text()
		}
	}
	out := json.NewEncoder(os.Stdout)
	event := func(v map[string]any) {
		v["session_id"] = a.session
		if err := out.Encode(v); err != nil {
			fatal(err.Error())
		}
	}
	event(map[string]any{"type": "system", "subtype": "init", "model": "stub", "permissionMode": "default"})
	a.receive(text)
	if strings.Contains(text, "FAIL") {
		event(map[string]any{"type": "result", "subtype": "success", "is_error": true, "result": "API Error: 400 stub refused", "api_error_status": 400})
		return 1
	}
	reply := "STUB-REPLY to " + firstLine(text)
	a.answer(reply)
	event(map[string]any{"type": "assistant", "message": map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": reply}}}})
	event(map[string]any{"type": "result", "subtype": "success", "is_error": false, "result": reply, "usage": map[string]any{"output_tokens": 3}, "total_cost_usd": 0.01})
	return 0
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
