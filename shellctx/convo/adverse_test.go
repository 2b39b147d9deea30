package convo

import (
	"context"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"cellmux/cell/state"
)

// Another process holds the write lock for a while just when the text stands in
// the agent's box: the delivery waits for it and goes on, once.
func TestDatabaseLockedWhileAMessageIsTyped(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cellmux.db")
	p := readyPane()
	s := New(Options{DB: openDatabase(t, path), Path: path, LockDir: dir, Pane: p})
	other, _, err := state.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	released := make(chan error, 1)
	p.onPaste = func() {
		tx, err := other.SQL().BeginTx(context.WithoutCancel(t.Context()), nil)
		if err != nil {
			released <- err
			return
		}
		time.AfterFunc(300*time.Millisecond, func() { released <- tx.Rollback() })
	}
	submit(t, s, text("m1", "hi"))
	began := time.Now()
	deliver(t, s)
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited < 300*time.Millisecond {
		t.Fatalf("it waited %v: the lock was in nobody's way", waited)
	}
	if got := p.submitted(); !reflect.DeepEqual(got, []string{"hi"}) {
		t.Errorf("the agent got %q", got)
	}
	if got := states(t, s); !reflect.DeepEqual(got, []string{"m1 submitted"}) {
		t.Error(got)
	}
}

// A clock that is set back changes neither the order nor what is delivered, and
// hides nothing of the hours in question from a search.
func TestClockThatIsSetBack(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := readyPane()
	s := newService(t, func(o *Options) { o.Pane, o.Now = p, func() time.Time { return now } })
	submit(t, s, text("m1", "word before"))
	deliver(t, s)
	p.onPaste = func() { now = now.Add(-2 * time.Hour) }
	submit(t, s, text("m2", "word while"))
	deliver(t, s)
	p.set(func(p *pane) { p.onPaste = nil })
	submit(t, s, text("m3", "word after"))
	deliver(t, s)
	if got, want := states(t, s), []string{"m1 submitted", "m2 submitted", "m3 submitted"}; !reflect.DeepEqual(got, want) {
		t.Error(got)
	}
	if got, want := p.submitted(), []string{"word before", "word while", "word after"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the agent got %q", got)
	}
	if got, want := found(t, s, Query{Text: "word", Since: now}), []string{"m3", "m2", "m1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("found %q", got)
	}
}
