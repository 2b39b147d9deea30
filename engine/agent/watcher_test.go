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
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return w
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
