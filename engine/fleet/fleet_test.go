package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cellmux/cell"
	"cellmux/cell/state"
	"cellmux/engine/agent"
	"cellmux/engine/tmux"
	"cellmux/shellctx/convo"
)

func mkdir(t *testing.T, parent, name string) string {
	t.Helper()
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDirectoryIsOfferedUntilItIsACell(t *testing.T) {
	var dir string
	w := newWorld(t, func(o *Options) { dir = mkdir(t, t.TempDir(), "My App"); o.Offer = dir })
	snap, err := w.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(snap.Cells) != 1 || !snap.Cells[0].Offered || snap.Cells[0].Name != "my-app" || snap.Cells[0].Engine != "host" {
		t.Fatalf("%+v", snap.Cells)
	}
	ref, err := w.Open(t.Context(), "my-app", "")
	if err != nil {
		t.Fatal(err)
	}
	snap, err = w.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(snap.Cells) != 1 || snap.Cells[0].Offered || ref != (Ref{"my-app", 0}) {
		t.Errorf("after opening it: %v, %+v", ref, snap.Cells)
	}
	if s := snap.Cells[0].Slots[0]; s.Agent != "claude" || s.SessionID != cell.SessionID("my-app-0") || s.Pane == "" {
		t.Errorf("the first agent found: %+v", s)
	}
}

func TestOfferIsNeverTakenForTheCellThatHasItsName(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Offer = mkdir(t, t.TempDir(), "api") })
	w.cellWith(t) // another directory called api
	snap, err := w.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(snap.Cells) != 2 || snap.Cells[0].Name == snap.Cells[1].Name {
		t.Fatalf("%+v", snap.Cells)
	}
	ref, err := w.Open(t.Context(), snap.Cells[0].Name, "shell")
	if err != nil || ref.Cell != "api-2" {
		t.Errorf("%v, %v", ref, err)
	}
}

func TestOfferOfADirectoryWhoseCellWasDeletedGetsAFreshName(t *testing.T) {
	w := newWorld(t)
	w.cellWith(t, "shell")
	if err := w.Delete(t.Context(), Ref{"api", WholeCell}); err != nil {
		t.Fatal(err)
	}
	w.o.Offer = w.project
	snap, err := w.Refresh(t.Context())
	if err != nil || len(snap.Cells) != 1 || !snap.Cells[0].Offered {
		t.Fatalf("%v, %+v", err, snap.Cells)
	}
	ref, err := w.Open(t.Context(), snap.Cells[0].Name, "shell")
	if err != nil || ref != (Ref{"api-2", 0}) {
		t.Errorf("%v, %v", ref, err)
	}
}

func TestOneDirectoryReachedByALinkIsOneCell(t *testing.T) {
	w := newWorld(t)
	w.cellWith(t)
	link := filepath.Join(filepath.Dir(w.project), "link")
	if err := os.Symlink(w.project, link); err != nil {
		t.Fatal(err)
	}
	w.o.Offer = link
	if snap, err := w.Refresh(t.Context()); err != nil || len(snap.Cells) != 1 {
		t.Errorf("%v: %+v", err, snap.Cells)
	}
}

func TestWithoutAnAgentAShellIsOpened(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.LookPath = func(string) (string, error) { return "", errors.New("not found") }
	})
	ref, err := w.Open(t.Context(), w.cellWith(t), "")
	if err != nil {
		t.Fatal(err)
	}
	if s := w.slot(t, ref); s.Agent != "shell" || !strings.Contains(strings.Join(s.Notes, "\n"), "npm install") {
		t.Errorf("%+v", s)
	}
}

func TestAgentThatIsNotInstalledSaysHowToGetIt(t *testing.T) {
	w := newWorld(t)
	name := w.cellWith(t)
	for _, agentName := range []string{"gemini", "nosuch"} {
		if _, err := w.Open(t.Context(), name, agentName); err == nil || !strings.Contains(err.Error(), agentName) && !strings.Contains(err.Error(), "Gemini") {
			t.Errorf("open %s: %v", agentName, err)
		}
	}
	if snap, _ := w.Refresh(t.Context()); len(snap.Cells[0].Slots) != 0 {
		t.Errorf("a slot was left behind: %+v", snap.Cells[0].Slots)
	}
	choices, err := w.Agents(t.Context(), name)
	if err != nil || !choices[0].Found || choices[0].Name != "claude" || choices[len(choices)-1].Name != "shell" {
		t.Errorf("%+v, %v", choices, err)
	}
}

func TestOrderOfTheSettingsDecidesWhichAgentIsFirst(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Order = []string{"nosuch", "gemini", "shell"} })
	ref, err := w.Open(t.Context(), w.cellWith(t), "")
	if err != nil {
		t.Fatal(err)
	}
	if s := w.slot(t, ref); s.Agent != "shell" { // gemini is not installed
		t.Errorf("%+v", s)
	}
	if got := w.agentNames(); got[0] != "gemini" || got[1] != "shell" || got[2] != "claude" {
		t.Errorf("%v", got)
	}
}

func TestOpenThatFailsLeavesNoSlot(t *testing.T) {
	w := newWorld(t)
	name := w.cellWith(t)
	w.opener.err = errors.New("no room")
	if _, err := w.Open(t.Context(), name, "shell"); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("%v", err)
	}
	if snap, _ := w.Refresh(t.Context()); len(snap.Cells[0].Slots) != 0 {
		t.Errorf("%+v", snap.Cells[0].Slots)
	}
}

func TestNoAnswerFromTmuxIsUnknownNeverDead(t *testing.T) {
	w := newWorld(t)
	w.cellWith(t, "claude", "claude")
	if err := w.db.SetStopped(t.Context(), "api", 1, true); err != nil {
		t.Fatal(err)
	}
	w.server.list = tmux.List{Known: false, Err: "tmux gives no answer", Panes: []tmux.Pane{{ID: "%9", Cell: "api", Dead: true}}}
	if s := w.slot(t, Ref{"api", 0}); s.Status != Unknown {
		t.Errorf("a slot that may be alive: %v", s.Status)
	}
	if s := w.slot(t, Ref{"api", 1}); s.Status != Stopped {
		t.Errorf("a slot that the user stopped: %v", s.Status)
	}
	if snap, _ := w.Refresh(t.Context()); snap.Server != "tmux gives no answer" {
		t.Errorf("%q", snap.Server)
	}
}

func TestNothingIsEndedOnAMissingAnswer(t *testing.T) {
	w := newWorld(t)
	w.cellWith(t, "claude")
	w.server.list = tmux.List{Known: false, Err: "no answer", Panes: []tmux.Pane{{ID: "%9", Cell: "api"}}}
	r := Ref{"api", 0}
	for what, err := range map[string]error{
		"stop": w.Stop(t.Context(), r), "delete": w.Delete(t.Context(), r),
		"delete the cell": w.Delete(t.Context(), Ref{"api", WholeCell}), "restart": w.Restart(t.Context(), r),
	} {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(w.server.killed) != 0 {
		t.Errorf("killed %v", w.server.killed)
	}
	if s, err := w.db.Slot(t.Context(), "api", 0); err != nil || s.Stopped {
		t.Errorf("the row was changed: %+v, %v", s, err)
	}
}

func TestServerThatWasKilledLeavesStoppedSlotsThatRestartInTheirConversation(t *testing.T) {
	w := newWorld(t)
	ref, err := w.Open(t.Context(), w.cellWith(t), "claude")
	if err != nil {
		t.Fatal(err)
	}
	w.server.set(func(l *tmux.List) { l.Panes = nil })
	s := w.slot(t, ref)
	if s.Status != Stopped || s.Pane != "" || !strings.Contains(s.Detail, "restart") {
		t.Errorf("%+v", s)
	}
	if err := w.Restart(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	last := w.opener.requests[len(w.opener.requests)-1]
	if last.Slot != ref.Slot || last.Agent != "claude" || last.Program != "/usr/bin/claude" {
		t.Errorf("%+v", last)
	}
	if s := w.slot(t, ref); s.Pane == "" || s.SessionID != cell.SessionID("api-0") {
		t.Errorf("%+v", s)
	}
}

func TestStopEndsThePaneAndUndoStartsItAgain(t *testing.T) {
	w := newWorld(t)
	ref, err := w.Open(t.Context(), w.cellWith(t), "claude")
	if err != nil {
		t.Fatal(err)
	}
	pane := w.slot(t, ref).Pane
	if err := w.Stop(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if s := w.slot(t, ref); s.Status != Stopped || !slices.Equal(w.server.killed, []string{pane}) {
		t.Errorf("%+v, killed %v", s, w.server.killed)
	}
	said, err := w.Undo(t.Context())
	if err != nil || !strings.Contains(said, "stop api:0") {
		t.Fatalf("%q, %v", said, err)
	}
	if s := w.slot(t, ref); s.Pane == "" {
		t.Errorf("not started again: %+v", s)
	}
}

func TestSlotThatCouldNotBeStoppedIsNotCalledStopped(t *testing.T) {
	w := newWorld(t)
	ref, err := w.Open(t.Context(), w.cellWith(t), "shell")
	if err != nil {
		t.Fatal(err)
	}
	w.server.killErr = errors.New("refused")
	if err := w.Stop(t.Context(), ref); err == nil {
		t.Fatal("no error")
	}
	if s, err := w.db.Slot(t.Context(), ref.Cell, ref.Slot); err != nil || s.Stopped {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDeletedCellComesBackWithItsSlots(t *testing.T) {
	w := newWorld(t)
	ref, err := w.Open(t.Context(), w.cellWith(t), "shell")
	if err != nil {
		t.Fatal(err)
	}
	whole := Ref{"api", WholeCell}
	if err := w.Delete(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	if snap, _ := w.Refresh(t.Context()); len(snap.Cells) != 0 || len(w.server.killed) != 1 {
		t.Fatalf("%+v, killed %v", snap.Cells, w.server.killed)
	}
	if trash, err := w.Trash(t.Context()); err != nil || len(trash) != 1 || trash[0].Ref != whole {
		t.Errorf("%+v, %v", trash, err)
	}
	if err := w.Restore(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	if s := w.slot(t, ref); s.Status != Stopped {
		t.Errorf("%+v", s)
	}
	if err := w.Restore(t.Context(), whole); !errors.Is(err, ErrNotFound) {
		t.Errorf("restored twice: %v", err)
	}
}

func TestVanishedProjectDirectoryMarksItsCellAndRefusesToStart(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"gone": os.Remove,
		"file": func(dir string) error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cellWith(t, "shell")
			if err := spoil(w.project); err != nil {
				t.Fatal(err)
			}
			snap, err := w.Refresh(t.Context())
			if err != nil || !strings.Contains(snap.Cells[0].Problem, name) {
				t.Errorf("%v: %+v", err, snap.Cells)
			}
			if _, err := w.Open(t.Context(), "api", "shell"); err == nil || len(w.opener.requests) != 0 {
				t.Errorf("%v, %d started", err, len(w.opener.requests))
			}
			if err := w.Restart(t.Context(), Ref{"api", 0}); err == nil || len(w.server.killed) != 0 {
				t.Errorf("%v, killed %v", err, w.server.killed)
			}
			if _, err := w.NewCell(t.Context(), NewCell{ProjectDir: w.project}); err == nil {
				t.Error("a cell was made of it")
			}
		})
	}
}

func TestWorkspaceNamedByAProjectCannotLeaveTheDirectoryOfWorkspaces(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"../..", "/etc", "a/b", "..", "Main", "a b"} {
		w.files.config.Cell.Workspace = name
		if made, err := w.NewCell(t.Context(), NewCell{ProjectDir: w.project}); err == nil {
			t.Errorf("workspace %q: made %s", name, made)
		}
	}
}

func TestStatusesAreTheAgentsOwn(t *testing.T) {
	w := newWorld(t)
	ref, err := w.Open(t.Context(), w.cellWith(t), "claude")
	if err != nil {
		t.Fatal(err)
	}
	since := w.now.Add(-4 * time.Minute)
	for state, want := range map[agent.State]Status{
		agent.Waiting: Waiting, agent.Working: Running, agent.Idle: Idle, agent.Failed: Failed,
		agent.LoginNeeded: Failed, agent.Unknown: Unknown,
	} {
		w.watcher.set(ref.String(), agent.Status{State: state, Question: "Proceed?", Since: since})
		if s := w.slot(t, ref); s.Status != want || s.Question != "Proceed?" {
			t.Errorf("%v: %+v", state, s)
		}
	}
	w.watcher.set(ref.String(), agent.Status{State: agent.Waiting, Since: since})
	if s := w.slot(t, ref); !s.Since.Equal(since) {
		t.Errorf("since %v, want %v", s.Since, since)
	}
	if got := w.watcher.observed; len(got) != 1 || got[0].Key != "api:0" || got[0].Home != w.o.Home || got[0].Config.AppName() != "api-0" {
		t.Errorf("%+v", got)
	}
	w.server.set(func(l *tmux.List) { l.Panes[0].Dead, l.Panes[0].ExitStatus = true, 137 })
	if s := w.slot(t, ref); s.Status != Dead || s.ExitStatus != 137 || !strings.Contains(s.Detail, "exited 137") {
		t.Errorf("%+v", s)
	}
}

func TestAgeOfAStoppedSlotDoesNotStartAnewWithEachList(t *testing.T) {
	w := newWorld(t)
	w.cellWith(t, "shell")
	first := w.slot(t, Ref{"api", 0}).Since
	w.now = w.now.Add(time.Hour)
	if again := w.slot(t, Ref{"api", 0}).Since; !again.Equal(first) {
		t.Errorf("%v, then %v", first, again)
	}
}

func TestWatchersGetTheNewestListAfterAChange(t *testing.T) {
	w := newWorld(t)
	w.cellWith(t, "claude")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	lists := w.Watch(ctx)
	waitFor(t, lists, func(s Snapshot) bool { return len(s.Cells) == 1 && s.Cells[0].Slots[0].Status == Stopped })
	w.server.set(func(l *tmux.List) { l.Panes = append(l.Panes, tmux.Pane{ID: "%1", Cell: "api"}) })
	waitFor(t, lists, func(s Snapshot) bool { return s.Cells[0].Slots[0].Pane == "%1" })
	w.watcher.set("api:0", agent.Status{State: agent.Waiting, Question: "Proceed?"})
	waitFor(t, lists, func(s Snapshot) bool { return s.Cells[0].Slots[0].Question == "Proceed?" })
	if err := w.Rename(ctx, Ref{"api", WholeCell}, "Backend"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, lists, func(s Snapshot) bool { return s.Cells[0].Title == "Backend" })
	cancel()
	<-ended
	for range lists { // closed when its context has ended
	}
}

func TestChangeOfAnotherProcessShowsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.cellWith(t, "shell")
	other, _, err := state.Open(t.Context(), w.db.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	lists := w.Watch(ctx)
	waitFor(t, lists, func(s Snapshot) bool { return len(s.Cells) == 1 })
	if err := other.RenameCell(ctx, "api", "theirs"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, lists, func(s Snapshot) bool { return s.Cells[0].Title == "theirs" })
	cancel()
	<-ended
}

func waitFor(t *testing.T, lists <-chan Snapshot, ok func(Snapshot) bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	var last Snapshot
	for {
		select {
		case s, open := <-lists:
			if !open {
				t.Fatal("the channel was closed")
			}
			if last = s; ok(s) {
				return
			}
		case <-deadline:
			t.Fatalf("not seen; the last list was %+v", last)
		}
	}
}

func TestEndOfATurnIsToldToConversationsAndAQuestionIsNot(t *testing.T) {
	out := &outbox{told: make(chan string, 10), open: []convo.Entry{{Cell: "api", Slot: 0, Delivery: convo.Queued}, {Cell: "api", Slot: 0, Delivery: convo.Unconfirmed}}}
	w := newWorld(t, func(o *Options) { o.Conversations = out })
	ref, err := w.Open(t.Context(), w.cellWith(t), "claude")
	if err != nil {
		t.Fatal(err)
	}
	if s := w.slot(t, ref); s.Queued != 1 {
		t.Errorf("%d queued, want 1", s.Queued)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	lists := w.Watch(ctx)
	for _, step := range []struct {
		state agent.State
		want  Status
		told  string
	}{
		{agent.Working, Running, "ready"}, {agent.Waiting, Waiting, ""}, {agent.Working, Running, "ready"},
		{agent.Unknown, Unknown, ""}, {agent.Idle, Idle, "answered ready"},
	} {
		w.watcher.set(ref.String(), agent.Status{State: step.state})
		waitFor(t, lists, func(s Snapshot) bool { return s.Cells[0].Slots[0].Status == step.want })
		for _, want := range strings.Fields(step.told) {
			if got := <-out.told; got != want {
				t.Errorf("%v: told %q, want %q", step.state, got, want)
			}
		}
	}
	cancel()
	<-ended
	if len(out.told) != 0 {
		t.Errorf("told %q besides", <-out.told)
	}
}

func TestDatabaseThatGivesNoAnswerLeavesTheLastListWithAReason(t *testing.T) {
	w := newWorld(t)
	w.cellWith(t, "shell")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	lists := w.Watch(ctx)
	waitFor(t, lists, func(s Snapshot) bool { return len(s.Cells) == 1 })
	w.db.Close()
	w.server.set(func(*tmux.List) {})
	waitFor(t, lists, func(s Snapshot) bool { return len(s.Cells) == 1 && strings.Contains(s.Server, "old") })
	cancel()
	<-ended
}

func TestEventsTellWhatWasDoneNewestFirst(t *testing.T) {
	w := newWorld(t)
	w.cellWith(t, "shell")
	if err := w.Pin(t.Context(), "api", true); err != nil {
		t.Fatal(err)
	}
	if err := w.Stop(t.Context(), Ref{"api", 7}); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	events, err := w.Events(t.Context(), 2)
	if err != nil || len(events) != 2 || events[0].Action != "stop api:7" || events[0].Error == "" || events[1].Action != "pin api" {
		t.Errorf("%+v, %v", events, err)
	}
}
