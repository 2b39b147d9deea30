package agent

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/tmux"
)

// The limits within which a status follows its source.
const (
	fileLimit  = 500 * time.Millisecond // files and HTTP
	titleLimit = 300 * time.Millisecond // of a title, once tmux has told it, which may take 1.2 s
)

// within does something to a source and measures until the watcher's status is
// the wanted one.
func within(t *testing.T, limit time.Duration, w *Watcher, what string, want State, do func()) {
	t.Helper()
	before := time.Now()
	do()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for w.Status("x").State != want {
		if time.Since(before) > 30*time.Second {
			t.Fatalf("%s: never %v: %+v", what, want, w.Status("x"))
		}
		<-tick.C
	}
	if took := time.Since(before); took > limit {
		t.Errorf("%s: %v after %s, want within %s", what, want, took, limit)
	} else {
		t.Logf("%s: %v after %s", what, want, took.Round(time.Millisecond))
	}
}

// watching is a running watcher of one slot of the input, which has read it once.
func watching(t *testing.T, name string, in engine.AgentInput, pane tmux.Pane) (*Watcher, Slot) {
	t.Helper()
	needNotifications(t)
	w := startWatcher(t, WatchOptions{Opened: func(int) (time.Time, bool) { return time.Time{}, false }})
	slot := Slot{Key: "x", Agent: name, Config: in.Config, Home: in.Home, SessionID: in.SessionID, Pane: pane}
	w.Observe([]Slot{slot})
	// Its directories are watched once their first look is done.
	eventually(t, 30*time.Second, "the first look", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.dirs) > 0 })
	return w, slot
}

// needNotifications skips a test where the file system tells nothing: one user may
// have a limited number of listeners, and programs of any project hold them.
func needNotifications(t *testing.T) {
	t.Helper()
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		t.Skip("needs notifications of the file system: ", err)
	}
	_ = notify.Close()
}

func TestAFileReachesTheStatusWithinHalfASecond(t *testing.T) {
	turn := func(kind string) string {
		return fmt.Sprintf(`{"timestamp":%q,"type":"event_msg","payload":{"type":%q}}`+"\n", time.Now().UTC().Format(time.RFC3339Nano), kind)
	}
	for name, run := range map[string]func(t *testing.T, in engine.AgentInput){
		"claude's registry": func(t *testing.T, in engine.AgentInput) {
			mustPlan(t, "claude", in)
			file := filepath.Join(in.Home, ".claude", "sessions", "9.json")
			entry := func(word string) func() {
				return func() { mustWrite(t, file, `{"pid":9,"sessionId":"`+in.SessionID+`","status":"`+word+`"}`) }
			}
			entry("idle")()
			w, _ := watching(t, "claude", in, tmux.Pane{ID: "%1"})
			for _, next := range []struct {
				word string
				want State
			}{{"busy", Working}, {"waiting", Waiting}, {"idle", Idle}} {
				within(t, fileLimit, w, next.word, next.want, entry(next.word))
			}
		},
		"codex's rollout and hook": func(t *testing.T, in engine.AgentInput) {
			mustPlan(t, "codex", in)
			file, err := findRollout(filepath.Join(in.Home, ".codex"), in.SessionID)
			if err != nil {
				t.Fatal(err)
			}
			add := func(text string) func() {
				return func() {
					f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					if _, err := f.WriteString(text); err != nil {
						t.Fatal(err)
					}
				}
			}
			w, _ := watching(t, "codex", in, tmux.Pane{ID: "%1"})
			within(t, fileLimit, w, "a turn", Working, add(turn("task_started")))
			within(t, fileLimit, w, "a question", Waiting, func() {
				mustWrite(t, filepath.Join(roomsOf(in).spool, "PermissionRequest.json"), `{"tool_name":"Bash","tool_input":{"command":"x"}}`)
			})
			within(t, fileLimit, w, "its end", Idle, add(turn("task_complete")))
			within(t, fileLimit, w, "the next turn", Working, add(turn("task_started")))
			within(t, fileLimit, w, "an Esc", Idle, add(turn("turn_aborted")))
		},
		"gemini's hook": func(t *testing.T, in engine.AgentInput) {
			mustPlan(t, "gemini", in)
			spool := roomsOf(in).spool
			w, _ := watching(t, "gemini", in, tmux.Pane{ID: "%1", Title: "✦  Working… (demo)"})
			mustWrite(t, filepath.Join(spool, "BeforeAgent.json"), `{"prompt":"x"}`)
			eventually(t, 30*time.Second, "working", func() bool { return w.Status("x").State == Working })
			within(t, fileLimit, w, "a question", Waiting, func() {
				mustWrite(t, filepath.Join(spool, "Notification.json"), `{"notification_type":"ToolPermission","details":{"title":"Shell","command":"x"}}`)
			})
		},
		"opencode's plugin": func(t *testing.T, in engine.AgentInput) {
			mustPlan(t, "opencode", in)
			id := opencodeSession(in.SessionID)
			write := func(session string) func() {
				return func() {
					mustWrite(t, filepath.Join(roomsOf(in).spool, "opencode.json"), `{"current":"`+id+`","sessions":{"`+id+`":`+session+`}}`)
				}
			}
			w, _ := watching(t, "opencode", in, tmux.Pane{ID: "%1"})
			within(t, fileLimit, w, "a turn", Working, write(`{"status":"busy","began":1}`))
			within(t, fileLimit, w, "a question", Waiting, write(`{"status":"busy","began":1,"questions":{"q":{"kind":"bash","what":"x","asked":2}}}`))
			within(t, fileLimit, w, "its end", Idle, write(`{"status":"idle","began":1,"ended":3}`))
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, newInput(t, true)) })
	}
}

func TestAnAgentThatDoesNotAnswerHoldsUpNoOther(t *testing.T) {
	asked, release := make(chan struct{}, 64), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	defer close(release)
	stuck := newInput(t, false)
	stuck.Config.Cell = "api"
	writeLaunch(t, stuck.Config.WorkspaceHome, launch{Agent: "opencode", Session: opencodeSession(stuck.SessionID), Address: server.URL})

	in := newInput(t, true)
	mustPlan(t, "claude", in)
	file := filepath.Join(in.Home, ".claude", "sessions", "9.json")
	entry := func(word string) func() {
		return func() { mustWrite(t, file, `{"pid":9,"sessionId":"`+in.SessionID+`","status":"`+word+`"}`) }
	}
	entry("idle")()
	needNotifications(t)
	w := startWatcher(t, WatchOptions{Opened: func(int) (time.Time, bool) { return time.Time{}, false }})
	w.Observe([]Slot{
		{Key: "stuck", Agent: "opencode", Config: stuck.Config, Home: stuck.Home, SessionID: stuck.SessionID, Pane: tmux.Pane{ID: "%1", PID: os.Getpid()}},
		{Key: "x", Agent: "claude", Config: in.Config, Home: in.Home, SessionID: in.SessionID, Pane: tmux.Pane{ID: "%2"}},
	})
	eventually(t, 30*time.Second, "idle", func() bool { return w.Status("x").State == Idle })
	<-asked // and is not answered from here on
	for _, next := range []struct {
		word string
		want State
	}{{"busy", Working}, {"waiting", Waiting}, {"idle", Idle}} {
		within(t, fileLimit, w, next.word, next.want, entry(next.word))
	}
	if got := w.Status("stuck").State; got != Unknown {
		t.Errorf("the one that does not answer is %v", got)
	}
}

// The limit of listeners is often reached for a moment only.
func TestNotificationsThatCannotBeHadAtFirstAreAskedForAgain(t *testing.T) {
	needNotifications(t)
	in := newInput(t, true)
	mustPlan(t, "claude", in)
	file := filepath.Join(in.Home, ".claude", "sessions", "9.json")
	entry := func(word string) func() {
		return func() { mustWrite(t, file, `{"pid":9,"sessionId":"`+in.SessionID+`","status":"`+word+`"}`) }
	}
	entry("idle")()
	w := New(Options{}).Watch(WatchOptions{Opened: func(int) (time.Time, bool) { return time.Time{}, false }})
	var asked int
	w.notify = func() (*fsnotify.Watcher, error) {
		if asked++; asked == 1 {
			return nil, errors.New("too many open files")
		}
		return fsnotify.NewWatcher()
	}
	runWatcher(t, w)
	w.Observe([]Slot{{Key: "x", Agent: "claude", Config: in.Config, Home: in.Home, SessionID: in.SessionID, Pane: tmux.Pane{ID: "%1"}}})
	eventually(t, 30*time.Second, "idle, without notifications", func() bool { return w.Status("x").State == Idle })
	eventually(t, 30*time.Second, "notifications", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.dirs) > 0 })
	within(t, fileLimit, w, "busy", Working, entry("busy"))
}

func TestATitleReachesTheStatusInTime(t *testing.T) {
	in := newInput(t, true)
	mustPlan(t, "gemini", in)
	w, slot := watching(t, "gemini", in, tmux.Pane{ID: "%1"})
	past := time.Now().Add(-time.Minute)
	began := filepath.Join(roomsOf(in).spool, "BeforeAgent.json")
	mustWrite(t, began, `{"prompt":"x"}`)
	if err := os.Chtimes(began, past, past); err != nil {
		t.Fatal(err)
	}
	for _, next := range []struct {
		title string
		want  State
	}{{"✦  Working… (demo)", Working}, {"✋  Action Required (demo)", Waiting}, {"◇  Ready (demo)", Idle}} {
		within(t, titleLimit, w, next.title, next.want, func() {
			slot.Pane.Title = next.title
			w.Observe([]Slot{slot})
		})
	}
}

func TestWhatCannotBeBelievedIsUnknownRatherThanWrong(t *testing.T) {
	began := time.Now().Add(-time.Minute)
	past := began.Add(-time.Hour)
	type world struct {
		in    engine.AgentInput
		spool string
		pane  tmux.Pane
	}
	write := func(t *testing.T, file, text string, at time.Time) {
		t.Helper()
		mustWrite(t, file, text)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	registry := func(w *world, pid int) string {
		return filepath.Join(w.in.Home, ".claude", "sessions", fmt.Sprint(pid)+".json")
	}
	rollout := func(t *testing.T, w *world, text string) {
		t.Helper()
		file, err := findRollout(filepath.Join(w.in.Home, ".codex"), w.in.SessionID)
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, file, text)
	}
	for _, test := range []struct {
		name, agent string
		isolated    bool
		do          func(t *testing.T, w *world)
	}{
		{"claude, the registry never comes", "claude", false, func(*testing.T, *world) {}},
		{"claude, a torn registry", "claude", false, func(t *testing.T, w *world) {
			mustWrite(t, registry(w, w.pane.PID), fmt.Sprintf(`{"pid":%d,"status":"busy"`, w.pane.PID))
		}},
		{"claude, a forged entry of another pane's process", "claude", false, func(t *testing.T, w *world) {
			mustWrite(t, registry(w, 1), `{"pid":1,"sessionId":"`+w.in.SessionID+`","status":"busy"}`)
		}},
		{"claude, a forged entry of a guest for another conversation", "claude", true, func(t *testing.T, w *world) {
			mustWrite(t, registry(w, 7), `{"pid":7,"sessionId":"`+others["claude"]+`","status":"busy"}`)
		}},
		{"claude, a registry that is a link out of the home", "claude", true, func(t *testing.T, w *world) {
			away := t.TempDir()
			mustWrite(t, filepath.Join(away, "7.json"), `{"pid":7,"sessionId":"`+w.in.SessionID+`","status":"busy"}`)
			if err := os.MkdirAll(filepath.Join(w.in.Home, ".claude", "sessions"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(away, "7.json"), registry(w, 7)); err != nil {
				t.Fatal(err)
			}
		}},
		{"claude, a dead pid's leftover", "claude", false, func(t *testing.T, w *world) {
			cmd := exec.Command("true")
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			mustWrite(t, registry(w, cmd.Process.Pid), fmt.Sprintf(`{"pid":%d,"procStart":"1","sessionId":%q,"status":"busy"}`, cmd.Process.Pid, w.in.SessionID))
		}},
		{"claude, a leftover whose pid another program has", "claude", false, func(t *testing.T, w *world) {
			mustWrite(t, registry(w, w.pane.PID), fmt.Sprintf(`{"pid":%d,"procStart":"1","sessionId":%q,"status":"busy"}`, w.pane.PID, w.in.SessionID))
		}},
		{"claude, a title of a nested program", "claude", false, func(_ *testing.T, w *world) { w.pane.Title = "[ ! ] Action Required | x" }},

		{"codex, the rollout never comes", "codex", false, func(*testing.T, *world) {}},
		{"codex, a torn rollout", "codex", false, func(t *testing.T, w *world) {
			rollout(t, w, `{"timestamp":"2099-01-01T00:00:00Z","type":"event_msg","payload":{"type":"task_started"}`)
		}},
		{"codex, a forged rollout outside of its home", "codex", true, func(t *testing.T, w *world) {
			away := filepath.Join(t.TempDir(), "rollout-x-"+others["codex"]+".jsonl")
			mustWrite(t, away, `{"timestamp":"2099-01-01T00:00:00Z","type":"event_msg","payload":{"type":"task_started"}}`+"\n")
			mustWrite(t, filepath.Join(w.spool, "SessionStart.json"), fmt.Sprintf(`{"session_id":%q,"transcript_path":%q}`, others["codex"], away))
		}},
		{"codex, the turn of an earlier program", "codex", false, func(t *testing.T, w *world) {
			rollout(t, w, fmt.Sprintf(`{"timestamp":%q,"type":"event_msg","payload":{"type":"task_started"}}`+"\n", past.UTC().Format(time.RFC3339Nano)))
		}},
		{"codex, a title of a nested program", "codex", false, func(_ *testing.T, w *world) { w.pane.Title = "[ ! ] Action Required | x" }},

		{"gemini, no title comes", "gemini", false, func(*testing.T, *world) {}},
		{"gemini, a torn hook", "gemini", false, func(t *testing.T, w *world) {
			mustWrite(t, filepath.Join(w.spool, "Notification.json"), `{"details":{"title":"She`)
		}},
		{"gemini, hooks of an earlier program", "gemini", false, func(t *testing.T, w *world) {
			write(t, filepath.Join(w.spool, "BeforeAgent.json"), `{"prompt":"x"}`, past)
			write(t, filepath.Join(w.spool, "Notification.json"), `{"details":{"title":"Shell"}}`, past)
		}},
		{"gemini, a title that a nested program set", "gemini", false, func(_ *testing.T, w *world) { w.pane.Title = "✋ Action Required" }},
		{"gemini, the title of an editor", "gemini", false, func(_ *testing.T, w *world) { w.pane.Title = "Working… (vim)" }},

		{"opencode, nobody answers", "opencode", false, func(*testing.T, *world) {}},
		{"opencode, another program has the port", "opencode", false, func(t *testing.T, w *world) {
			server := httptest.NewServer(&fakeOpencode{status: `{"x":{"type":"busy"}}`, permission: "[]", messages: "[]", password: "another"})
			t.Cleanup(server.Close)
			writeLaunch(t, w.in.Config.WorkspaceHome, launch{Agent: "opencode", Session: opencodeSession(w.in.SessionID), Address: server.URL, Password: "ours"})
		}},
		{"opencode, a torn answer", "opencode", false, func(t *testing.T, w *world) {
			server := httptest.NewServer(&fakeOpencode{status: `{"x":{"type":`, permission: "[]", messages: "[]"})
			t.Cleanup(server.Close)
			writeLaunch(t, w.in.Config.WorkspaceHome, launch{Agent: "opencode", Session: opencodeSession(w.in.SessionID), Address: server.URL})
		}},
		{"opencode, a forged address of a guest", "opencode", true, func(t *testing.T, w *world) {
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a guest made cellmux call this host") }))
			t.Cleanup(server.Close)
			writeLaunch(t, w.in.Config.WorkspaceHome, launch{Agent: "opencode", Session: opencodeSession(w.in.SessionID), Address: server.URL})
		}},
		{"opencode, a torn plugin's file", "opencode", true, func(t *testing.T, w *world) {
			mustWrite(t, filepath.Join(w.spool, "opencode.json"), `{"current":"x","sessions":{"x":{"status":"busy"`)
		}},
		{"opencode, the file of an earlier plugin", "opencode", true, func(t *testing.T, w *world) {
			id := opencodeSession(w.in.SessionID)
			write(t, filepath.Join(w.spool, "opencode.json"), `{"current":"`+id+`","sessions":{"`+id+`":{"status":"busy","began":1}}}`, past)
		}},
		{"opencode, a title of a nested program", "opencode", true, func(_ *testing.T, w *world) { w.pane.Title = "OC | [ ! ] Action Required" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &world{in: newInput(t, test.isolated), pane: tmux.Pane{ID: "%1", PID: os.Getpid()}}
			w.spool = roomsOf(w.in).spool
			mustPlan(t, test.agent, w.in)
			test.do(t, w)
			status := observed(t, test.agent, w.in, w.pane, WatchOptions{Opened: func(int) (time.Time, bool) { return began, true }})
			if status.State != Unknown || status.Question != "" || status.Detail != "" {
				t.Errorf("it is %v (%q, %q) by %s", status.State, status.Detail, status.Question, status.Source)
			}
			if strings.Contains(status.Source, "activity") {
				t.Errorf("it was guessed from %s", status.Source)
			}
		})
	}
	if _, err := proc.StartTime(os.Getpid()); err != nil {
		t.Log("without a process table the registry's entries are all unknown: ", err)
	}
}
