package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cellmux/engine/tmux"
)

// geminiSight is what is seen of a gemini that began a turn and ended it, with a
// title and the rows of a screen.
func geminiSight(t *testing.T, title string, rows []string) sight {
	t.Helper()
	in := newInput(t, false)
	mustPlan(t, "gemini", in)
	s := New(Options{}).sightOf(Slot{Key: "api-0", Agent: "gemini", Config: in.Config, Home: in.Home, SessionID: in.SessionID, Pane: tmux.Pane{ID: "%1", Title: title}})
	s.now = time.Now()
	s.opened = s.now.Add(-time.Hour)
	s.screen = func() []string { return rows }
	long := s.now.Add(-time.Minute)
	s.events = events{
		"SessionStart": {kind: "SessionStart", at: long.Add(-time.Second)},
		"BeforeAgent":  {kind: "BeforeAgent", at: long, body: hookBody{Prompt: "fix it"}},
		"AfterAgent":   {kind: "AfterAgent", at: long.Add(time.Second), body: hookBody{PromptResponse: "done"}},
	}
	return s
}

func TestGeminiStatusIsTheTitlesLevel(t *testing.T) {
	idle, permission := screen(t, "gemini-idle").Rows, screen(t, "gemini-permission").Rows
	for _, c := range []struct {
		name, title string
		rows        []string
		want        State
		text        string
	}{
		{"ready", "◇  Ready (proj)                    ", idle, Idle, ""},
		{"working", "✦  Working… (proj)                  ", screen(t, "gemini-busy").Rows, Working, "fix it"},
		{"still working", "⏲  Working… (proj)", idle, Working, "fix it"},
		{"asks", "✋  Action Required (proj)", permission, Waiting, "? Shell touch made-by-tool && date touch made-by-tool && date Allow execution of [Shell]?"},
		{"a directory that says something else", "◇  Ready (✦  Working… (x))", idle, Idle, ""},
		// A program that gemini runs, or one that was run before, may set a title of
		// its own. It is believed in nothing; the screen has the word.
		{"a nested program's title over its box", "vim ✦ Working (proj)", idle, Unknown, ""},
		{"a nested program's title over a question", "✦  Working…", permission, Waiting, "? Shell touch made-by-tool && date touch made-by-tool && date Allow execution of [Shell]?"},
		{"a title within another", "bash: ◇  Ready (proj)", idle, Unknown, ""},
		{"words after it", "◇  Ready (proj) and more", idle, Unknown, ""},
		{"a title of another agent", "✳ claude", idle, Unknown, ""},
		{"no title and nothing to see", "", nil, Unknown, ""},
		{"control characters", "◇  Ready (pr\x1boj)\n", idle, Idle, ""},
	} {
		s := geminiSight(t, c.title, c.rows)
		if got := observeGemini(s); got.State != c.want || got.Detail+got.Question != c.text {
			t.Errorf("%s: %v (%s) detail %q question %q, want %v %q", c.name, got.State, got.Source, got.Detail, got.Question, c.want, c.text)
		}
	}
}

func TestGeminiBetweenHookAndTitle(t *testing.T) {
	idle := screen(t, "gemini-idle").Rows
	// The hook of a turn's beginning is there at once, the title up to a second
	// and a half later.
	s := geminiSight(t, "◇  Ready (proj)", idle)
	s.events["BeforeAgent"] = event{kind: "BeforeAgent", at: s.now.Add(-time.Second), body: hookBody{Prompt: "next"}}
	if got := observeGemini(s); got.State != Working || got.Detail != "next" {
		t.Errorf("right after its beginning a turn is %+v", got)
	}
	// Once the title has told of the turn, Ready is no leftover: a rejection that no
	// hook tells is seen at once.
	before := observeGemini(s)
	for _, told := range []string{"✦  Working… (proj)", "✋  Action Required (proj)"} {
		s.before, s.slot.Pane.Title = before, told
		s.before = observeGemini(s)
		s.slot.Pane.Title = "◇  Ready (proj)"
		if got := observeGemini(s); got.State != Idle {
			t.Errorf("after %q and a rejection within two seconds it is %+v", told, got)
		}
	}
	s.before = before
	if got := observeGemini(s); got.State != Working {
		t.Errorf("before the title told of the turn it is %+v", got)
	}
	// A title that says Ready longer than that is right: the turn was rejected or
	// interrupted, which no hook tells.
	s.events["BeforeAgent"] = event{kind: "BeforeAgent", at: s.now.Add(-3 * time.Second), body: hookBody{Prompt: "next"}}
	if got := observeGemini(s); got.State != Idle {
		t.Errorf("after a rejection that no hook tells it is %+v", got)
	}
	s.events["AfterAgent"] = event{kind: "AfterAgent", at: s.now, body: hookBody{PromptResponse: "answer"}}
	if got := observeGemini(s); got.State != Idle || got.Reply != "answer" || !got.TurnEnded.Equal(s.now) {
		t.Errorf("after the turn's end it is %+v", got)
	}

	// The question's hook comes before the title, and is believed as long.
	ask := hookBody{}
	ask.Details.Title, ask.Details.Command = "Shell", "rm -rf dist"
	s = geminiSight(t, "✦  Working… (proj)", idle)
	s.events["Notification"] = event{kind: "Notification", at: s.now.Add(-time.Second), body: ask}
	if got := observeGemini(s); got.State != Waiting || got.Question != "Shell: rm -rf dist" {
		t.Errorf("right after the question it is %+v", got)
	}
	s.events["Notification"] = event{kind: "Notification", at: s.now.Add(-3 * time.Second), body: ask}
	if got := observeGemini(s); got.State != Working {
		t.Errorf("a question that the title does not know of any more is %+v", got)
	}
	s.slot.Pane.Title = "✋  Action Required (proj)"
	if got := observeGemini(s); got.State != Waiting || got.Question != "Shell: rm -rf dist" {
		t.Errorf("a question that the title knows of is %+v", got)
	}
	// One of an earlier turn does not lend its words to this one's.
	s.events["BeforeAgent"] = event{kind: "BeforeAgent", at: s.now.Add(-time.Second)}
	s.screen = func() []string { return screen(t, "gemini-permission").Rows }
	if got := observeGemini(s); got.State != Waiting || got.Question == "Shell: rm -rf dist" || got.Question == "" {
		t.Errorf("a new question has the words of the old one: %+v", got)
	}
}

func TestGeminiThatStartsIsNotReady(t *testing.T) {
	idle := screen(t, "gemini-idle").Rows
	// Dialogs of a start say Ready in the title.
	s := geminiSight(t, "◇  Ready (proj)", []string{"Do you trust this folder?", "● 1. Trust folder (proj)", "  2. Don't trust"})
	s.events = events{}
	if got := observeGemini(s); got.State != Waiting {
		t.Errorf("a dialog of the start is %+v", got)
	}
	s.screen = func() []string {
		return []string{"How would you like to authenticate for this project?", "● 1. Login with Google", "  2. Use Gemini API Key"}
	}
	if got := observeGemini(s); got.State != LoginNeeded {
		t.Errorf("the login is %+v", got)
	}
	// The box is drawn before it takes text: the start's hook tells when it does.
	s.screen = func() []string { return idle }
	s.opened = s.now.Add(-5 * time.Second)
	if got := observeGemini(s); got.State != Unknown {
		t.Errorf("a box without the start's hook is %+v", got)
	}
	s.events = events{"SessionStart": {kind: "SessionStart", at: s.now}}
	if got := observeGemini(s); got.State != Idle {
		t.Errorf("a box after the start's hook is %+v", got)
	}
	// A resumed conversation empties the box when it comes.
	s.launch.Resumed = true
	if got := observeGemini(s); got.State != Unknown {
		t.Errorf("a resumed box without its old messages is %+v", got)
	}
	s.screen = func() []string { return append([]string{"✦ what it said before"}, idle...) }
	if got := observeGemini(s); got.State != Idle {
		t.Errorf("a resumed box with its old messages is %+v", got)
	}
}

// An ID in limbo (killed before the first prompt, first turn failed) is refused
// by gemini both as new and as known, until its file is gone.
func TestGeminiIDInLimboIsStartedAgain(t *testing.T) {
	in := newInput(t, false)
	chat := filepath.Join(SlotDir(in.Config), "gemini", ".gemini", "tmp", "proj", "chats", "session-2026-12-01T00-00-"+in.SessionID[:8]+".jsonl")
	has := func(flag string) bool {
		argv := mustPlan(t, "gemini", in).Argv
		for i, arg := range argv {
			if arg == flag {
				return argv[i+1] == in.SessionID
			}
		}
		return false
	}
	if !has("--session-id") {
		t.Error("a fresh home does not begin the conversation")
	}
	for _, limbo := range []string{"", `{"type":"user","content":"hi"}` + "\n", `{"type":"user"}` + "\n" + `{"type":"gemini","content":""}` + "\n", `{"type":"user"}` + "\n" + `{"type":"error","content":"boom"}` + "\n"} {
		mustWrite(t, chat, limbo)
		if !has("--session-id") {
			t.Errorf("a chat that holds %q is resumed", limbo)
		}
		if _, err := os.Lstat(chat); !os.IsNotExist(err) {
			t.Errorf("the chat that holds %q is in the way still: %v", limbo, err)
		}
	}
	mustWrite(t, chat, `{"type":"user"}`+"\n"+`{"type":"gemini","content":"hello"}`+"\n")
	if !has("--resume") {
		t.Error("an answered conversation is not resumed")
	}
}
