package agent

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/engine/tmux"
)

// eventually waits for a condition; what fails is named.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
		<-tick.C
	}
}

func startWatcher(t *testing.T, o WatchOptions) *Watcher {
	t.Helper()
	w := New(Options{}).Watch(o)
	runWatcher(t, w)
	return w
}

func runWatcher(t *testing.T, w *Watcher) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func TestWatcherTellsAChangedFile(t *testing.T) {
	in := newInput(t, true)
	mustPlan(t, "claude", in)
	file := filepath.Join(in.Home, ".claude", "sessions", "9.json")
	mustWrite(t, file, `{"pid":9,"sessionId":"`+in.SessionID+`","status":"idle"}`)
	w := startWatcher(t, WatchOptions{Opened: func(int) (time.Time, bool) { return time.Time{}, false }})
	w.Observe([]Slot{{Key: "api-0", Agent: "claude", Config: in.Config, Home: in.Home, SessionID: in.SessionID, Pane: tmux.Pane{ID: "%1"}}})
	eventually(t, 30*time.Second, "idle", func() bool { return w.Status("api-0").State == Idle })
	for _, next := range []struct {
		word string
		want State
	}{{"busy", Working}, {"waiting", Waiting}, {"idle", Idle}} {
		select {
		case <-w.Changes():
		default:
		}
		mustWrite(t, file, `{"pid":9,"sessionId":"`+in.SessionID+`","status":"`+next.word+`"}`)
		eventually(t, 30*time.Second, next.word, func() bool { return w.Status("api-0").State == next.want })
		select {
		case <-w.Changes():
		case <-time.After(30 * time.Second):
			t.Fatal("no change was told")
		}
	}
	w.Observe([]Slot{{Key: "api-0", Agent: "claude", Config: in.Config, Pane: tmux.Pane{ID: "%1", Dead: true}}})
	eventually(t, 30*time.Second, "ended", func() bool { return w.Status("api-0").State == Ended })
	w.Observe(nil)
	eventually(t, 30*time.Second, "unknown without a pane", func() bool { return w.Status("api-0").State == Unknown })
}

func TestSpoolCommandHandsOverAWholeFileThroughAnySh(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's a $HOME `dir`")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"prompt":"one"}`, `{"prompt":"two"}`} {
		cmd := exec.Command("sh", "-c", spoolCommand(dir, "Stop"))
		cmd.Env = []string{"PATH=/usr/bin:/bin"}
		cmd.Stdin = strings.NewReader(body)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v: %s", err, out)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "Stop.json" {
		t.Fatalf("the spool holds %v (%v), want the newest of each kind alone", entries, err)
	}
	if got := readSpool(dir, dir, time.Time{})["Stop"].body.Prompt; got != "two" {
		t.Errorf("read %q", got)
	}
	if info, _ := entries[0].Info(); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestSpoolIsReadAsHostileInput(t *testing.T) {
	top := t.TempDir()
	spool := filepath.Join(top, "spool")
	secret := filepath.Join(t.TempDir(), "secret.json")
	mustWrite(t, secret, `{"prompt":"stolen"}`)
	mustWrite(t, filepath.Join(spool, "Good.json"), `{"prompt":"good"}`)
	mustWrite(t, filepath.Join(spool, "Torn.json"), `{"prompt":"to`)
	mustWrite(t, filepath.Join(spool, "Huge.json"), `{"prompt":"`+strings.Repeat("x", maxFile)+`"}`)
	mustWrite(t, filepath.Join(spool, "Old.json"), `{"prompt":"old"}`)
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(spool, "Old.json"), past, past); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(spool, "Link.json")); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("mkfifo", filepath.Join(spool, "Pipe.json")).Run(); err != nil {
		t.Skip("needs mkfifo: ", err)
	}
	got := readSpool(top, spool, time.Now().Add(-time.Minute))
	if len(got) != 1 || got["Good"].body.Prompt != "good" {
		t.Errorf("read %v, want Good alone", got)
	}
	// A spool that is itself a link out of the home is not read.
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(top, "away")); err != nil {
		t.Fatal(err)
	}
	if got := readSpool(top, filepath.Join(top, "away"), time.Time{}); len(got) != 0 {
		t.Errorf("read %v through a link out of the home", got)
	}
}

func TestLinesOfAStatusAreSafeToDraw(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb\tc":                    "a b c",
		"\x1b]0;title\x07x":          "]0;titlex",
		"\u202edesrever":             "desrever",
		"ok\u009b31m":                "ok31m",
		"\xff\xfebroken":             "broken",
		strings.Repeat("é", maxLine): strings.Repeat("é", maxLine/2) + "…",
	} {
		if got := line(in); got != want {
			t.Errorf("line(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestUsersOwnAgentIsReadByItsScreenRule(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	rule := ScreenRule{Ready: `^> ?(.*)`, Busy: `^thinking`, Asking: `\(y/n\)`}
	for _, c := range []struct {
		name     string
		rule     ScreenRule
		rows     []string
		printed  time.Duration // ago
		want     State
		question string
	}{
		{"its box", rule, []string{"> "}, 0, Idle, ""},
		{"a turn runs", rule, []string{"thinking", "> "}, time.Hour, Working, ""},
		{"it asks", rule, []string{"old", "Delete x?", "really? (y/n)"}, time.Hour, Waiting, "old Delete x? really? (y/n)"},
		{"colours are no text", rule, []string{"\x1b[31mthink\x1b[0ming"}, time.Hour, Working, ""},
		{"no rule, it prints", ScreenRule{}, []string{"thinking"}, time.Second, Working, ""},
		{"no rule, it is silent", ScreenRule{}, []string{"really? (y/n)"}, time.Minute, Idle, ""},
		{"a rule for questions alone, it prints", ScreenRule{Asking: `\?$`}, []string{"hm"}, time.Second, Working, ""},
		{"a rule for questions alone, it is silent", ScreenRule{Asking: `\?$`}, []string{"hm"}, time.Minute, Idle, ""},
	} {
		set := New(Options{Now: func() time.Time { return now }, Custom: []Custom{{Name: "fable", Command: []string{"fable"}, Screen: c.rule}}})
		in := newInput(t, false)
		w := set.Watch(WatchOptions{
			Now:     func() time.Time { return now },
			Opened:  func(int) (time.Time, bool) { return time.Time{}, false },
			Capture: func(context.Context, string) ([]string, error) { return c.rows, nil },
		})
		w.Observe([]Slot{{Key: "api-0", Agent: "fable", Config: in.Config, Home: in.Home, Pane: tmux.Pane{ID: "%1", Activity: now.Add(-c.printed)}}})
		w.Read(t.Context())
		if got := w.Status("api-0"); got.State != c.want || got.Question != c.question {
			t.Errorf("%s: %v, question %q", c.name, got.State, got.Question)
		}
	}
}

func TestUsersOwnAgentsBoxIsTheRuleFirstGroup(t *testing.T) {
	set := New(Options{Custom: []Custom{{Name: "fable", Command: []string{"fable"}, Screen: ScreenRule{Ready: `^> ?(.*)`, Busy: `^thinking`, Asking: `\(y/n\)`}}}})
	a, _ := set.Lookup("fable")
	for _, c := range []struct {
		rows []string
		want Box
	}{
		{[]string{"> earlier", "Once.", "> "}, Box{Known: true, Ready: true}},
		{[]string{"> earlier", "> half typed  "}, Box{Known: true, Ready: true, Draft: "half typed"}},
		{[]string{"> half", "sure? (y/n)"}, Box{Known: true, Asking: true, Draft: "half", Reason: "it asks a question"}},
		{[]string{"thinking", "> "}, Box{Known: true, Ready: true, Busy: true}}, // although it was idle a moment ago
		{[]string{"starting"}, Box{Known: true, Reason: "its box is not on the screen"}},
	} {
		if got := a.Box(Look{Rows: c.rows}, Status{State: Idle}); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.rows, got, c.want)
		}
	}
}

func TestUsersOwnAgentAnswersByWhatItPrints(t *testing.T) {
	set := New(Options{Custom: []Custom{{Name: "fable", Command: []string{"fable", "-i"}, Headless: []string{"fable", "--once", "{session}"}, Interrupt: []string{"C-c", "C-c"}}}})
	a, _ := set.Lookup("fable")
	in := newInput(t, false)
	in.Headless, in.Program = true, "/usr/bin/fable"
	plan, err := a.Plan(t.Context(), in)
	if want := "/usr/bin/fable --once " + in.SessionID; err != nil || strings.Join(plan.Argv, " ") != want {
		t.Errorf("argv %q, %v, want %q", plan.Argv, err, want)
	}
	for _, c := range []struct {
		printed   string
		exit      int
		cancelled bool
		err       string
	}{
		{"{\"an\": 1}\nanswer\n", 0, false, ""},
		{"half", 4, false, "it ended with exit status 4: the ink is out"},
		{"half", 0, true, "cancelled"},
		{"", 0, false, "it ended without an answer"},
	} {
		reader, err := a.Turn(in.SessionID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reader.Write([]byte(c.printed)); err != nil {
			t.Fatal(err)
		}
		if got := reader.Result(c.exit, "the ink is out", c.cancelled); got.Error != c.err || got.Text != strings.TrimSpace(c.printed) {
			t.Errorf("%q, exit %d: %+v", c.printed, c.exit, got)
		}
	}
	var keys []string
	if err := a.Interrupt(t.Context(), func(_ context.Context, key string) error { keys = append(keys, key); return nil }); err != nil || strings.Join(keys, " ") != "C-c C-c" {
		t.Errorf("%q, %v", keys, err)
	}
}
