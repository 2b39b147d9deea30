package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"cellmux/cell/proc/proctest"
	"cellmux/engine/agent/agenttest"
)

// builtIn is the directory that buildCellmux has made, for TestMain to remove.
var builtIn string

// buildCellmux builds the program once for all tests of this file.
var buildCellmux = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cmxb")
	if err != nil {
		return "", err
	}
	builtIn = dir
	program := filepath.Join(dir, "cellmux")
	out, err := exec.Command("go", "build", "-o", program, "cellmux").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return program, nil
})

// user is somebody who works with cellmux from a shell, in a home of his own.
type user struct {
	t       *testing.T
	name    string
	program string
	home    string
	project string
	environ []string
	mock    *agenttest.Mock
}

func newUser(t *testing.T, name string) *user {
	t.Helper()
	return newUserWith(t, name, agenttest.NewMock(t))
}

// newUserWith is newUser at another mock, with more variables.
func newUserWith(t *testing.T, name string, mock *agenttest.Mock, environ ...string) *user {
	t.Helper()
	bin := agenttest.Bin(t, name)
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux")
	}
	program, err := buildCellmux()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "cmxu")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	u := &user{t: t, name: name, program: program, project: filepath.Join(dir, "demo"), mock: mock}
	home := filepath.Join(dir, "home")
	for _, d := range []string{home, u.project, filepath.Join(dir, "run")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	u.environ = append([]string{
		"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "SHELL=/bin/sh", "USER=dev", "TERM=xterm-256color",
		"TMUX_TMPDIR=" + dir, "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1",
	}, agenttest.Home(t, name, home, u.mock.URL(), u.project)...)
	u.environ = append(u.environ, environ...)
	u.home = home
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := u.run("ls", "--json")
			t.Logf("ls: %s", out)
			for i, r := range u.mock.Turns() {
				t.Logf("turn %d: %.400q", i, r.LastUser())
			}
			for slot := range 2 {
				screen, _ := u.tmux("capture-pane", "-p", "-t", fmt.Sprintf("=demo-%d:", slot))
				t.Logf("screen of %d: %s", slot, strings.TrimRight(screen, "\n "))
			}
		}
		_, _ = u.run("stop", "--force", "demo")
		_, _ = u.tmux("kill-server")
		proctest.EndAllOf(t, u.home) // an agent may outlive the loss of its terminal
	})
	return u
}

// tmux asks this user's own private server.
func (u *user) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-L", "cellmux"}, args...)...)
	cmd.Env = u.environ
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (u *user) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, u.program, args...)
	cmd.Env, cmd.Dir = u.environ, u.project
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("cellmux %q: %w: %s%s", args, err, &out, &talk)
	}
	return strings.TrimSpace(out.String()), err
}

func (u *user) must(args ...string) string {
	u.t.Helper()
	out, err := u.run(args...)
	if err != nil {
		u.t.Fatal(err)
	}
	return out
}

// row is one slot of ls --json.
type row struct {
	Slot     int
	Status   string
	Detail   string
	Question string
	Queued   int
}

func (u *user) row(slot int) row {
	u.t.Helper()
	var list struct{ Cells []struct{ Slots []row } }
	if err := json.Unmarshal([]byte(u.must("ls", "--json")), &list); err != nil {
		u.t.Fatal(err)
	}
	for _, c := range list.Cells {
		for _, r := range c.Slots {
			if r.Slot == slot {
				return r
			}
		}
	}
	return row{}
}

func (u *user) until(within time.Duration, what string, ok func() bool) {
	u.t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			u.t.Fatalf("%s: not within %s: %s", u.name, within, what)
		}
		<-tick.C
	}
}

// send hands a message over and waits until it is submitted.
func (u *user) send(slot int, text string) {
	u.t.Helper()
	if state := u.must("send", fmt.Sprintf("demo:%d", slot), "--wait", "3m", text); state != "submitted" && state != "answered" {
		u.t.Fatalf("the message is %q", state)
	}
}

// tell types a command of the agent's own into its pane, as its user does.
func (u *user) tell(slot int, command string) {
	u.t.Helper()
	target := fmt.Sprintf("=demo-%d:", slot)
	screen := func() string {
		rows, _ := u.tmux("capture-pane", "-p", "-t", target)
		return rows
	}
	keys := func(args ...string) {
		if out, err := u.tmux(append([]string{"send-keys", "-t", target}, args...)...); err != nil {
			u.t.Fatalf("%v: %s", err, out)
		}
	}
	// An agent shows its completions first, and Enter takes the chosen one.
	keys("-l", command)
	u.until(10*time.Second, "the command in the box", func() bool { return strings.Contains(screen(), command) })
	before := screen()
	keys("Enter")
	u.until(10*time.Second, "the command done", func() bool { return screen() != before })
}

// asked waits for the request that asks for text.
func (u *user) asked(text string) agenttest.Request {
	u.t.Helper()
	return u.mock.Wait(u.t, time.Minute, text, func(r agenttest.Request) bool { return strings.Contains(r.LastUser(), text) })
}

// firstTurn is two `!` and a message, in one request: both envelopes in front of
// it, in order and once, and the overlay with them.
func (u *user) firstTurn(overlay string) {
	u.t.Helper()
	t := u.t
	u.must("run", "demo:0", "echo FIRST-OUTPUT")
	u.must("run", "demo:0", "echo SECOND-OUTPUT @README.md")
	u.send(0, "remember the word ALPHA")
	first := u.asked("ALPHA")
	text := first.LastUser()
	one, two, message := strings.Index(text, "FIRST-OUTPUT"), strings.Index(text, "SECOND-OUTPUT"), strings.Index(text, "ALPHA")
	if one < 0 || two < one || message < two {
		t.Errorf("the envelopes and the message are not in order: %q", text)
	}
	if n := strings.Count(first.UserText(), "[shell_context]"); n != 2 {
		t.Errorf("%d envelopes arrived: %q", n, first.UserText())
	}
	if strings.Contains(text, "@README.md") {
		t.Errorf("an @ that a program printed arrived as one: %q", text)
	}
	if !strings.Contains(first.System, overlay) {
		t.Error("the overlay is not on the wire")
	}
}

func TestRealAgentInAPaneOfCellmux(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, name)
			u.must("new", "--name", "demo")
			if ref := u.must("open", "demo", "--agent", name, "--append-system-prompt", "OVERLAY-ONE"); ref != "demo:0" {
				t.Fatalf("opened %q", ref)
			}

			u.firstTurn("OVERLAY-ONE")

			// A second pane of the same agent in the same cell is another conversation.
			if ref := u.must("open", "demo", "--agent", name); ref != "demo:1" {
				t.Fatalf("opened %q", ref)
			}
			u.send(1, "remember the word OTHER")
			if r := u.asked("OTHER"); strings.Contains(r.UserText(), "ALPHA") {
				t.Errorf("the second pane knows the first one's words: %q", r.UserText())
			}
			u.must("stop", "--force", "demo:1")

			// The server dies with every pane; the conversation goes on, with a new overlay.
			if out, err := u.tmux("kill-server"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			u.must("open", "demo:0", "--append-system-prompt", "OVERLAY-TWO")
			lines := make([]string, 30)
			for i := range lines {
				lines[i] = fmt.Sprintf("line %d of thirty", i)
			}
			u.send(0, "BETA\n"+strings.Join(lines, "\n"))
			second := u.asked("BETA")
			if !strings.Contains(second.UserText(), "ALPHA") {
				t.Errorf("the conversation was lost: %q", second.UserText())
			}
			if !strings.Contains(second.System, "OVERLAY-TWO") {
				t.Error("the new overlay is not on the wire")
			}
			if !strings.Contains(second.LastUser(), strings.Join(lines, "\n")) {
				t.Errorf("thirty lines did not arrive whole: %q", second.LastUser())
			}

			// 20 KB, whole.
			large := strings.Repeat("0123456789abcdef ", 1250)
			u.send(0, "GAMMA "+strings.TrimSpace(large))
			if r := u.asked("GAMMA"); !strings.Contains(r.LastUser(), strings.TrimSpace(large)) {
				t.Errorf("20 KB did not arrive whole: %d bytes", len(r.LastUser()))
			}
		})
	}
}

// stranger makes the user one who is logged in and has never used the agent in
// the project.
func (u *user) stranger() {
	u.t.Helper()
	// codex asks in a repository alone.
	if out, err := exec.Command("git", "init", "-q", u.project).CombinedOutput(); err != nil {
		u.t.Fatalf("%v: %s", err, out)
	}
	switch u.name {
	case "claude":
		// Its welcome asks a server of its provider before anything else.
		if err := os.WriteFile(filepath.Join(u.home, ".claude.json"), []byte(`{"hasCompletedOnboarding":true}`), 0o600); err != nil {
			u.t.Fatal(err)
		}
	case "codex":
		file := filepath.Join(u.home, ".codex", "config.toml")
		data, err := os.ReadFile(file)
		if err != nil {
			u.t.Fatal(err)
		}
		text, _, _ := strings.Cut(string(data), "[projects.")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			u.t.Fatal(err)
		}
	case "gemini":
		if err := os.Remove(filepath.Join(u.home, ".gemini", "trustedFolders.json")); err != nil {
			u.t.Fatal(err)
		}
	}
}

func TestRealAgentOnTheHostIsToldOfTrustWithTheUsersWordAlone(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, name)
			u.stranger()
			u.must("new", "--name", "demo")
			if name != "opencode" { // it asks nothing
				// Without a word nothing is answered: the agent asks in its pane, and a
				// message answers it no more than any other question.
				u.must("open", "demo", "--agent", name)
				u.until(time.Minute, "its question in the list", func() bool { return u.row(0).Status == "waiting" })
				t.Logf("it asks %q", u.row(0).Question)
				if state := u.must("send", "demo:0", "EARLY"); state != "queued" {
					t.Errorf("a message while it asks is %q", state)
				}
				u.must("stop", "--force", "demo:0")
			}
			// With it the agent reaches its prompt, and nobody touches its pane.
			ref := u.must("open", "demo", "--agent", name, "--trust-directory")
			if state := u.must("send", ref, "--wait", "3m", "remember ALPHA"); state != "submitted" && state != "answered" {
				t.Fatalf("the message is %q", state)
			}
			u.asked("ALPHA")
		})
	}
}

// clears begins a new conversation inside each agent.
var clears = map[string]string{"claude": "/clear", "codex": "/new", "gemini": "/clear", "opencode": "/new"}

func TestRealAgentThatIsClearedIsFollowed(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, name)
			u.must("new", "--name", "demo")
			u.must("open", "demo", "--agent", name)
			u.send(0, "remember the word ALPHA")
			u.asked("ALPHA")
			u.until(30*time.Second, "idle", func() bool { return u.row(0).Status == "idle" })

			// The user is in the pane, and nobody watches.
			u.tell(0, clears[name])
			u.send(0, "remember the word BETA")
			if r := u.asked("BETA"); strings.Contains(r.UserText(), "ALPHA") {
				t.Fatalf("%s began no new conversation: %q", clears[name], r.UserText())
			}
			u.until(30*time.Second, "idle", func() bool { return u.row(0).Status == "idle" })
			if log := u.must("log", "demo:0"); !strings.Contains(log, "in another conversation from here on") || !strings.Contains(log, "ALPHA") {
				t.Errorf("the conversation does not tell, or has lost what it was: %s", log)
			}

			// After a crash it is the new one that goes on, with what was said in it.
			if out, err := u.tmux("kill-server"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			u.must("open", "demo:0")
			u.send(0, "what was GAMMA")
			if r := u.asked("GAMMA"); !strings.Contains(r.UserText(), "BETA") || strings.Contains(r.UserText(), "ALPHA") {
				t.Errorf("resumed in another conversation: %q", r.UserText())
			}
		})
	}
}

func TestRealAgentsQuestionHoldsMessagesBack(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, name)
			u.must("new", "--name", "demo")
			u.must("open", "demo", "--agent", name)
			u.send(0, "please "+agenttest.WordTool)
			u.asked(agenttest.WordTool)
			u.until(20*time.Second, "the question in the list", func() bool {
				r := u.row(0)
				return r.Status == "waiting" && strings.Contains(r.Question, "touch "+agenttest.ToolFile)
			})
			if state := u.must("send", "demo:0", "DELTA while it asks"); state != "queued" {
				t.Errorf("a message while it asks is %q", state)
			}
			if r := u.row(0); r.Status != "waiting" {
				t.Errorf("after the message it is %q", r.Status)
			}
			tool := filepath.Join(u.project, agenttest.ToolFile)
			if _, err := os.Stat(tool); !errors.Is(err, os.ErrNotExist) {
				t.Fatal("the message approved the command")
			}
			// The user answers in the pane: yes. All four have it selected.
			u.until(60*time.Second, "the command runs", func() bool {
				_, err := os.Stat(tool)
				if err != nil && u.row(0).Status == "waiting" {
					if out, err := u.tmux("send-keys", "-t", "=demo-0:", "Enter"); err != nil {
						t.Fatalf("%v: %s", err, out)
					}
				}
				return err == nil
			})
			u.send(0, "EPSILON")
			if r := u.asked("EPSILON"); !strings.Contains(r.UserText(), "DELTA while it asks") {
				t.Errorf("the queued message was not delivered: %q", r.UserText())
			}
		})
	}
}

// overlaid fails the test unless the request that asks for text has the description
// of the cell and the operator's prompt of now on the wire, behind what was said
// before.
func (u *user) overlaid(text, prompt string) {
	u.t.Helper()
	system := u.asked(text).System
	if !strings.Contains(system, prompt) || strings.LastIndex(system, "OVERLAY-") != strings.LastIndex(system, prompt) || !strings.Contains(system, "in the cell demo-0") {
		u.t.Errorf("%s and the description of the cell are not in the system text of %q: %.3000q", prompt, text, system)
	}
}

var turnUsage = regexp.MustCompile(`\d+ in, \d+ out`)

func TestRealAgentWithoutAPane(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, name)
			u.must("new", "--name", "demo")
			u.must("open", "demo", "--agent", name)
			u.must("stop", "--force", "demo:0")

			if state := u.must("send", "demo:0", "--wait", "3m", "--append-system-prompt", "OVERLAY-ONE", "remember ALPHA"); state != "answered" {
				t.Errorf("a turn without a pane is %q", state)
			}
			u.overlaid("ALPHA", "OVERLAY-ONE")
			if log := u.must("log", "demo:0"); !strings.Contains(log, "MOCK-REPLY") {
				t.Errorf("the answer is not in the log: %s", log)
			} else if !turnUsage.MatchString(log) {
				t.Errorf("the log does not say what the turn used: %s", log)
			}
			// In the same conversation, and a failure is one.
			out, _ := u.run("send", "demo:0", "--wait", "3m", "--append-system-prompt", "OVERLAY-TWO", "then "+agenttest.WordFail400)
			u.overlaid(agenttest.WordFail400, "OVERLAY-TWO")
			if r := u.asked(agenttest.WordFail400); !strings.Contains(r.UserText(), "ALPHA") {
				t.Errorf("the second turn is in another conversation: %q", r.UserText())
			}
			if out != "failed" {
				t.Errorf("a failing turn is %q", out)
			}
			if log := u.must("log", "demo:0", "--json"); !strings.Contains(log, "mock bad request") {
				t.Errorf("the log does not say why: %s", log)
			}
			// Cancelled: nothing of the agent stays, and it is no success.
			cmd := exec.Command(u.program, "send", "demo:0", "--wait", "3m", "be "+agenttest.WordSlow)
			cmd.Env, cmd.Dir = u.environ, u.project
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			u.asked(agenttest.WordSlow)
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was interrupted
			if log := u.must("log", "demo:0", "--json"); !strings.Contains(log, "cancelled") {
				t.Errorf("the log does not say that the turn was cancelled: %s", log)
			}
			u.until(20*time.Second, "no process of the agent is left", func() bool { return len(u.processes()) == 0 })
		})
	}
}

// processes are the living programs in this user's project directory, whatever
// their names.
func (u *user) processes() []string {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var found []string
	for _, link := range links {
		if dir, err := os.Readlink(link); err == nil && dir == u.project {
			found = append(found, filepath.Dir(link))
		}
	}
	return found
}
