package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// opencodeUser is the name that OPENCODE_SERVER_PASSWORD goes with.
const opencodeUser = "opencode"

// freePort finds a port of the loopback that nobody listens on: opencode given a
// busy one shows a blank screen for ever. Between this and opencode's own listen
// another program could take it; listeners then keeps us from talking to it.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// opencodeAPI speaks to the opencode of one pane on this host.
type opencodeAPI struct {
	address, password string
}

// httpTimeout bounds one request on the loopback.
const httpTimeout = 2 * time.Second

// loopbackClient follows no redirect and uses no proxy. An opencode that starts
// accepts connections before it serves them, and never answers what came in then:
// a stream must be given up and begun anew like everything else.
var loopbackClient = &http.Client{
	Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true, ResponseHeaderTimeout: httpTimeout},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// listeners remembers for which panes a port was found to be the pane's own. It
// is safe for concurrent use.
type listeners struct {
	mu    sync.Mutex
	found map[string]listener // by slot
}

type listener struct{ port, pid int }

// ours says whether the program that listens on a port runs in the slot's pane.
// A launch record lies where a guest of the same workspace can write, and could
// name any port of this host; a port that was free when it was chosen may be
// somebody else's by now. Neither is to be told the password, or a message.
func (l *listeners) ours(slot Slot, port int) bool {
	want := listener{port, slot.Pane.PID}
	l.mu.Lock()
	known := l.found[slot.Key] == want
	l.mu.Unlock()
	if known {
		return true // while that process lives, nobody else can have it
	}
	if want.pid <= 0 || !listensBelow(port, want.pid) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found == nil {
		l.found = map[string]listener{}
	}
	l.found[slot.Key] = want
	return true
}

// opencodeOf is the interface of a slot's opencode, once that listens. A guest's
// launch record is never believed.
func opencodeOf(s sight) (opencodeAPI, bool) {
	if s.slot.Config.Guest.Isolated || s.launch.Agent != "opencode" || s.launch.Address == "" {
		return opencodeAPI{}, false
	}
	u, err := url.Parse(s.launch.Address)
	if err != nil || u.Scheme != "http" || u.Hostname() != "127.0.0.1" || u.User != nil {
		return opencodeAPI{}, false
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil || !s.listeners.ours(s.slot, port) {
		return opencodeAPI{}, false
	}
	return opencodeAPI{"http://" + u.Host, s.launch.Password}, true
}

func (o opencodeAPI) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, o.address+path, reader)
	if err != nil {
		return nil, err
	}
	r.SetBasicAuth(opencodeUser, o.password)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// call makes one request; into may be nil.
func (o opencodeAPI) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, httpTimeout)
	defer cancel()
	r, err := o.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	response, err := loopbackClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxFile))
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("opencode answered %s to %s: %w", response.Status, path, ErrNotTaken)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}

// opencodeQuestion is an open permission request.
type opencodeQuestion struct {
	ID         string
	SessionID  string `json:"sessionID"`
	Permission string
	Patterns   []string
	Metadata   map[string]json.RawMessage
	Questions  []struct{ Question string }
}

func (q opencodeQuestion) String() string {
	if len(q.Questions) > 0 {
		return q.Questions[0].Question
	}
	for _, name := range []string{"command", "filepath", "url"} {
		var text string
		if json.Unmarshal(q.Metadata[name], &text) == nil && text != "" {
			return q.Permission + ": " + text
		}
	}
	return q.Permission + ": " + strings.Join(q.Patterns, " ")
}

// opencodeMessage is a message of a session, as far as it is read.
type opencodeMessage struct {
	Info struct {
		Role string
		Time struct{ Created, Completed int64 } // milliseconds of Unix time
		// Error is set on the answer of a turn that failed.
		Error *struct {
			Name string
			Data struct {
				Message    string
				StatusCode int `json:"statusCode"`
			}
		}
	}
	Parts []struct{ Type, Text string }
}

func (m opencodeMessage) text() string {
	var texts []string
	for _, part := range m.Parts {
		if part.Type == "text" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// opencodeByHTTP is the source of a status that opencode itself told.
const opencodeByHTTP = "opencode's HTTP interface"

// observe reads the level of a session over HTTP: what runs, what is asked, how
// the last turn ended.
func (o opencodeAPI) observe(ctx context.Context, s sight) (Status, error) {
	status := Status{Session: s.launch.Session, Source: opencodeByHTTP}
	if s.slot.BoundID != "" {
		status.Session = s.slot.BoundID
	}
	if s.before.Session != "" && s.before.Source == status.Source {
		status.Session = s.before.Session
	}
	if status.title = s.slot.Pane.Title; s.before.Session == "" || s.before.title != status.title {
		status.Session = o.shown(ctx, s, status.Session)
	}
	// All at once: an opencode at work takes its time for each.
	var running map[string]struct{ Type, Message string }
	var questions [2][]opencodeQuestion
	var messages []opencodeMessage
	var noStatus, noMessages error
	messagesOf := func(id string) error {
		messages = nil
		return o.call(ctx, http.MethodGet, "/session/"+url.PathEscape(id)+"/message?limit=4", nil, &messages)
	}
	var asking sync.WaitGroup
	asking.Go(func() { noStatus = o.call(ctx, http.MethodGet, "/session/status", nil, &running) })
	for i, path := range []string{"/permission", "/question"} {
		asking.Go(func() {
			if o.call(ctx, http.MethodGet, path, nil, &questions[i]) != nil {
				questions[i] = nil // an older one has no such path
			}
		})
	}
	believed := status.Session
	asking.Go(func() { noMessages = messagesOf(believed) })
	asking.Wait()
	if noStatus != nil {
		return Status{}, noStatus
	}
	for id := range running {
		if _, ours := running[status.Session]; ours || id == status.Session {
			break
		}
		// Another session of this program is busy: a subagent's, or one that the
		// user has begun inside.
		var session struct {
			ParentID string `json:"parentID"`
		}
		if o.call(ctx, http.MethodGet, "/session/"+url.PathEscape(id), nil, &session) == nil && session.ParentID == "" {
			status.Session = id
		}
	}
	for _, open := range questions {
		if len(open) > 0 {
			status.State, status.Question = Waiting, open[0].String()
		}
	}
	if status.Session != believed {
		noMessages = messagesOf(status.Session)
	}
	if noMessages != nil {
		return status, noMessages
	}
	var failure *opencodeMessage
	for i, message := range messages {
		switch message.Info.Role {
		case "user":
			status.TurnBegan, status.Prompt = time.UnixMilli(message.Info.Time.Created), message.text()
			failure = nil
		case "assistant":
			status.Reply = message.text()
			if message.Info.Time.Completed > 0 {
				status.TurnEnded = time.UnixMilli(message.Info.Time.Completed)
			}
			failure = nil
			if e := message.Info.Error; e != nil && e.Name != "MessageAbortedError" {
				failure = &messages[i]
			}
		}
	}
	active, busy := running[status.Session]
	switch {
	case status.State == Waiting:
	case busy && active.Type != "idle":
		status.State, status.Detail = Working, status.Prompt
		if active.Message != "" {
			status.Detail = active.Message
		}
	case failure != nil:
		e := failure.Info.Error
		status.State, status.Detail = Failed, e.Data.Message
		if status.Detail == "" {
			status.Detail = e.Name
		}
		if e.Name == "ProviderAuthError" || e.Data.StatusCode == http.StatusUnauthorized {
			status.State = LoginNeeded
		}
	case len(messages) == 0:
		return opencodeBefore(s), nil
	default:
		status.State = Idle
	}
	return status, nil
}

// opencodeTells says whether an event may change what observe answers.
func opencodeTells(kind string) bool {
	for _, prefix := range []string{"session.status", "session.idle", "session.error", "session.created", "permission.", "question."} {
		if strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return false
}

// follow reads opencode's events until ctx or the program ends and calls told for
// each that may change the status, with what it says by itself. A stream that is
// not answered soon was asked for too early, and is asked for anew.
func (o opencodeAPI) follow(ctx context.Context, told func(tidings)) error {
	for patience := httpTimeout / 8; ; patience = min(2*patience, httpTimeout) {
		if err := o.events(ctx, patience, told); ctx.Err() != nil || !errors.Is(err, errNoAnswer) {
			return err
		}
	}
}

// errNoAnswer is what events returns when patience was over first.
var errNoAnswer = errors.New("opencode did not answer in time")

func (o opencodeAPI) events(ctx context.Context, patience time.Duration, told func(tidings)) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	over := time.AfterFunc(patience, func() { giveUp(errNoAnswer) })
	defer over.Stop()
	r, err := o.request(ctx, http.MethodGet, "/event", nil)
	if err != nil {
		return err
	}
	response, err := loopbackClient.Do(r)
	if !over.Stop() || err != nil {
		if err == nil {
			_ = response.Body.Close()
		}
		return errors.Join(err, context.Cause(ctx))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("opencode answered %s to /event", response.Status)
	}
	told(nil) // what happened before the stream began
	reader := bufio.NewReaderSize(response.Body, 64<<10)
	for {
		text, err := reader.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			continue // the middle of an event that is not looked at
		}
		if err != nil {
			return err
		}
		data, ok := bytes.CutPrefix(text, []byte("data:"))
		if !ok {
			continue
		}
		var event struct {
			Type       string
			Properties json.RawMessage
		}
		if json.Unmarshal(data, &event) == nil && opencodeTells(event.Type) {
			told(opencodeTidings(event.Type, event.Properties))
		}
	}
}

// opencodeTidings is what an event says of the session that is shown: that it
// works, or what it asks. How a turn ended is left to the look that follows.
func opencodeTidings(kind string, properties json.RawMessage) tidings {
	switch kind {
	case "session.status":
		var is struct {
			SessionID string `json:"sessionID"`
			Status    struct{ Type string }
		}
		if json.Unmarshal(properties, &is) != nil || is.Status.Type != "busy" && is.Status.Type != "retry" {
			return nil
		}
		return func(now Status) Status {
			if now.Session == is.SessionID && now.State != Waiting {
				if now.State != Working {
					now.Detail = ""
				}
				now.State, now.Source = Working, opencodeByHTTP
			}
			return now
		}
	case "permission.asked", "question.asked":
		var question opencodeQuestion
		if json.Unmarshal(properties, &question) != nil {
			return nil
		}
		return func(now Status) Status {
			// A subagent's question holds the conversation up, which works then.
			if now.State != Waiting && (now.Session == question.SessionID || now.State == Working) {
				now.State, now.Question, now.Source = Waiting, line(question.String()), opencodeByHTTP
			}
			return now
		}
	}
	return nil
}

// Direct is an agent's own interface for messages, in place of its terminal: no
// paste that could go into a question, no Enter that could answer one.
type Direct interface {
	// Append puts text into the agent's box.
	Append(ctx context.Context, text string) error
	// Submit sends what is in the box.
	Submit(ctx context.Context) error
}

// ErrNotTaken is what an agent's own interface answered in place of taking
// something: nothing of it has reached the agent.
var ErrNotTaken = errors.New("not taken")

// Direct returns the interface of the agent that runs in an observed slot, where
// it has one. It asks nobody.
func (w *Watcher) Direct(key string) (Direct, bool) {
	w.mu.Lock()
	slot, ok := w.slots[key]
	w.mu.Unlock()
	if !ok {
		return nil, false
	}
	return w.set.direct(slot)
}

func (s *Set) direct(slot Slot) (Direct, bool) {
	if slot.Agent != "opencode" || slot.Pane.Dead {
		return nil, false
	}
	o, ok := opencodeOf(s.sightOf(slot))
	if !ok {
		return nil, false
	}
	return o, true
}

// Append implements Direct. A program that does not answer at all is found out
// before it is told anything.
func (o opencodeAPI) Append(ctx context.Context, text string) error {
	var running map[string]json.RawMessage
	if err := o.call(ctx, http.MethodGet, "/session/status", nil, &running); err != nil {
		return fmt.Errorf("%w: %w", ErrNotTaken, err)
	}
	return o.tell(ctx, "/tui/append-prompt", map[string]string{"text": text})
}

// Submit implements Direct. It does what Enter does in the box, with the mode
// and the model that the user has chosen there; a dialog does not get it.
func (o opencodeAPI) Submit(ctx context.Context) error {
	return o.tell(ctx, "/tui/submit-prompt", nil)
}

// tell hands something to opencode's screen, which answers whether it was taken.
func (o opencodeAPI) tell(ctx context.Context, path string, body any) error {
	var taken bool
	if err := o.call(ctx, http.MethodPost, path, body, &taken); err != nil {
		return err
	}
	if !taken {
		return fmt.Errorf("opencode refused %s: %w", path, ErrNotTaken)
	}
	return nil
}
