package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/tmux"
)

// others are IDs as each agent gives them to a conversation that the user begins
// inside it.
var others = map[string]string{
	"claude":   "0f3f8a52-7a4e-4c0b-9f7e-2a1b3c4d5e6f",
	"codex":    "01a22e0f-adc6-7681-b54d-940b28c39e99",
	"gemini":   "9b0c3f1e-1111-4222-8333-444455556666",
	"opencode": "ses_5f0a1b2c3ffeAbCdEfGhIjKlMn",
}

func TestStrangeSessionIDsAreAsGoodAsNone(t *testing.T) {
	for name, id := range others {
		a, _ := New(Options{}).Lookup(name)
		if !a.ValidSession(id) || !a.ValidSession(a.OwnSession("8a5bfae0-9a24-5dcf-9a2f-111111111111")) {
			t.Errorf("%s: its own IDs are refused", name)
		}
		for _, strange := range []string{
			"", " ", "--dangerously-skip-permissions", "-c", "../../../etc/passwd", "a/b", id + "\n", "\n" + id, id + " --x", id + "\x00",
			id + ";rm -rf ~", "$(id)", "ses_", "ses_../x", "ses_" + strings.Repeat("a", 65), strings.Repeat("0", 36), id[:8], "*", "\x1b]0;x\a",
		} {
			if a.ValidSession(strange) {
				t.Errorf("%s takes %q for an ID", name, strange)
			}
			// One that came into the database all the same reaches no command line.
			if strange == "" {
				continue
			}
			in := newInput(t, false)
			in.BoundID = strange
			if plan, err := a.Plan(t.Context(), in); err == nil {
				t.Errorf("%s: %q becomes %q", name, strange, plan.Argv)
			}
		}
	}
}

// observed is what a watcher says of a slot of the input, by what lies in its
// files.
func observed(t *testing.T, name string, in engine.AgentInput, pane tmux.Pane, o WatchOptions) Status {
	t.Helper()
	if o.Opened == nil {
		o.Opened = func(int) (time.Time, bool) { return time.Time{}, false }
	}
	w := New(Options{}).Watch(o)
	w.Observe([]Slot{{Key: "x", Agent: name, Config: in.Config, Home: in.Home, SessionID: in.SessionID, BoundID: in.BoundID, Pane: pane}})
	w.Read(t.Context())
	return w.Status("x")
}

func TestAConversationThatWasBegunInsideTheAgentIsTold(t *testing.T) {
	for name, id := range others {
		t.Run(name, func(t *testing.T) {
			in := newInput(t, true)
			mustPlan(t, name, in)
			a, _ := New(Options{}).Lookup(name)
			pane := tmux.Pane{ID: "%1", Title: "◇  Ready (api-0)"}
			spool := roomsOf(in).spool
			capture := WatchOptions{}
			switch name {
			case "claude":
				mustWrite(t, filepath.Join(spool, "SessionStart.json"), `{"session_id":"`+id+`","source":"clear"}`)
				mustWrite(t, filepath.Join(in.Home, ".claude", "sessions", "7.json"), `{"pid":7,"sessionId":"`+id+`","status":"idle","kind":"interactive"}`)
			case "codex":
				rollout := codexRolloutWith(t, in, id, `"cli"`)
				mustWrite(t, filepath.Join(spool, "SessionStart.json"), fmt.Sprintf(`{"session_id":%q,"transcript_path":%q,"source":"clear"}`, id, inGuest(in, rollout)))
			case "gemini":
				mustWrite(t, filepath.Join(spool, "SessionStart.json"), `{"session_id":"`+id+`","source":"clear"}`)
				mustWrite(t, filepath.Join(spool, "BeforeAgent.json"), `{"session_id":"`+id+`"}`)
				mustWrite(t, filepath.Join(spool, "AfterAgent.json"), `{"session_id":"`+id+`"}`)
			case "opencode":
				mustWrite(t, filepath.Join(spool, "opencode.json"), `{"pid":1,"current":"`+id+`","sessions":{"`+id+`":{"status":"idle","began":1000,"ended":2000}}}`)
			}
			status := observed(t, name, in, pane, capture)
			bound := a.OwnSession(in.SessionID)
			if status.Session != id || !status.Follow(bound) {
				t.Errorf("%+v is not followed to %s", status, id)
			}
			// Once it is bound there is nothing to follow, and the next start resumes it.
			if status.Follow(id) {
				t.Error("it is followed again and again")
			}
			in.BoundID = id
			if plan := mustPlan(t, name, in); plan.Session != id || !slices.ContainsFunc(plan.Argv, func(word string) bool { return strings.Contains(word, id) }) {
				t.Errorf("the next start is %q in %q", plan.Argv, plan.Session)
			}
		})
	}
}

// codexRolloutWith writes a rollout with one finished turn.
func codexRolloutWith(t *testing.T, in engine.AgentInput, id, source string) string {
	t.Helper()
	file := filepath.Join(in.Home, ".codex", "sessions", "2026", "11", "30", "rollout-2026-11-30T20-00-00-"+id+".jsonl")
	mustWrite(t, file, `{"type":"session_meta","payload":{"id":"`+id+`","source":`+source+`}}`+"\n"+
		`{"timestamp":"2026-11-30T20:00:01Z","type":"event_msg","payload":{"type":"task_started"}}`+"\n"+
		`{"timestamp":"2026-11-30T20:00:02Z","type":"event_msg","payload":{"type":"task_complete"}}`+"\n")
	return file
}

// inGuest is a path of a guest's home as the guest sees it.
func inGuest(in engine.AgentInput, host string) string { return roomsOf(in).inside(host) }

func TestAGuestThatForgesAConversationIsNotFollowed(t *testing.T) {
	const id = "0f3f8a52-7a4e-4c0b-9f7e-2a1b3c4d5e6f"
	for name, forge := range map[string]func(t *testing.T, in engine.AgentInput) string{
		"claude, an ID that would be a flag": func(t *testing.T, in engine.AgentInput) string {
			mustWrite(t, filepath.Join(roomsOf(in).spool, "SessionStart.json"), `{"session_id":"--dangerously-skip-permissions","source":"clear"}`)
			mustWrite(t, filepath.Join(in.Home, ".claude", "sessions", "7.json"), `{"pid":7,"sessionId":"--dangerously-skip-permissions","status":"idle"}`)
			return "claude"
		},
		"codex, a rollout outside of its home": func(t *testing.T, in engine.AgentInput) string {
			mustWrite(t, filepath.Join(roomsOf(in).spool, "SessionStart.json"), fmt.Sprintf(`{"session_id":%q,"transcript_path":"/etc/rollout-x-%s.jsonl"}`, id, id))
			return "codex"
		},
		"codex, a rollout that does not exist": func(t *testing.T, in engine.AgentInput) string {
			mustWrite(t, filepath.Join(roomsOf(in).spool, "SessionStart.json"), fmt.Sprintf(`{"session_id":%q,"transcript_path":"/home/dev/.codex/sessions/rollout-x-%s.jsonl"}`, id, id))
			return "codex"
		},
		"codex, the rollout of another conversation": func(t *testing.T, in engine.AgentInput) string {
			file := codexRolloutWith(t, in, others["codex"], `"cli"`)
			mustWrite(t, filepath.Join(roomsOf(in).spool, "SessionStart.json"), fmt.Sprintf(`{"session_id":%q,"transcript_path":%q}`, id, inGuest(in, file)))
			return "codex"
		},
		"codex, a subagent's thread": func(t *testing.T, in engine.AgentInput) string {
			file := codexRolloutWith(t, in, id, `{"subagent":"review"}`)
			mustWrite(t, filepath.Join(roomsOf(in).spool, "SessionStart.json"), fmt.Sprintf(`{"session_id":%q,"transcript_path":%q}`, id, inGuest(in, file)))
			return "codex"
		},
		"gemini, a gemini that runs as a tool": func(t *testing.T, in engine.AgentInput) string {
			for _, kind := range []string{"SessionStart", "BeforeAgent", "AfterAgent"} {
				mustWrite(t, filepath.Join(roomsOf(in).spool, kind+".json"), `{"session_id":"`+id+`","source":"startup"}`)
			}
			return "gemini"
		},
		"opencode, a path": func(t *testing.T, in engine.AgentInput) string {
			mustWrite(t, filepath.Join(roomsOf(in).spool, "opencode.json"), `{"current":"ses_/../../x","sessions":{"ses_/../../x":{"status":"idle","began":1,"ended":2}}}`)
			return "opencode"
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t, true)
			agent := forge(t, in)
			mustPlan(t, agent, in)
			a, _ := New(Options{}).Lookup(agent)
			status := observed(t, agent, in, tmux.Pane{ID: "%1", Title: "◇  Ready (api-0)"}, WatchOptions{})
			if status.Follow(a.OwnSession(in.SessionID)) {
				t.Errorf("it is followed: %+v", status)
			}
			set := New(Options{})
			if last, _ := set.LastSession(Slot{Agent: agent, Config: in.Config, Home: in.Home, SessionID: in.SessionID}); agent != "codex" && last != "" && last != a.OwnSession(in.SessionID) {
				t.Errorf("the next start would follow it to %q", last)
			}
		})
	}
}

func TestAConversationBegunWhileNobodyWatchedIsKnownAtTheNextStart(t *testing.T) {
	for name, id := range others {
		t.Run(name, func(t *testing.T) {
			in := newInput(t, name == "opencode") // on the host it tells only while it runs
			mustPlan(t, name, in)
			slot := Slot{Agent: name, Config: in.Config, Home: in.Home, SessionID: in.SessionID}
			set := New(Options{})
			if last, _ := set.LastSession(slot); last != "" {
				t.Errorf("an agent that said nothing was in %q", last)
			}
			spool := roomsOf(in).spool
			if name == "opencode" {
				file := filepath.Join(spool, "opencode.json")
				mustWrite(t, file, `{"current":"`+id+`","sessions":{"`+id+`":{"status":"idle","parent":"ses_parent00"}}}`)
				if last, _ := set.LastSession(slot); last != "" {
					t.Errorf("a subagent's conversation is the last: %q", last)
				}
				mustWrite(t, file, `{"current":"`+id+`","sessions":{"`+id+`":{"status":"idle","began":1}}}`)
				if last, adopted := set.LastSession(slot); last != id || adopted {
					t.Errorf("it was last in %q (adopted %v), want %s", last, adopted, id)
				}
				old := time.Now().Add(-time.Hour)
				if err := os.Chtimes(file, old, old); err != nil {
					t.Fatal(err)
				}
				if last, _ := set.LastSession(slot); last != "" {
					t.Errorf("the file of an earlier start tells %q", last)
				}
				return
			}
			mustWrite(t, filepath.Join(spool, "Stop.json"), `{"session_id":"`+in.SessionID+`"}`)
			before := time.Now().Add(-time.Minute)
			if err := os.Chtimes(filepath.Join(spool, "Stop.json"), before, before); err != nil {
				t.Fatal(err)
			}
			mustWrite(t, filepath.Join(spool, "SessionStart.json"), `{"session_id":"`+id+`","source":"clear"}`)
			if last, adopted := set.LastSession(slot); last != id || adopted {
				t.Errorf("it was last in %q (adopted %v), want %s", last, adopted, id)
			}
		})
	}
}

func TestAnIDThatWasReservedAndNeverAnsweredIsStartedAgain(t *testing.T) {
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t, false)
			first := mustPlan(t, name, in)
			// Killed before its first prompt. gemini and codex leave a file by then.
			switch name {
			case "gemini":
				mustWrite(t, filepath.Join(roomsOf(in).slot, "gemini", ".gemini", "tmp", "proj", "chats", "session-2026-11-30T20-00-"+in.SessionID[:8]+".jsonl"), `{"sessionId":"`+in.SessionID+`"}`+"\n")
			case "codex":
				file, err := findRollout(filepath.Join(in.Home, ".codex"), in.SessionID)
				if err != nil {
					t.Fatal(err)
				}
				data, _ := os.ReadFile(file)
				mustWrite(t, file, string(data)+`{"type":"event_msg","payload":{"type":"thread_settings_applied"}}`+"\n")
			}
			again := mustPlan(t, name, in)
			a, _ := New(Options{}).Lookup(name)
			if id := a.OwnSession(in.SessionID); first.Session != id || again.Session != id {
				t.Errorf("the sessions are %q and %q, want %q both times", first.Session, again.Session, id)
			}
			joined := strings.Join(again.Argv, " ")
			switch name {
			case "claude":
				if !strings.Contains(joined, "--session-id "+in.SessionID) {
					t.Errorf("claude has no transcript to resume: %q", again.Argv)
				}
			case "gemini":
				// gemini refuses the ID as new and as known while the file is there.
				if !strings.Contains(joined, "--session-id "+in.SessionID) {
					t.Errorf("gemini has no answer to resume: %q", again.Argv)
				}
				if chats, _ := geminiChats(filepath.Join(roomsOf(in).slot, "gemini", ".gemini"), in.SessionID); len(chats) != 0 {
					t.Errorf("the file in the way is still there: %q", chats)
				}
			}
		})
	}
}

func TestAnAgentUpgradedMeanwhileKeepsItsConversation(t *testing.T) {
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(name, func(t *testing.T) {
			a, _ := New(Options{}).Lookup(name)
			path, count := program(t, "--help\n"+strings.Join(a.flags, "\n"), a.verified)
			set := New(Options{Runner: proc.New(), Environ: []string{"PATH=/usr/bin:/bin"}})
			a, _ = set.Lookup(name)
			in := newInput(t, false)
			in.Program = path
			first, err := a.Plan(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			// The conversation is used, then the program is replaced by a later one
			// that knows none of the flags, and prints another version.
			switch name {
			case "claude":
				mustWrite(t, filepath.Join(in.Home, ".claude", "projects", "-p", in.SessionID+".jsonl"), "{}\n")
			case "codex":
				file, _ := findRollout(filepath.Join(in.Home, ".codex"), in.SessionID)
				data, _ := os.ReadFile(file)
				mustWrite(t, file, string(data)+"{}\n")
			case "gemini":
				mustWrite(t, filepath.Join(roomsOf(in).slot, "gemini", ".gemini", "tmp", "p", "chats", "session-x-"+in.SessionID[:8]+".jsonl"), `{"type":"gemini","content":"hi"}`+"\n")
			case "opencode":
				mustWrite(t, filepath.Join(roomsOf(in).slot, "opencode-imported-"+first.Session), "")
				mustWrite(t, filepath.Join(in.Home, ".local", "share", "opencode", "opencode.db"), "")
			}
			later, _ := program(t, "--help", "99.0.0")
			data, _ := os.ReadFile(later)
			if err := os.WriteFile(path, data, 0o700); err != nil {
				t.Fatal(err)
			}
			second, err := a.Plan(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if !second.Resume || second.Session != first.Session || !slices.ContainsFunc(second.Argv, func(word string) bool { return word == first.Session }) {
				t.Errorf("after the upgrade: resume %v, session %q, %q", second.Resume, second.Session, second.Argv)
			}
			if len(a.flags) > 0 {
				if p := a.Probe(t.Context(), path); p.Standing != Newer || len(p.Missing) != len(a.flags) {
					t.Errorf("the new binary was not asked: %+v", p)
				}
				if asked, _ := os.ReadFile(count); strings.Count(string(asked), "--help") != 1 {
					t.Errorf("the old one was asked %q", asked)
				}
			}
		})
	}
}
