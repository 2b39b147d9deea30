package agent

import (
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellmux/engine/tmux"
)

// servedOpencode is an opencode of this host that has had a turn, as a watcher
// sees it. Its answers change while it serves.
type servedOpencode struct {
	t  *testing.T
	id string // of its session
	*Watcher

	mu   sync.Mutex
	fake fakeOpencode
}

// serveOpencode serves an idle one until the test ends, and returns when a watcher
// knows it. around may answer in its place; it may be nil.
func serveOpencode(t *testing.T, around func(http.Handler) http.Handler) *servedOpencode {
	t.Helper()
	in := newInput(t, false)
	o := &servedOpencode{t: t, id: opencodeSession(in.SessionID), fake: fakeOpencode{
		messages: `[{"info":{"role":"user","time":{"created":1000}},"parts":[{"type":"text","text":"x"}]}]`,
		events:   make(chan string),
	}}
	o.answer(`{}`, `[]`)
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		now := o.fake
		o.mu.Unlock()
		now.ServeHTTP(w, r)
	})
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	writeLaunch(t, in.Config.WorkspaceHome, launch{Agent: "opencode", Session: o.id, Address: server.URL})
	o.Watcher, _ = watching(t, "opencode", in, tmux.Pane{ID: "%1", PID: os.Getpid()})
	eventually(t, 30*time.Second, "idle", func() bool { return o.Status("x").State == Idle })
	return o
}

// answer changes what it says when it is asked.
func (o *servedOpencode) answer(status, permission string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fake.status, o.fake.permission = status, permission
}

// tells measures until an event, of which do tells what it is about, has made the
// status the wanted one. A stream that is just being given up may swallow an
// event, so it is told until it is heard.
func (o *servedOpencode) tells(event string, want State, do func()) {
	o.t.Helper()
	heard := make(chan struct{})
	var telling sync.WaitGroup
	within(o.t, fileLimit, o.Watcher, event, want, func() {
		if do != nil {
			do()
		}
		telling.Go(func() {
			for again := time.NewTicker(fileLimit / 4); ; {
				select {
				case o.fake.events <- event:
				case <-heard:
					return
				}
				select {
				case <-again.C:
				case <-heard:
					return
				}
			}
		})
	})
	close(heard)
	telling.Wait()
}

func TestAnEventOverHTTPReachesTheStatusWithinHalfASecond(t *testing.T) {
	o := serveOpencode(t, nil)
	for _, next := range []struct {
		event, status, permission string
		want                      State
	}{
		{"session.status", `{"` + o.id + `":{"type":"busy"}}`, `[]`, Working},
		{"permission.asked", `{"` + o.id + `":{"type":"busy"}}`, `[{"sessionID":"` + o.id + `","permission":"bash","metadata":{"command":"x"}}]`, Waiting},
		{"permission.replied", `{"` + o.id + `":{"type":"busy"}}`, `[]`, Working},
		{"session.idle", `{}`, `[]`, Idle},
	} {
		o.tells(`{"type":"`+next.event+`"}`, next.want, func() { o.answer(next.status, next.permission) })
	}
}

// An opencode that begins a turn answers nothing for a while, but has told.
func TestAnEventIsBelievedBeforeOpencodeAnswersAnythingElse(t *testing.T) {
	var atWork atomic.Bool
	o := serveOpencode(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/event" && atWork.Load() {
				<-r.Context().Done()
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	o.fake.events <- `{"type":"session.status","properties":{"sessionID":"ses_other","status":{"type":"busy"}}}`
	if got := o.Status("x").State; got != Idle {
		t.Errorf("another session's turn made it %s", got)
	}
	o.tells(`{"type":"session.status","properties":{"sessionID":"`+o.id+`","status":{"type":"busy"}}}`, Working, func() { atWork.Store(true) })
	o.tells(`{"type":"permission.asked","properties":{"sessionID":"`+o.id+`","permission":"bash","metadata":{"command":"rm -rf dist"}}}`, Waiting, nil)
	if got := o.Status("x").Question; got != "bash: rm -rf dist" {
		t.Errorf("it asks %q", got)
	}
}

func TestAStreamThatIsNeverAnsweredIsBegunAnew(t *testing.T) {
	var streams atomic.Int32
	o := serveOpencode(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/event" && streams.Add(1) == 1 {
				<-r.Context().Done() // as one does that starts
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	select {
	case o.fake.events <- `{"type":"server.heartbeat"}`:
	case <-time.After(30 * time.Second):
		t.Fatal("nobody listens to its events")
	}
	o.tells(`{"type":"session.status"}`, Working, func() { o.answer(`{"`+o.id+`":{"type":"busy"}}`, `[]`) })
}
