package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cellmux/cell"
	"cellmux/cell/lock"
	"cellmux/engine"
	"cellmux/engine/agent"
	"cellmux/engine/tmux"
	"cellmux/shellctx/convo"
)

const (
	newConversation = "0f3f8a52-7a4e-4c0b-9f7e-2a1b3c4d5e6f"
)

// facts are the values of a row's Info tab under a label.
func (w *world) facts(t *testing.T, r Ref, label string) (values []string) {
	t.Helper()
	all, err := w.Info(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.Label == label {
			values = append(values, f.Value)
		}
	}
	return values
}

func TestClearInsideTheAgentIsFollowedForGoodAndTold(t *testing.T) {
	out := &outbox{told: make(chan string, 10)}
	w := newWorld(t, func(o *Options) { o.Conversations = out })
	ref, err := w.Open(t.Context(), w.cellWith(t), "claude")
	if err != nil {
		t.Fatal(err)
	}
	own := cell.SessionID("api-0")
	w.watcher.set(ref.String(), agent.Status{State: agent.Idle, Session: own})
	if s := w.slot(t, ref); s.Detail != "" || len(out.told) != 0 {
		t.Errorf("in its own conversation: %+v", s)
	}
	w.watcher.set(ref.String(), agent.Status{State: agent.Idle, Session: newConversation})
	if s := w.slot(t, ref); s.SessionID != own || !strings.Contains(s.Detail, "in a new conversation") {
		t.Errorf("the list says %q of session %s", s.Detail, s.SessionID)
	}
	if told := <-out.told; !strings.HasPrefix(told, "append api system ") || !strings.Contains(told, newConversation) || !strings.Contains(told, own) {
		t.Errorf("the conversation was told %q", told)
	}
	w.slot(t, ref) // a second look says nothing again
	if len(out.told) != 0 {
		t.Errorf("told again: %q", <-out.told)
	}
	if got := w.facts(t, ref, "Agent's session"); len(got) != 1 || got[0] != newConversation {
		t.Errorf("Info: the agent's session is %q", got)
	}
	if got := w.facts(t, ref, "Earlier session"); len(got) != 1 || !strings.HasPrefix(got[0], own) {
		t.Errorf("Info: earlier sessions are %q", got)
	}
	// A new message ends the list's remark.
	w.watcher.set(ref.String(), agent.Status{State: agent.Idle, Session: newConversation, TurnBegan: time.Now().Add(time.Hour)})
	if s := w.slot(t, ref); strings.Contains(s.Detail, "new conversation") {
		t.Errorf("the list still says %q", s.Detail)
	}
	// For good: what was started by anybody later is in the new one.
	w.server.set(func(l *tmux.List) { l.Panes = nil })
	if err := w.Restart(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if last := w.opener.requests[len(w.opener.requests)-1]; last.BoundID != newConversation {
		t.Errorf("restarted in %q", last.BoundID)
	}
}

func TestNothingIsFollowedWhileATurnRunsOrNothingIsKnown(t *testing.T) {
	w := newWorld(t)
	ref, err := w.Open(t.Context(), w.cellWith(t), "claude")
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []agent.State{agent.Working, agent.Unknown} {
		w.watcher.set(ref.String(), agent.Status{State: state, Session: newConversation})
		w.slot(t, ref)
		if s, err := w.db.Slot(t.Context(), "api", 0); err != nil || s.AgentSession != "" {
			t.Errorf("%v: moved to %q, %v", state, s.AgentSession, err)
		}
	}
}

func TestAnAgentInTheConversationOfAnotherSlotIsNotFollowedAndGetsNoMessage(t *testing.T) {
	w := newWorld(t)
	name := w.cellWith(t)
	var refs []Ref
	for range 2 {
		ref, err := w.Open(t.Context(), name, "claude")
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	// The user resumed the first one's conversation by hand in the second pane.
	w.watcher.set(refs[1].String(), agent.Status{State: agent.Idle, Session: cell.SessionID("api-0")})
	s := w.slot(t, refs[1])
	if !strings.Contains(s.Detail, "in the conversation of api:0") || len(s.Notes) == 0 || !strings.Contains(s.Notes[len(s.Notes)-1], "Two panes never share one") {
		t.Errorf("%+v", s)
	}
	if row, err := w.db.Slot(t.Context(), "api", 1); err != nil || row.AgentSession != "" {
		t.Errorf("it was followed: %+v, %v", row, err)
	}
	transport, _, _, _ := newTransport()
	transport.terminal.(*terminal).list = w.server.List()
	transport.watcher = w.watcher
	transport.Of(w.Fleet)
	target := convo.Target{Session: s.SessionID, Cell: "api", Slot: 1, Agent: "claude"}
	if state, err := transport.State(t.Context(), target); err != nil || state.Ready || !state.Live || !strings.Contains(state.Reason, "conversation of api:0") {
		t.Errorf("a message for it finds %+v, %v", state, err)
	}
	// It left by /clear: then it is in one of its own.
	w.watcher.set(refs[1].String(), agent.Status{State: agent.Idle, Session: newConversation})
	w.slot(t, refs[1])
	if row, err := w.db.Slot(t.Context(), "api", 1); err != nil || row.AgentSession != newConversation {
		t.Errorf("%+v, %v", row, err)
	}
	if state, err := transport.State(t.Context(), target); err != nil || !state.Ready {
		t.Errorf("after it left: %+v, %v", state, err)
	}
}

func TestAnAgentThatChoseItsFirstIDItselfLeavesNoConversation(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.LookPath = func(program string) (string, error) { return "/usr/bin/" + program, nil }
	})
	ref, err := w.Open(t.Context(), w.cellWith(t), "codex")
	if err != nil {
		t.Fatal(err)
	}
	w.watcher.set(ref.String(), agent.Status{State: agent.Idle, Session: newConversation, Adopted: true})
	s := w.slot(t, ref)
	row, err := w.db.Slot(t.Context(), "api", 0)
	if err != nil || row.AgentSession != newConversation || strings.Contains(s.Detail, "new conversation") {
		t.Errorf("%+v, %+v, %v", row, s, err)
	}
	if left, err := w.db.LeftSessions(t.Context(), "api", 0); err != nil || len(left) != 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// spooled writes what an agent's hook left in a slot's folder.
func (w *world) spooled(t *testing.T, slot int, kind, body string) {
	t.Helper()
	c, s, err := w.cellAndSlot(t.Context(), Ref{"api", slot})
	if err != nil {
		t.Fatal(err)
	}
	dir := agent.SlotDir(w.watched(w.configOf(t.Context(), c), s, tmux.Pane{}).Config)
	for file, text := range map[string]string{
		"launch.json":             `{"agent":"` + s.Agent + `","session":"` + s.SessionID + `","started":"2026-11-30T12:00:00Z"}`,
		"spool/" + kind + ".json": body,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClearThatNobodyWatchedIsFollowedAtTheNextStart(t *testing.T) {
	w := newWorld(t)
	w.cellWith(t, "claude", "claude")
	w.spooled(t, 0, "SessionStart", `{"session_id":"`+newConversation+`","source":"clear"}`)
	if err := w.Restart(t.Context(), Ref{"api", 0}); err != nil {
		t.Fatal(err)
	}
	if last := w.opener.requests[0]; last.BoundID != newConversation {
		t.Errorf("started in %q", last.BoundID)
	}
	if got := w.facts(t, Ref{"api", 0}, "Earlier session"); len(got) != 1 {
		t.Errorf("Info: earlier sessions are %q", got)
	}
	// A guest that names another slot's conversation there does not get it.
	w.spooled(t, 1, "SessionStart", `{"session_id":"`+newConversation+`","source":"clear"}`)
	if err := w.Restart(t.Context(), Ref{"api", 1}); err != nil {
		t.Fatal(err)
	}
	if last := w.opener.requests[1]; last.BoundID != "" {
		t.Errorf("two slots are in %q", last.BoundID)
	}
}

// slowOpener opens panes when the test says so.
type slowOpener struct {
	*opener
	begun   chan struct{}
	release chan struct{}
}

func (o *slowOpener) Open(ctx context.Context, r engine.OpenRequest) (engine.Opened, error) {
	o.begun <- struct{}{}
	<-o.release
	return o.opener.Open(ctx, r)
}

// twoProcesses are two fleets over one database and one tmux server.
func twoProcesses(t *testing.T) (*world, [2]*Fleet, *slowOpener) {
	t.Helper()
	w := newWorld(t)
	w.cellWith(t, "claude")
	slow := &slowOpener{opener: w.opener, begun: make(chan struct{}, 4), release: make(chan struct{})}
	options := w.o
	options.Opener = slow
	return w, [2]*Fleet{New(options), New(options)}, slow
}

func TestOneSlotThatTwoProcessesOpenAtOnceIsOpenedOnce(t *testing.T) {
	for name, open := range map[string]func(*Fleet) error{
		"open":    func(f *Fleet) error { _, err := f.Resume(t.Context(), Ref{"api", 0}); return err },
		"restart": func(f *Fleet) error { return f.Restart(t.Context(), Ref{"api", 0}) },
	} {
		t.Run(name, func(t *testing.T) {
			w, fleets, slow := twoProcesses(t)
			var both sync.WaitGroup
			errs := make([]error, 2)
			for i, f := range fleets {
				both.Go(func() { errs[i] = open(f) })
			}
			<-slow.begun // one is in the middle of it, and the other waits for it
			close(slow.release)
			both.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
			if len(w.opener.requests) != 1 || len(w.server.killed) != 0 || len(w.server.List().Panes) != 1 {
				t.Errorf("%d launches, killed %q, %d panes", len(w.opener.requests), w.server.killed, len(w.server.List().Panes))
			}
		})
	}
}

func TestResumeLeavesWhatRunsAlone(t *testing.T) {
	w := newWorld(t)
	ref, err := w.Open(t.Context(), w.cellWith(t), "claude")
	if err != nil {
		t.Fatal(err)
	}
	started, err := w.Resume(t.Context(), ref)
	if err != nil || started || len(w.opener.requests) != 1 || len(w.server.killed) != 0 {
		t.Errorf("started %v, %v, %d launches, killed %q", started, err, len(w.opener.requests), w.server.killed)
	}
	w.server.set(func(l *tmux.List) { l.Known = false })
	if _, err := w.Resume(t.Context(), ref); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without an answer from tmux: %v", err)
	}
}

func TestNoTurnWithoutAPaneRunsBesideOne(t *testing.T) {
	w := newWorld(t)
	ref := Ref{w.cellWith(t, "claude"), 0}
	turns := NewTurns(nil, nil, w.o.Agents)
	turns.Of(w.Fleet)
	target := convo.Target{Session: cell.SessionID("api-0"), Cell: "api", Slot: 0, Agent: "claude"}
	run := func() error {
		_, err := turns.Run(t.Context(), target, "hello", func(string) {})
		return err
	}
	held, err := lock.Try(w.slotLock(ref))
	if err != nil {
		t.Fatal(err)
	}
	if err := run(); !errors.Is(err, convo.ErrRefused) || !strings.Contains(err.Error(), "being started") {
		t.Errorf("while a pane is started: %v", err)
	}
	// The other way round: no pane is opened while a turn holds the conversation.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := w.Resume(ctx, ref); err == nil || len(w.opener.requests) != 0 {
		t.Errorf("a pane was opened beside a turn: %v, %d launches", err, len(w.opener.requests))
	}
	held.Release()
	if _, err := w.Resume(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if err := run(); !errors.Is(err, convo.ErrRefused) || !strings.Contains(err.Error(), "has a pane") {
		t.Errorf("beside a live pane: %v", err)
	}
}

func TestInfoTellsNotesOfALaunchOfAnotherProcess(t *testing.T) {
	w, fleets, slow := twoProcesses(t)
	close(slow.release)
	if _, err := fleets[0].Resume(t.Context(), Ref{"api", 0}); err != nil {
		t.Fatal(err)
	}
	if s := w.slot(t, Ref{"api", 0}); fmt.Sprint(s.Notes) != "[a note]" {
		t.Errorf("the list has the notes %q", s.Notes)
	}
	if got := w.facts(t, Ref{"api", 0}, "Note"); len(got) != 1 || got[0] != "a note" {
		t.Errorf("the Info tab has the notes %q", got)
	}
}

func TestAgentsThatOutlivedTheirPanesAreEndedAndTheJournalSaysSo(t *testing.T) {
	w := newWorld(t)
	w.opener.leftovers = []engine.Leftover{{Cell: "api", Slot: 2, PID: 77, Program: "opencode"}}
	w.opener.err = errors.New("process 78 does not end")
	w.EndLeftovers(t.Context())
	events, err := w.Events(t.Context(), 5)
	if err != nil || len(events) != 2 || events[1].Action != "end process 77 (opencode) of api:2, which had outlived its pane" ||
		events[0].Error != "process 78 does not end" {
		t.Errorf("the journal says %+v, %v", events, err)
	}
}
