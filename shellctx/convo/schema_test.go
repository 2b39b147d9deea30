package convo

import (
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"cellmux/cell/state"
)

// A database of each older version has everything after the migration: the
// messages, their order and times, what is queued, and what the index has seen.
func TestOlderDatabaseKeepsEverything(t *testing.T) {
	for version := 1; version < len(Migrations()); version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) { olderDatabaseKeepsEverything(t, version) })
	}
}

func olderDatabaseKeepsEverything(t *testing.T, version int) {
	ctx, dir := t.Context(), t.TempDir()
	db, _, err := state.Open(ctx, filepath.Join(dir, "cellmux.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(ctx, "convo", Migrations()[:version]); err != nil {
		t.Fatal(err)
	}
	body := func(id, body string) string {
		encoded, err := text(id, body).Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	for _, row := range []struct {
		statement string
		args      []any
	}{
		{`INSERT INTO convo_conversations (id, session, cell, slot, agent, ask) VALUES (7, ?, ?, ?, ?, 2)`, []any{api.Session, api.Cell, api.Slot, api.Agent}},
		{`INSERT INTO convo_messages (id, conversation, message, stored, body) VALUES (3, 7, 'm1', 1700000000000, ?)`, []any{body("m1", "seen needle")}},
		{`INSERT INTO convo_messages (id, conversation, message, stored, body) VALUES (9, 7, 'm2', 1700000001000, ?)`, []any{body("m2", "waiting needle")}},
		{`INSERT INTO convo_outbox (message, conversation, context, state, open, updated) VALUES (3, 7, 0, 'answered', 0, 1), (9, 7, 0, 'queued', 1, 1)`, nil},
		{`INSERT INTO convo_search (rowid, text, facets) VALUES (3, 'seen needle ', ?)`, []any{facets(text("m1", ""), api)}},
		{`UPDATE convo_indexed SET message = 3`, nil},
	} {
		if _, err := db.SQL().ExecContext(ctx, row.statement, row.args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Migrate(ctx, "convo", Migrations()); err != nil {
		t.Fatal(err)
	}
	box := readyPane()
	s := New(Options{DB: db.SQL(), LockDir: dir, Pane: box})
	page, err := s.Page(ctx, api.Session, 0, 10)
	if err != nil || len(page) != 2 || page[0].Seq != 3 || page[1].Seq != 9 || !page[1].Stored.Equal(time.UnixMilli(1_700_000_001_000)) {
		t.Fatalf("%+v, %v", page, err)
	}
	if got, want := states(t, s), []string{"m1 answered", "m2 queued"}; !reflect.DeepEqual(got, want) {
		t.Errorf("states %v", got)
	}
	if policy, err := s.AskPolicy(ctx, api.Session); err != nil || policy != AskOn {
		t.Errorf("policy %v, %v", policy, err)
	}
	if got, want := found(t, s, Query{Text: "needle"}), []string{"m2", "m1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("found %v", got)
	}
	deliver(t, s)
	if got := box.submitted(); !reflect.DeepEqual(got, []string{"waiting needle"}) {
		t.Errorf("delivered %q", got)
	}
	if again, err := s.Append(ctx, api, text("m1", "seen needle")); err != nil || again[0].Seq != 3 {
		t.Errorf("stored again as %+v, %v", again, err)
	}
	if _, err := s.Append(ctx, api, answer("a1", "after")); err != nil {
		t.Fatal(err)
	}
	if page, err := s.Page(ctx, api.Session, 0, 1); err != nil || page[0].Seq <= 9 || page[0].Message.ID != "a1" {
		t.Errorf("the next message: %+v, %v", page, err)
	}
}
