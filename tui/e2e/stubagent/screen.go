package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"
)

// settle is how long after a paste an Enter is still taken as part of it.
const settle = 150 * time.Millisecond

// A terminal's input, as far as an agent's box tells it apart.
type input struct {
	text  string
	paste bool
	key   string // "enter", "esc", "ctrl-c", "ctrl-u", "ctrl-d", "backspace"
}

// readInputs turns the bytes of a terminal into inputs, until it is closed.
func readInputs(out chan<- input) {
	defer close(out)
	var pending []byte
	buffer := make([]byte, 64<<10)
	for {
		n, err := os.Stdin.Read(buffer)
		if err != nil {
			return
		}
		pending = append(pending, buffer[:n]...)
		for len(pending) > 0 {
			in, size := parseInput(pending)
			if size == 0 {
				break
			}
			pending = pending[size:]
			out <- in
		}
	}
}

// parseInput reads one input from the front of b; size 0 asks for more bytes.
func parseInput(b []byte) (in input, size int) {
	const begin, end = "\x1b[200~", "\x1b[201~"
	s := string(b)
	if strings.HasPrefix(s, begin) {
		body, _, closed := strings.Cut(s[len(begin):], end)
		if !closed {
			return input{}, 0
		}
		return input{text: strings.ReplaceAll(body, "\r", "\n"), paste: true}, len(begin) + len(body) + len(end)
	}
	switch b[0] {
	case '\r', '\n':
		return input{key: "enter"}, 1
	case 3:
		return input{key: "ctrl-c"}, 1
	case 4:
		return input{key: "ctrl-d"}, 1
	case 21:
		return input{key: "ctrl-u"}, 1
	case 127, 8:
		return input{key: "backspace"}, 1
	case 27:
		if len(b) > 1 && b[1] == '[' {
			for i := 2; i < len(b); i++ {
				if b[i] >= 0x40 && b[i] <= 0x7e {
					return input{key: "csi"}, i + 1
				}
			}
			return input{}, 0
		}
		return input{key: "esc"}, 1
	}
	n := 0
	for n < len(b) && b[n] >= 32 && b[n] != 127 {
		n++
	}
	if n == 0 {
		return input{key: "control"}, 1
	}
	return input{text: string(b[:n])}, n
}

// box is the state of the screen.
type box struct {
	agent    *agent
	draft    string
	pasted   time.Time
	question string // open permission question
	asked    string // message that the question is about
	history  []string
	busyTill string // path whose existence ends the turn
	queued   []string
}

func (a *agent) interactive() int {
	a.chooseSession()
	before, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		fatal("stubagent needs a terminal: " + err.Error())
	}
	fmt.Print("\x1b[?1049h\x1b[?2004h\x1b]0;✳ stub agent\x07")
	leave := func() {
		fmt.Print("\x1b[?2004l\x1b[?1049l")
		if err := term.Restore(int(os.Stdin.Fd()), before); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	defer leave()
	defer func() {
		// A clean end removes the registry entry, as Claude Code does.
		if err := os.Remove(filepath.Join(a.config(), "sessions", fmt.Sprint(os.Getpid())+".json")); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()

	b := &box{agent: a}
	if a.resumed {
		b.history = append(b.history, "(resumed "+a.session+")")
	}
	a.register("idle", "")
	a.hook("SessionStart", map[string]any{"source": map[bool]string{true: "resume", false: "startup"}[a.resumed]})
	b.draw()
	inputs := make(chan input, 16)
	go readInputs(inputs)
	busy := time.NewTicker(20 * time.Millisecond)
	defer busy.Stop()
	for {
		select {
		case in, open := <-inputs:
			if !open {
				return 0
			}
			if code, end := b.take(in); end {
				return code
			}
		case <-busy.C:
			if b.busyTill == "" {
				continue
			}
			if _, err := os.Stat(b.busyTill); err != nil {
				continue
			}
			b.busyTill = ""
			b.finish("done waiting")
		}
		b.draw()
	}
}

func (b *box) take(in input) (code int, end bool) {
	if b.question != "" {
		switch in.key {
		case "enter":
			appendLine(filepath.Join(b.agent.home, "stubagent", "approved.jsonl"), map[string]string{"question": b.question})
			b.question = ""
			b.finish("approved")
		case "esc":
			b.question = ""
			b.finish("rejected")
		}
		return 0, false // whatever else is typed at a question is lost
	}
	switch in.key {
	case "":
		b.draft += in.text
		if in.paste {
			b.pasted = time.Now()
		}
	case "enter":
		if time.Since(b.pasted) < settle {
			b.draft += "\n"
			return 0, false
		}
		text := b.draft
		b.draft = ""
		if strings.TrimSpace(text) == "" {
			return 0, false
		}
		if b.busyTill != "" {
			b.queued = append(b.queued, text)
			return 0, false
		}
		return b.submit(text)
	case "backspace":
		if r := []rune(b.draft); len(r) > 0 {
			b.draft = string(r[:len(r)-1])
		}
	case "ctrl-u":
		b.draft = ""
	case "esc":
		if b.busyTill != "" {
			b.busyTill = ""
			b.finish("interrupted")
		}
	case "ctrl-d", "ctrl-c":
		if b.draft == "" {
			return 0, true
		}
		b.draft = ""
	}
	return 0, false
}

func (b *box) submit(text string) (code int, end bool) {
	switch strings.TrimSpace(text) {
	case "/exit":
		return 0, true
	case "/clear":
		b.agent.session = fmt.Sprintf("00000000-0000-4000-8000-%012d", time.Now().UnixNano()%1e12)
		b.agent.register("idle", "")
		b.agent.hook("SessionStart", map[string]any{"source": "clear"})
		b.history = []string{"(cleared)"}
		return 0, false
	}
	b.agent.hook("UserPromptSubmit", map[string]any{"prompt": text})
	b.agent.receive(text)
	b.history = append(b.history, "> "+firstLine(text))
	switch {
	case strings.Contains(text, "QUIT"):
		return 3, true
	case strings.Contains(text, "ASK"):
		b.question, b.asked = "Bash(touch made-by-stub)", text
		b.agent.register("waiting", "permission prompt")
		b.agent.hook("PermissionRequest", map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "touch made-by-stub"}})
	case strings.Contains(text, "BUSY "):
		_, path, _ := strings.Cut(text, "BUSY ")
		b.busyTill = strings.Fields(path)[0]
		b.agent.register("busy", "")
	default:
		b.finish("STUB-REPLY")
	}
	return 0, false
}

func (b *box) finish(reply string) {
	b.agent.answer(reply)
	b.history = append(b.history, "● "+reply)
	b.agent.register("idle", "")
	if reply != "rejected" && reply != "interrupted" { // of which Claude Code's hooks say nothing
		b.agent.hook("Stop", map[string]any{"last_assistant_message": reply})
	}
	if len(b.queued) > 0 {
		next := b.queued[0]
		b.queued = b.queued[1:]
		b.submit(next)
	}
}

func (b *box) draw() {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	rule := strings.Repeat("─", width)
	var lines []string
	lines = append(lines, "stub agent "+b.agent.session)
	lines = append(lines, b.history...)
	if b.question != "" {
		lines = append(lines, rule, " Bash command", "", "   touch made-by-stub", "", " Do you want to proceed?", " ❯ 1. Yes", "   2. No", "", " Esc to cancel")
	} else {
		if b.busyTill != "" {
			lines = append(lines, "✻ Working… (esc to interrupt)")
		}
		draft := strings.ReplaceAll(b.draft, "\n", "\n  ")
		lines = append(lines, rule, "❯ "+draft, rule, "  ? for shortcuts")
	}
	if over := len(lines) - height; over > 0 {
		lines = lines[over:]
	}
	fmt.Print("\x1b[H\x1b[2J" + strings.Join(lines, "\r\n"))
}
