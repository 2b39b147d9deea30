package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cellmux/cell"
	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/tmux"
)

// newInput is a plan's input for a slot in a fresh home.
func newInput(t *testing.T, isolated bool) engine.AgentInput {
	t.Helper()
	home := t.TempDir()
	in := engine.AgentInput{
		Config: cfg.Config{
			Workspace: "main", WorkspaceHome: filepath.Join(home, ".devcell", "main"),
			Cell: "api", Slot: 0, ProjectDir: "/home/dev/proj", Engine: "host", HostUser: "dev",
			Guest: cfg.Guest{Kind: "host", Home: home, ProjectDir: "/home/dev/proj"},
		},
		SessionID: cell.SessionID("api-0"),
		Home:      home,
	}
	if isolated {
		in.Config.Guest = cfg.Guest{Isolated: true, Kind: "Docker container", Home: "/home/dev", ProjectDir: "/api-0"}
		in.Config.Engine = "docker"
		in.Home = in.Config.WorkspaceHome
	}
	return in
}

func mustPlan(t *testing.T, name string, in engine.AgentInput) engine.AgentPlan {
	t.Helper()
	a, ok := New(Options{}).Lookup(name)
	if !ok {
		t.Fatalf("no agent %s", name)
	}
	plan, err := a.Plan(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func mustWrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func screen(t *testing.T, name string) Look {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "screens", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return Look{Rows: strings.Split(strings.TrimRight(string(data), "\n"), "\n")}
}

func TestClaudeStartsAnUnusedIDAndResumesOneWithATranscript(t *testing.T) {
	in := newInput(t, false)
	plan := mustPlan(t, "claude", in)
	if plan.Resume || !slices.Contains(plan.Argv, "--session-id") || slices.Contains(plan.Argv, "--resume") {
		t.Errorf("a fresh home gives %q, want a new session", plan.Argv)
	}
	// Started and never answered: the ID is free still.
	if plan = mustPlan(t, "claude", in); plan.Resume {
		t.Errorf("an ID without a transcript is resumed: %q", plan.Argv)
	}
	// The transcript lies under the directory in which it began, which may not be
	// today's.
	mustWrite(t, filepath.Join(in.Home, ".claude", "projects", "-some-other-dir", in.SessionID+".jsonl"), "{}\n")
	plan = mustPlan(t, "claude", in)
	if at := slices.Index(plan.Argv, "--resume"); !plan.Resume || at < 0 || plan.Argv[at+1] != in.SessionID {
		t.Errorf("a transcript gives %q, want --resume %s", plan.Argv, in.SessionID)
	}
}

func TestClaudeFollowsTheConversationThatClearBegan(t *testing.T) {
	in := newInput(t, false)
	in.BoundID = "11111111-2222-4333-8444-555555555555"
	mustWrite(t, filepath.Join(in.Home, ".claude", "projects", "-p", in.SessionID+".jsonl"), "{}\n")
	plan := mustPlan(t, "claude", in)
	if plan.Session != in.BoundID || plan.Resume {
		t.Errorf("an unused new conversation gives session %s resume %v, want the bound one, new", plan.Session, plan.Resume)
	}
	mustWrite(t, filepath.Join(in.Home, ".claude", "projects", "-p", in.BoundID+".jsonl"), "{}\n")
	if plan = mustPlan(t, "claude", in); plan.Session != in.BoundID || !plan.Resume {
		t.Errorf("a used new conversation gives session %s resume %v", plan.Session, plan.Resume)
	}
}

func TestClaudePromptsTravelOnEveryStartAndAreNotFrozen(t *testing.T) {
	in := newInput(t, true)
	plan := mustPlan(t, "claude", in)
	at := slices.Index(plan.Argv, "--append-system-prompt-file")
	if at < 0 || !strings.HasPrefix(plan.Argv[at+1], "/home/dev/") {
		t.Fatalf("no overlay at a path inside the guest: %q", plan.Argv)
	}
	if at := slices.Index(plan.Argv, "--system-prompt-snapshot"); at < 0 || plan.Argv[at+1] != "off" {
		t.Errorf("without --system-prompt-snapshot off a resume sends the first overlay again: %q", plan.Argv)
	}
	if slices.Contains(plan.Argv, "--system-prompt-file") {
		t.Errorf("claude's own prompt is replaced although none is configured: %q", plan.Argv)
	}
}

func TestClaudeIsToldOfTrustOnlyInACellsOwnHome(t *testing.T) {
	host := newInput(t, false)
	mustPlan(t, "claude", host)
	if _, err := os.Stat(filepath.Join(host.Home, ".claude.json")); err == nil {
		t.Error("the user's own settings were written without asking")
	}

	guest := newInput(t, true)
	guest.Env = []string{"ANTHROPIC_API_KEY=sk-ant-0123456789-abcdefghijklmnopqrst"}
	file := filepath.Join(guest.Home, ".claude.json")
	mustWrite(t, file, `{"theme":"light","projects":{"/other":{"x":1}},"unknown":[1,2]}`)
	mustPlan(t, "claude", guest)
	var got map[string]any
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := `map[customApiKeyResponses:map[approved:[abcdefghijklmnopqrst] rejected:[]] hasCompletedOnboarding:true projects:map[/api-0:map[hasCompletedProjectOnboarding:true hasTrustDialogAccepted:true] /other:map[x:1]] theme:light unknown:[1 2]]`
	if fmt.Sprint(got) != want {
		t.Errorf("seeded settings:\n%v\nwant\n%s", got, want)
	}
	if strings.Contains(string(data), "0123456789-a") {
		t.Error("more of the key than claude itself keeps was written")
	}
}

func TestClaudeScreenTellsABoxFromAQuestion(t *testing.T) {
	for _, test := range []struct {
		screen string
		want   Box
	}{
		{"claude-idle", Box{Known: true, Ready: true}},
		{"claude-draft", Box{Known: true, Ready: true, Draft: "half typed"}},
		{"claude-busy", Box{Known: true, Ready: true, Busy: true}},
		{"claude-permission", Box{Known: true, Asking: true, Reason: "it asks a question"}},
	} {
		if got := claudeBox(screen(t, test.screen)); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.screen, got, test.want)
		}
	}
	if got := claudeBox(Look{}); got.Known || got.Ready {
		t.Errorf("no screen: %+v, want unknown", got)
	}
	if got := claudeQuestion(screen(t, "claude-permission").Rows); !strings.Contains(got, "touch made-by-tool && date") || !strings.Contains(got, "Do you want to proceed?") {
		t.Errorf("the question is %q", got)
	}
}

// claudeSight is a sight of a living process: this test itself.
func claudeSight(t *testing.T, in engine.AgentInput, entry string) sight {
	t.Helper()
	mustPlan(t, "claude", in)
	start, err := proc.StartTime(os.Getpid())
	if err != nil {
		t.Skip("needs a process table: ", err)
	}
	entry = strings.NewReplacer("PID", fmt.Sprint(os.Getpid()), "START", fmt.Sprint(start), "SESSION", in.SessionID).Replace(entry)
	mustWrite(t, filepath.Join(in.Home, ".claude", "sessions", fmt.Sprint(os.Getpid())+".json"), entry)
	r := roomsOf(in)
	return sight{
		slot:   Slot{Key: "api-0", Agent: "claude", Config: in.Config, Home: in.Home, SessionID: in.SessionID, Pane: tmux.Pane{PID: os.Getpid()}},
		rooms:  r,
		now:    time.Now(),
		screen: func() []string { return nil },
	}
}

func TestClaudeStatusIsTheRegistrysLevel(t *testing.T) {
	now := time.Now().UnixMilli()
	for _, test := range []struct {
		name, entry string
		events      map[string]string
		want        State
		question    string
		detail      string
	}{
		{"idle", `{"pid":PID,"procStart":"START","sessionId":"SESSION","status":"idle"}`, nil, Idle, "", ""},
		{"busy", `{"pid":PID,"procStart":"START","sessionId":"SESSION","status":"busy"}`, map[string]string{
			"UserPromptSubmit": `{"hook_event_name":"UserPromptSubmit","prompt":"fix\nthe tests"}`,
		}, Working, "", "fix\nthe tests"},
		{"waiting with the hook's words", fmt.Sprintf(`{"pid":PID,"procStart":"START","sessionId":"SESSION","status":"waiting","waitingFor":"permission prompt","statusUpdatedAt":%d}`, now), map[string]string{
			"PermissionRequest": `{"tool_name":"Bash","tool_input":{"command":"rm -rf dist"}}`,
		}, Waiting, "Bash: rm -rf dist", ""},
		{"waiting without a hook", `{"pid":PID,"procStart":"START","sessionId":"SESSION","status":"waiting","waitingFor":"input needed"}`, nil, Waiting, "input needed", ""},
		{"an API error", `{"pid":PID,"procStart":"START","sessionId":"SESSION","status":"idle"}`, map[string]string{
			"StopFailure": `{"error":"unknown","last_assistant_message":"API Error: 400 mock bad request"}`,
		}, Failed, "", "API Error: 400 mock bad request"},
		{"a bad key", `{"pid":PID,"procStart":"START","sessionId":"SESSION","status":"idle"}`, map[string]string{
			"StopFailure": `{"error":"authentication_failed","last_assistant_message":"Please run /login"}`,
		}, LoginNeeded, "", "Please run /login"},
		{"torn", `{"pid":PID,"procStart":"STA`, nil, Unknown, "", ""},
		{"a dead pid's leftover", `{"pid":PID,"procStart":"12","sessionId":"SESSION","status":"busy"}`, nil, Unknown, "", ""},
		{"another process", `{"pid":1,"sessionId":"SESSION","status":"busy"}`, nil, Unknown, "", ""},
		{"a word of a later version", `{"pid":PID,"procStart":"START","sessionId":"SESSION","status":"dreaming"}`, nil, Unknown, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := newInput(t, false)
			s := claudeSight(t, in, test.entry)
			for kind, body := range test.events {
				mustWrite(t, filepath.Join(s.rooms.spool, kind+".json"), body)
			}
			s.events = readSpool(in.Config.WorkspaceHome, s.rooms.spool, time.Time{})
			got := observeClaude(s)
			if got.State != test.want || got.Question != test.question || got.Detail != test.detail {
				t.Errorf("%v question %q detail %q, want %v %q %q", got.State, got.Question, got.Detail, test.want, test.question, test.detail)
			}
		})
	}
}

func TestClaudeInAGuestIsKnownByConversationAndNotByPID(t *testing.T) {
	in := newInput(t, true)
	s := claudeSight(t, in, `{"pid":17,"sessionId":"SESSION","status":"busy","startedAt":2000}`)
	s.opened = time.UnixMilli(1000)
	if got := observeClaude(s); got.State != Working {
		t.Errorf("the slot's conversation is %v", got.State)
	}
	s.opened = time.UnixMilli(60000)
	if got := observeClaude(s); got.State != Unknown {
		t.Errorf("an earlier program's leftover is %v, want unknown", got.State)
	}
	s = claudeSight(t, in, `{"pid":17,"sessionId":"someone-else","status":"busy","startedAt":2000}`)
	if got := observeClaude(s); got.State != Unknown {
		t.Errorf("another conversation is %v, want unknown", got.State)
	}
	// /clear: the hook of this slot names the new one.
	s.events = events{"SessionStart": {kind: "SessionStart", at: time.Now(), body: hookBody{SessionID: "someone-else"}}}
	if got := observeClaude(s); got.State != Working || got.Session != "someone-else" {
		t.Errorf("after /clear: %v session %q", got.State, got.Session)
	}
}
