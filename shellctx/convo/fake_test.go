package convo

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cellmux/cell/state"
	"cellmux/shellctx"
	"cellmux/shellctx/protocol"
)

var api = Target{Session: "5f0c6f1e-0000-5000-8000-000000000001", Cell: "api", Slot: 0, Agent: "claude"}

func openDatabase(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, _, err := state.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), "convo", Migrations()); err != nil {
		t.Fatal(err)
	}
	return db.SQL()
}

// newService returns a service on a database of its own.
func newService(t testing.TB, change func(*Options)) *Service {
	t.Helper()
	dir := t.TempDir()
	options := Options{
		DB: openDatabase(t, filepath.Join(dir, "cellmux.db")), LockDir: dir, Path: filepath.Join(dir, "cellmux.db"),
		ProofTimeout: 50 * time.Millisecond, RetryInterval: 20 * time.Millisecond,
	}
	if change != nil {
		change(&options)
	}
	return New(options)
}

// pane is an agent's box. Each field that a test sets is guarded by mu.
type pane struct {
	mu       sync.Mutex
	state    PaneState
	steers   bool
	box      string   // pasted, no Enter yet
	turns    []string // what became a turn
	pastes   []string
	pasteErr error
	enterErr error
	proof    func(text string) (bool, error) // nil: what became a turn is proven
	onPaste  func()
	onEnter  func()
}

func readyPane() *pane { return &pane{state: PaneState{Live: true, Ready: true}} }

func (p *pane) set(change func(*pane)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *pane) submitted() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.turns...)
}

func (p *pane) State(context.Context, Target) (PaneState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, nil
}

func (p *pane) Paste(_ context.Context, _ Target, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pasteErr != nil {
		return p.pasteErr
	}
	p.pastes = append(p.pastes, text)
	p.box += text
	if p.onPaste != nil {
		p.onPaste()
	}
	return nil
}

func (p *pane) Enter(context.Context, Target) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.enterErr != nil {
		return p.enterErr
	}
	p.turns = append(p.turns, p.box)
	p.box = ""
	if p.onEnter != nil {
		p.onEnter()
	}
	return nil
}

func (p *pane) Submitted(_ context.Context, _ Target, text string, _ time.Time) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proof != nil {
		return p.proof(text)
	}
	for _, turn := range p.turns {
		if strings.Contains(turn, text) {
			return true, nil
		}
	}
	return false, nil
}

func (p *pane) SteersOnEnter(Target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.steers
}

func text(id, body string) protocol.ChatMessage {
	return protocol.NewText(id, protocol.User, body, time.Unix(1_800_000_000, 0))
}

func record(t testing.TB, id string, r shellctx.Record) protocol.ChatMessage {
	t.Helper()
	message, err := shellctx.NewMessage(id, r, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func submit(t testing.TB, s *Service, m protocol.ChatMessage) Entry {
	t.Helper()
	receipt, err := s.Submit(t.Context(), api, m)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.Entry
}

func deliver(t testing.TB, s *Service) {
	t.Helper()
	if err := s.Deliver(t.Context(), api); err != nil {
		t.Fatal(err)
	}
}

// states describes a conversation: "id state" for each message.
func states(t testing.TB, s *Service) []string {
	t.Helper()
	entries, err := s.Page(t.Context(), api.Session, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, fmt.Sprintf("%s %s", e.Message.ID, e.Delivery))
	}
	return all
}

func entry(t testing.TB, s *Service, seq int64) Entry {
	t.Helper()
	e, err := s.Entry(t.Context(), seq)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// eventually waits until a condition holds, with a deadline.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(60 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			t.Fatalf("not within a minute: %s", what)
		case <-tick.C:
		}
	}
}
