package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cellmux/engine"
	"cellmux/engine/tmux"
)

func TestCodexSeedsAConversationAndResumesIt(t *testing.T) {
	in := newInput(t, false)
	plan := mustPlan(t, "codex", in)
	at := slices.Index(plan.Argv, "resume")
	if at < 0 || plan.Argv[at+1] != in.SessionID || plan.Resume {
		t.Fatalf("a fresh home gives resume %v and %q", plan.Resume, plan.Argv)
	}
	file, err := findRollout(filepath.Join(in.Home, ".codex"), in.SessionID)
	if err != nil || file == "" {
		t.Fatalf("no rollout was seeded: %v", err)
	}
	data, _ := os.ReadFile(file)
	if !strings.Contains(string(data), `"id":"`+in.SessionID+`"`) || strings.Contains(string(data), "history_mode") {
		t.Errorf("the seed is %s", data)
	}
	if !slices.Contains(plan.Argv, "--no-daemon") {
		t.Errorf("a daemon would run a killed pane's turn on: %q", plan.Argv)
	}
	// codex has opened it: it added lines.
	mustWrite(t, file, string(data)+`{"timestamp":"2026-11-30T20:00:00Z","type":"event_msg","payload":{"type":"thread_settings_applied"}}`+"\n")
	if plan = mustPlan(t, "codex", in); !plan.Resume || !slices.Contains(plan.Argv, in.SessionID) {
		t.Errorf("a used conversation gives resume %v and %q", plan.Resume, plan.Argv)
	}
}

func TestCodexThatDoesNotTakeTheSeedGetsAnIDOfItsOwn(t *testing.T) {
	in := newInput(t, false)
	mustPlan(t, "codex", in) // seeds
	plan := mustPlan(t, "codex", in)
	if slices.Contains(plan.Argv, "resume") || plan.Session != "" {
		t.Errorf("the seed was never opened, yet it is resumed: %q", plan.Argv)
	}
	if len(plan.Notes) == 0 {
		t.Error("nothing says so")
	}
	// The hook's ID is then the slot's.
	in.BoundID = "01a22e0f-adc6-7681-b54d-940b28c39e99"
	mustWrite(t, filepath.Join(in.Home, ".codex", "sessions", "2026", "11", "30", "rollout-2026-11-30T20-00-00-"+in.BoundID+".jsonl"), "{}\n{}\n")
	if plan = mustPlan(t, "codex", in); plan.Session != in.BoundID || !plan.Resume {
		t.Errorf("the bound conversation gives session %q resume %v", plan.Session, plan.Resume)
	}
}

func TestCodexIsToldOfAChangedOverlayOnce(t *testing.T) {
	in := newInput(t, false)
	clock := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)
	set := New(Options{Now: func() time.Time { return clock }})
	codex, _ := set.Lookup("codex")
	context := filepath.Join(SlotDir(in.Config), "codex-context.json")
	begun := filepath.Join(SlotDir(in.Config), "spool", "SessionStart.json")
	start := func(prompt string, turn bool) string {
		t.Helper()
		clock = clock.Add(time.Hour)
		in.Prompts.AppendFlagInline = prompt
		plan, err := codex.Plan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		file, _ := findRollout(filepath.Join(in.Home, ".codex"), in.SessionID)
		mustWrite(t, file, "{}\n{}\n") // codex has opened it
		if turn {
			mustWrite(t, begun, `{"session_id":"`+in.SessionID+`"}`)
			at := clock.Add(time.Minute)
			if err := os.Chtimes(begun, at, at); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(context)
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(string(data), "additionalContext"); told != slices.ContainsFunc(plan.Notes, func(n string) bool { return strings.Contains(n, "rides in front") }) {
			t.Errorf("notes %q and context %s do not agree", plan.Notes, data)
		}
		return string(data)
	}
	if got := start("one", true); got != "{}" {
		t.Errorf("the first text goes as developer instructions, not as %s", got)
	}
	if got := start("one", true); got != "{}" {
		t.Errorf("an unchanged text is told again: %s", got)
	}
	if got := start("two", false); !strings.Contains(got, "two") {
		t.Errorf("a changed text is not told: %s", got)
	}
	if got := start("two", true); !strings.Contains(got, "two") {
		t.Errorf("a start without a turn told nobody, so it must be told again: %s", got)
	}
	if got := start("two", true); got != "{}" {
		t.Errorf("what was told is told again: %s", got)
	}
	if got := start("one", true); !strings.Contains(got, "one") {
		t.Errorf("the first text came back and is not told: %s", got)
	}
}

// The hashes are what codex 0.171.0 itself answered to hooks/list.
func TestCodexHookHashIsCodexs(t *testing.T) {
	for _, test := range []struct{ kind, command, want string }{
		{"SessionEnd", "/bin/true", "sha256:42ea3855d592a4e9c9d8c7640bc680f9508c7a4a844ad948af96679e7c62eebe"},
		{"Interrupt", "/bin/true && x", "sha256:35fc42f3210a711bb1fb8d667e8202a4a5144b668cadfdfdd92c614aa0965362"},
	} {
		if got := codexHookHash(test.kind, test.command); got != test.want {
			t.Errorf("%s: hash %s, want %s", test.kind, got, test.want)
		}
	}
}

func codexSight(t *testing.T, in engine.AgentInput, title string, events map[string]string, lines ...string) sight {
	t.Helper()
	mustPlan(t, "codex", in)
	file, err := findRollout(filepath.Join(in.Home, ".codex"), in.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, file, "{}\n"+strings.Join(lines, "\n")+"\n")
	s := New(Options{}).sightOf(Slot{Key: "api-0", Agent: "codex", Config: in.Config, Home: in.Home, SessionID: in.SessionID, Pane: tmux.Pane{Title: title}})
	s.now = time.Now()
	for kind, body := range events {
		mustWrite(t, filepath.Join(s.rooms.spool, kind+".json"), body)
	}
	s.events = readSpool(in.Config.WorkspaceHome, s.rooms.spool, time.Time{})
	return s
}

func TestCodexStatusIsTheRolloutsLevel(t *testing.T) {
	at := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339Nano)
	event := func(payload string) string {
		return fmt.Sprintf(`{"timestamp":%q,"type":"event_msg","payload":%s}`, at, payload)
	}
	started := event(`{"type":"task_started","turn_id":"t"}`)
	prompt := event(`{"type":"user_message","message":"fix it"}`)
	complete := event(`{"type":"task_complete","last_agent_message":"done"}`)
	const asking = "[ ! ] Action Required | fix it | proj"
	asks := map[string]string{"PermissionRequest": `{"tool_name":"Bash","tool_input":{"command":"touch x && date"}}`}
	for _, test := range []struct {
		name, title string
		events      map[string]string
		lines       []string
		want        State
		text        string
	}{
		{"working", "⠙ fix it | proj", nil, []string{started, prompt}, Working, "fix it"},
		{"done", "fix it | proj", nil, []string{started, prompt, complete}, Idle, ""},
		{"interrupted or rejected, where no hook comes", "fix it | proj", nil, []string{started, prompt, event(`{"type":"turn_aborted","reason":"interrupted"}`)}, Idle, ""},
		{"an API error, where no hook comes", "fix it | proj", nil, []string{started, prompt, event(`{"type":"task_complete","error":{"message":"{\"error\":{\"code\":400,\"message\":\"mock bad request\"}}"}}`)}, Failed, "mock bad request"},
		{"a bad key", "x | proj", nil, []string{started, event(`{"type":"task_complete","error":{"message":"unexpected status 401 Unauthorized"}}`)}, LoginNeeded, "unexpected status 401 Unauthorized"},
		{"a question", asking, asks, []string{started, prompt}, Waiting, "Bash: touch x && date"},
		{"a question before the title tells", "⠙ fix it | proj", asks, []string{started, prompt}, Waiting, "Bash: touch x && date"},
		{"a title of a nested program after the turn", asking, nil, []string{started, prompt, complete}, Idle, ""},
		{"a torn last line", "x | proj", nil, []string{started, prompt, complete, `{"timestamp":"2026`}, Idle, ""},
		{"output that quotes an event", "⠙ x | proj", nil, []string{started, prompt, `{"type":"response_item","payload":{"type":"function_call_output","output":"{\"type\":\"event_msg\",\"payload\":{\"type\":\"task_complete\"}}"}}`}, Working, "fix it"},
		{"no turn and no screen", "proj", nil, nil, Unknown, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := codexSight(t, newInput(t, false), test.title, test.events, test.lines...)
			got := observeCodex(s)
			if got.State != test.want || got.Detail+got.Question != test.text {
				t.Errorf("%v detail %q question %q, want %v %q", got.State, got.Detail, got.Question, test.want, test.text)
			}
		})
	}
}

func TestCodexTurnOfAnEarlierProgramIsNotThisOnes(t *testing.T) {
	old := `{"timestamp":"2026-01-01T00:00:00Z","type":"event_msg","payload":{"type":"task_started"}}`
	s := codexSight(t, newInput(t, false), "proj", nil, old)
	s.opened = time.Now()
	if got := observeCodex(s); got.State != Unknown {
		t.Errorf("a turn that a killed program began is %v", got.State)
	}
}
