package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellmux/engine/tmux"
)

// fakeOpencode answers as opencode 1.18.33 does (its events were recorded).
type fakeOpencode struct {
	status, permission, messages string
	sessions                     string // the list
	events                       chan string
	password                     string
}

func (f *fakeOpencode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, password, _ := r.BasicAuth(); password != f.password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch {
	case r.URL.Path == "/session/status":
		fmt.Fprint(w, f.status)
	case r.URL.Path == "/permission":
		fmt.Fprint(w, f.permission)
	case r.URL.Path == "/question":
		fmt.Fprint(w, "[]")
	case r.URL.Path == "/session":
		fmt.Fprint(w, f.sessions)
	case strings.HasSuffix(r.URL.Path, "/message"):
		fmt.Fprint(w, f.messages)
	case r.URL.Path == "/event":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for {
			select {
			case e := <-f.events:
				if r.Context().Err() != nil { // nobody listens here any more
					f.events <- e
					return
				}
				fmt.Fprintf(w, "data: %s\n\n", e)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	default:
		fmt.Fprint(w, "{}")
	}
}

func TestOpencodeOnTheHostIsALevelOverHTTP(t *testing.T) {
	const (
		user    = `{"info":{"role":"user","time":{"created":1000}},"parts":[{"type":"text","text":"fix it"}]}`
		answer  = `{"info":{"role":"assistant","time":{"created":1001,"completed":1500}},"parts":[{"type":"text","text":"done"}]}`
		failed  = `{"info":{"role":"assistant","time":{"created":1001},"error":{"name":"APIError","data":{"message":"mock bad request","statusCode":400}}},"parts":[]}`
		aborted = `{"info":{"role":"assistant","time":{"created":1001},"error":{"name":"MessageAbortedError","data":{"message":"Aborted"}}},"parts":[]}`
		badKey  = `{"info":{"role":"assistant","time":{"created":1001},"error":{"name":"APIError","data":{"message":"bad key","statusCode":401}}},"parts":[]}`
		asks    = `[{"id":"per_1","sessionID":"SESSION","permission":"bash","patterns":["touch x"],"metadata":{"command":"touch x && date"}}]`
	)
	for _, test := range []struct {
		name                         string
		status, permission, messages string
		want                         State
		text                         string
	}{
		{"idle after an answer", `{}`, `[]`, "[" + user + "," + answer + "]", Idle, ""},
		{"busy", `{"SESSION":{"type":"busy"}}`, `[]`, "[" + user + "]", Working, "fix it"},
		{"a question", `{"SESSION":{"type":"busy"}}`, asks, "[" + user + "]", Waiting, "bash: touch x && date"},
		{"a subagent's question", `{"SESSION":{"type":"busy"},"ses_child":{"type":"busy"}}`, strings.Replace(asks, "SESSION", "ses_child", 1), "[" + user + "]", Waiting, "bash: touch x && date"},
		{"an API error", `{}`, `[]`, "[" + user + "," + failed + "]", Failed, "mock bad request"},
		{"a bad key", `{}`, `[]`, "[" + user + "," + badKey + "]", LoginNeeded, "bad key"},
		{"interrupted", `{}`, `[]`, "[" + user + "," + aborted + "]", Idle, ""},
		{"no turn yet and no screen", `{}`, `[]`, "[]", Unknown, ""},
		{"not JSON", `oops`, `[]`, "[]", Unknown, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &fakeOpencode{permission: test.permission}
			server := httptest.NewServer(f)
			defer server.Close()
			in := newInput(t, false)
			session := opencodeSession(in.SessionID)
			replace := strings.NewReplacer("SESSION", session)
			f.status, f.permission, f.messages = replace.Replace(test.status), replace.Replace(test.permission), test.messages
			writeLaunch(t, in.Config.WorkspaceHome, launch{Agent: "opencode", Session: session, Address: server.URL, Password: f.password})
			s := New(Options{}).sightOf(Slot{Key: "api-0", Agent: "opencode", Config: in.Config, Home: in.Home, SessionID: in.SessionID, Pane: ownPane()})
			got := observeOpencode(s)
			if got.State != test.want || got.Detail+got.Question != test.text {
				t.Errorf("%v detail %q question %q, want %v %q", got.State, got.Detail, got.Question, test.want, test.text)
			}
			if got.State == Idle && (got.TurnBegan.UnixMilli() != 1000 || got.Prompt != "fix it") {
				t.Errorf("the turn began %v with %q", got.TurnBegan, got.Prompt)
			}
		})
	}
}

func writeLaunch(t *testing.T, home string, l launch) {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(home, ".devcell", "agents", "api-0", launchFile), string(data))
}

func TestOpencodeShowsItsSessionInItsTitle(t *testing.T) {
	in := newInput(t, false)
	own := opencodeSession(in.SessionID)
	entry := func(id, title, directory, parent string) string {
		return fmt.Sprintf(`{"id":%q,"title":%q,"directory":%q,"parentID":%q}`, id, title, directory, parent)
	}
	here, long := in.Config.ProjectDir, "Refactoring of the session store, and then some more of it"
	cut := "Refactoring of the session store, and…"
	for _, test := range []struct {
		name, title string
		list        []string
		want        string
	}{
		{"no title of a session", "OpenCode", []string{entry("ses_newnewnew", "Fix it", here, "")}, own},
		{"another one's title", "OC | Fix it", []string{entry("ses_newnewnew", "Fix it", here, ""), entry("ses_oldoldold", "Old", here, "")}, "ses_newnewnew"},
		{"a long one, cut", "OC | " + cut, []string{entry("ses_newnewnew", long, here, "")}, "ses_newnewnew"},
		{"a title that two have", "OC | Fix it", []string{entry("ses_newnewnew", "Fix it", here, ""), entry("ses_oldoldold", "Fix it", here, "")}, own},
		{"one of another project", "OC | Fix it", []string{entry("ses_newnewnew", "Fix it", "/elsewhere", "")}, own},
		{"a subagent's", "OC | Fix it", []string{entry("ses_newnewnew", "Fix it", here, own)}, own},
		{"what a nested program set", "OC | \x1b]0;x", nil, own},
	} {
		t.Run(test.name, func(t *testing.T) {
			fake := &fakeOpencode{status: "{}", permission: "[]", messages: "[]", password: "p", sessions: "[" + strings.Join(test.list, ",") + "]"}
			server := httptest.NewServer(fake)
			defer server.Close()
			s := sight{slot: Slot{Agent: "opencode", Config: in.Config, Pane: tmux.Pane{Title: test.title}}, rooms: roomsOf(in)}
			if got := (opencodeAPI{server.URL, "p"}).shown(t.Context(), s, own); got != test.want {
				t.Errorf("%q shows %q, want %q", test.title, got, test.want)
			}
		})
	}
}

func TestOpencodeEventsReachTheStatus(t *testing.T) {
	f := &fakeOpencode{status: `{}`, permission: `[]`, messages: `[{"info":{"role":"user","time":{"created":1}},"parts":[]}]`, events: make(chan string), password: "secret"}
	gate := make(chan fakeOpencode, 1)
	gate <- *f
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := <-gate
		gate <- now
		now.ServeHTTP(w, r)
	}))
	defer server.Close()
	in := newInput(t, false)
	session := opencodeSession(in.SessionID)
	writeLaunch(t, in.Config.WorkspaceHome, launch{Agent: "opencode", Session: session, Address: server.URL, Password: "secret"})
	w := startWatcher(t, WatchOptions{Opened: func(int) (time.Time, bool) { return time.Time{}, false }})
	defer server.CloseClientConnections()
	w.Observe([]Slot{{Key: "api-0", Agent: "opencode", Config: in.Config, Home: in.Home, SessionID: in.SessionID, Pane: ownPane()}})
	eventually(t, 30*time.Second, "idle", func() bool { return w.Status("api-0").State == Idle })

	<-gate
	f.status = `{"` + session + `":{"type":"busy"}}`
	gate <- *f
	f.events <- `{"type":"session.status"}` // taken only by a stream that listens
	eventually(t, 30*time.Second, "working", func() bool { return w.Status("api-0").State == Working })
}

// ownPane is a pane whose program is this test, which listens itself.
func ownPane() tmux.Pane { return tmux.Pane{ID: "%1", PID: os.Getpid()} }

func TestLaunchRecordCannotNameAPortThatIsNotThePanes(t *testing.T) {
	var reached atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer server.Close()
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	for _, c := range []struct {
		name     string
		isolated bool
		address  string
		pid      int
	}{
		{"a guest's", true, server.URL, os.Getpid()},
		{"another host", false, strings.Replace(server.URL, "127.0.0.1", "127.0.0.1@example.invalid", 1), os.Getpid()},
		{"a name with a user", false, strings.Replace(server.URL, "127.0.0.1", "x@127.0.0.1", 1), os.Getpid()},
		{"a port of another program", false, server.URL, other.Process.Pid},
		{"a pane that is not known", false, server.URL, 0},
		{"no port", false, "http://127.0.0.1", os.Getpid()},
	} {
		if c.pid == other.Process.Pid && runtime.GOOS != "linux" {
			continue // who listens is not known there
		}
		in := newInput(t, c.isolated)
		writeLaunch(t, in.Config.WorkspaceHome, launch{Agent: "opencode", Session: "ses_1", Address: c.address, Password: "secret"})
		set := New(Options{})
		slot := Slot{Key: "api-0", Agent: "opencode", Config: in.Config, Home: in.Home, Pane: tmux.Pane{ID: "%1", PID: c.pid}}
		observeOpencode(set.sightOf(slot))
		if _, ok := set.direct(slot); ok || reached.Load() {
			t.Errorf("%s: a forged address was used", c.name)
		}
	}
}

func TestOpencodesInterfaceIsPrivateAndItsPasswordInNoArgv(t *testing.T) {
	in := newInput(t, false)
	plan := mustPlan(t, "opencode", in)
	var record launch
	if _, err := readJSON(in.Config.WorkspaceHome, filepath.Join(SlotDir(in.Config), launchFile), &record); err != nil {
		t.Fatal(err)
	}
	argv := strings.Join(plan.Argv, " ")
	port := record.Address[strings.LastIndexByte(record.Address, ':')+1:]
	if !strings.HasSuffix(argv, "--hostname 127.0.0.1 --port "+port) {
		t.Errorf("argv %q does not bind %s to the loopback", argv, record.Address)
	}
	if len(record.Password) < 20 || strings.Contains(argv, record.Password) {
		t.Errorf("the password %q is short or in argv %q", record.Password, argv)
	}
	if !slices.Contains(plan.Env, "OPENCODE_SERVER_PASSWORD="+record.Password) {
		t.Error("opencode is not told its password")
	}
	info, err := os.Stat(filepath.Join(SlotDir(in.Config), launchFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the launch record is %v, %v", info.Mode(), err)
	}
	again := mustPlan(t, "opencode", in)
	if slices.Contains(again.Env, "OPENCODE_SERVER_PASSWORD="+record.Password) {
		t.Error("two starts share a password")
	}
	guest := mustPlan(t, "opencode", newInput(t, true))
	if argv := strings.Join(guest.Argv, " "); strings.Contains(argv, "--port") {
		t.Errorf("in a guest it listens: %q", argv)
	}
}

func TestOpencodeTakesTextByItsInterface(t *testing.T) {
	var did []string
	answer := "true"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "opencode" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodGet {
			fmt.Fprint(w, "{}")
			return
		}
		body, _ := io.ReadAll(r.Body)
		did = append(did, r.URL.Path+" "+string(body))
		fmt.Fprint(w, answer)
	}))
	defer server.Close()
	in := newInput(t, false)
	writeLaunch(t, in.Config.WorkspaceHome, launch{Agent: "opencode", Session: "ses_1", Address: server.URL, Password: "secret"})
	slot := Slot{Key: "api-0", Agent: "opencode", Config: in.Config, Home: in.Home, Pane: ownPane()}
	direct, ok := New(Options{}).direct(slot)
	if !ok {
		t.Fatal("no interface")
	}
	if err := errors.Join(direct.Append(t.Context(), "fix\n\"it\""), direct.Submit(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(did, "; "); got != `/tui/append-prompt {"text":"fix\n\"it\""}; /tui/submit-prompt ` {
		t.Error(got)
	}
	answer = "false"
	if err := direct.Append(t.Context(), "x"); !errors.Is(err, ErrNotTaken) {
		t.Errorf("what it refuses is %v", err)
	}
	writeLaunch(t, in.Config.WorkspaceHome, launch{Agent: "opencode", Session: "ses_1", Address: server.URL, Password: "other"})
	if direct, ok = New(Options{}).direct(slot); !ok {
		t.Fatal("no interface")
	}
	if err := direct.Append(t.Context(), "x"); !errors.Is(err, ErrNotTaken) || len(did) != 3 {
		t.Errorf("with a wrong password: %v, did %q", err, did)
	}
}

func TestOpencodePluginsFileIsALevelAndHostileInput(t *testing.T) {
	in := newInput(t, true)
	s := New(Options{}).sightOf(Slot{Key: "api-0", Agent: "opencode", Config: in.Config, Home: in.Home, SessionID: in.SessionID})
	s.launch.Session = "ses_1"
	file := filepath.Join(s.rooms.spool, "opencode.json")
	for _, test := range []struct {
		body string
		want State
	}{
		{`{"current":"ses_1","sessions":{"ses_1":{"status":"busy","began":5}}}`, Working},
		{`{"current":"ses_1","sessions":{"ses_1":{"status":"idle","began":5}}}`, Idle},
		{`{"current":"ses_1","sessions":{"ses_1":{"status":"idle","began":5,"error":"boom"}}}`, Failed},
		{`{"current":"ses_1","sessions":{"ses_1":{"status":"busy","began":5,"questions":{"per_1":{"kind":"bash","what":"rm","asked":7}}}}}`, Waiting},
		{`{"current":"ses_1","sessions":{"ses_1":{"status":"busy"},"ses_2":{"questions":{"q":{"kind":"bash","what":"of another conversation"}}}}}`, Working},
		{`{"current":"ses_1","sessions":{"ses_1":{"status":"busy"},"ses_2":{"parent":"ses_1","questions":{"q":{"kind":"bash","what":"of a subagent","asked":1}}}}}`, Waiting},
		{`{"current":"ses_1","sessions":{"ses_1":{"stat`, Unknown},
		{`[]`, Unknown},
		{`{"current":{"a":1}}`, Unknown},
	} {
		mustWrite(t, file, test.body)
		s.opened = time.Time{}
		if got := observeOpencode(s); got.State != test.want {
			t.Errorf("%s: %v, want %v", test.body, got.State, test.want)
		}
		s.opened = time.Now().Add(time.Hour)
		if got := observeOpencode(s); got.State != Unknown {
			t.Errorf("an earlier program's file says %v", got.State)
		}
	}
}

func TestOpencodeAsksOnTheHostUnlessTheUserHasDecided(t *testing.T) {
	config := func(isolated, review bool, own string, env ...string) map[string]any {
		in := newInput(t, isolated)
		in.Review, in.Env = review, env
		if own != "" {
			mustWrite(t, filepath.Join(in.Home, ".config", "opencode", "opencode.json"), own)
		}
		for _, pair := range mustPlan(t, "opencode", in).Env {
			if text, ok := strings.CutPrefix(pair, "OPENCODE_CONFIG_CONTENT="); ok {
				var c map[string]any
				if err := json.Unmarshal([]byte(text), &c); err != nil {
					t.Fatal(err)
				}
				return c
			}
		}
		t.Fatal("no inline config")
		return nil
	}
	if got := fmt.Sprint(config(false, false, "")["permission"]); got != "map[bash:ask edit:ask]" {
		t.Errorf("on the host: %s", got)
	}
	if got := config(true, false, "")["permission"]; got != nil {
		t.Errorf("in a guest: %v", got)
	}
	if got := config(false, false, `{"permission":{"bash":"allow"}}`)["permission"]; got != nil {
		t.Errorf("the user's own decision was overruled by %v", got)
	}
	if got := fmt.Sprint(config(false, true, `{"permission":{"bash":"allow"}}`)["permission"]); got != "map[*:deny]" {
		t.Errorf("in review: %s", got)
	}
	kept := config(false, false, "", `OPENCODE_CONFIG_CONTENT={"theme":"x","instructions":["/mine"]}`)
	if list, _ := kept["instructions"].([]any); kept["theme"] != "x" || len(list) != 2 || list[0] != "/mine" {
		t.Errorf("the user's inline config was not kept: %v", kept)
	}
}
