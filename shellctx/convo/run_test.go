package convo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/shellctx/protocol"
)

// interleaved stores appends of many sizes in two conversations by turns, and
// returns the IDs of each in order.
func interleaved(t *testing.T, s *Service, api, web Target) (apis, webs []string) {
	t.Helper()
	next := 0
	for _, size := range []int{1, 1, 2, 1, 64, 63, 3, 70, 1, 5, 64} {
		for _, target := range []Target{api, web} {
			batch := make([]protocol.ChatMessage, size)
			for i := range batch {
				// Of many lengths and with runes of several bytes, for the cuts.
				batch[i] = answer(fmt.Sprintf("m%03d", next), "needle "+strings.Repeat("ä", next%7)+fmt.Sprintf(" w%d", next))
				next++
			}
			if _, err := s.Append(t.Context(), target, batch...); err != nil {
				t.Fatal(err)
			}
			into := &apis
			if target == web {
				into = &webs
			}
			for _, m := range batch {
				*into = append(*into, m.ID)
			}
		}
	}
	return apis, webs
}

// What one append stored together is read, searched, exported and forgotten
// message by message, from any place within it.
func TestMessagesOfOneAppendAreReadOneByOne(t *testing.T) {
	s, ctx := newService(t, nil), t.Context()
	web := Target{Session: "web", Cell: "web", Agent: "codex"}
	all, others := interleaved(t, s, api, web)
	var runs int
	if err := s.store.db.QueryRowContext(ctx, `SELECT count(*) FROM convo_messages WHERE run < 0`).Scan(&runs); err != nil || runs == 0 {
		t.Fatalf("%d rows are in the run of another, %v: this shows nothing", runs, err)
	}
	whole, err := s.Page(ctx, api.Session, 0, 10_000)
	if err != nil || !slices.Equal(ids(whole), all) {
		t.Fatalf("%v\nwant %v, %v", ids(whole), all, err)
	}
	for i, e := range whole {
		if i > 0 && e.Seq <= whole[i-1].Seq {
			t.Fatalf("message %s has %d after %d", e.Message.ID, e.Seq, whole[i-1].Seq)
		}
		if want := answer(e.Message.ID, e.Message.Text()); !same(t, e.Message, want) || !strings.HasSuffix(e.Message.Text(), fmt.Sprintf(" w%d", numberOf(t, e))) {
			t.Fatalf("%s holds %+v", e.Message.ID, e.Message)
		}
		if page, err := s.Page(ctx, api.Session, e.Seq, 5); err != nil || !slices.Equal(ids(page), all[max(0, i-5):i]) {
			t.Fatalf("before %s: %v, %v", e.Message.ID, ids(page), err)
		}
		if around, err := s.Around(ctx, api.Session, e.Seq, 3); err != nil || !slices.Equal(ids(around), all[max(0, i-3):min(len(all), i+3)]) {
			t.Fatalf("around %s: %v, %v", e.Message.ID, ids(around), err)
		}
		if got := found(t, s, Query{Text: fmt.Sprintf("needle w%d", numberOf(t, e))}); !slices.Equal(got, []string{e.Message.ID}) {
			t.Fatalf("%s is found as %v", e.Message.ID, got)
		}
	}
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	if got := found(t, s, Query{Text: "needl*", Session: api.Session, Limit: 1000}); !slices.Equal(got, reversed) {
		t.Errorf("found %v", got)
	}
	// None of it was stored twice, alone or among new ones.
	for _, e := range whole {
		again, err := s.Append(ctx, api, e.Message)
		if err != nil || len(again) != 1 || again[0].Seq != e.Seq {
			t.Fatalf("%s again: %+v, %v", e.Message.ID, again, err)
		}
	}
	among := []protocol.ChatMessage{answer("new1", "x"), whole[20].Message, answer("new2", "y")}
	if again, err := s.Append(ctx, api, among...); err != nil || again[1].Seq != whole[20].Seq || again[2].Seq <= again[0].Seq {
		t.Fatalf("%+v, %v", again, err)
	}
	if _, err := s.Append(ctx, api, answer("new3", "z"), answer(all[21], "other")); !errors.Is(err, ErrOtherMessage) {
		t.Fatalf("another content under the ID %s: %v", all[21], err)
	}
	if page, err := s.Page(ctx, api.Session, 0, 3); err != nil || !slices.Equal(ids(page), []string{all[len(all)-1], "new1", "new2"}) {
		t.Fatalf("the newest are %v, %v", ids(page), err)
	}
	var export strings.Builder
	if err := s.Export(ctx, &export, web.Session); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(ctx, api.Session); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(ctx, web.Session); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"convo_messages", "convo_search", "convo_conversations"} {
		var left int
		if err := s.store.db.QueryRowContext(ctx, `SELECT count(*) FROM `+table).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d rows are left in %s, %v", left, table, err)
		}
	}
	if done, err := s.Import(ctx, strings.NewReader(export.String())); err != nil || done.Messages != len(others) {
		t.Fatalf("%+v, %v", done, err)
	}
	if page, err := s.Page(ctx, web.Session, 0, 10_000); err != nil || !slices.Equal(ids(page), others) {
		t.Fatalf("after the import: %v, %v", ids(page), err)
	}
	var sound string
	if err := s.store.db.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&sound); err != nil || sound != "ok" {
		t.Errorf("the database: %s, %v", sound, err)
	}
}

func same(t *testing.T, a, b protocol.ChatMessage) bool {
	t.Helper()
	one, err := a.Encode()
	two, errTwo := b.Encode()
	if err != nil || errTwo != nil {
		t.Fatal(err, errTwo)
	}
	return bytes.Equal(one, two)
}

func numberOf(t *testing.T, e Entry) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscanf(e.Message.ID, "m%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A run whose lengths do not fit is an error that names it: never another
// message's text, and no panic.
func TestDamagedRunIsAnErrorThatNamesIt(t *testing.T) {
	for _, lengths := range []string{"", "1 2 3", "-1 9999999", "99999999999999999999", "x", "0 0 0 0"} {
		s, ctx := newService(t, nil), t.Context()
		if _, err := s.Append(ctx, api, answer("first", "makes the conversation")); err != nil {
			t.Fatal(err)
		}
		stored, err := s.Append(ctx, api, numbered(0, 3)...)
		if err != nil {
			t.Fatal(err)
		}
		if result, err := s.store.db.ExecContext(ctx, `UPDATE convo_messages SET lengths = ? WHERE run = 3`, lengths); err != nil {
			t.Fatal(err)
		} else if n, _ := result.RowsAffected(); n != 1 {
			t.Fatalf("%d runs", n)
		}
		for _, e := range stored {
			if _, err := s.store.entry(ctx, e.Seq); err == nil || !strings.Contains(err.Error(), fmt.Sprint("run ", stored[0].Seq)) {
				t.Errorf("lengths %q, message %d: %v", lengths, e.Seq, err)
			}
		}
	}
}

// The newest page of a conversation reads the newest rows and sorts none, however
// long it is.
func TestPagesAreReadInTheirOrder(t *testing.T) {
	s := newService(t, nil)
	for _, statement := range []string{selectBelow, selectFrom} {
		rows, err := s.store.db.QueryContext(context.Background(), `EXPLAIN QUERY PLAN `+statement, "s", 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		all := strings.Join(plan, "\n")
		if strings.Contains(all, "TEMP B-TREE") || strings.Contains(all, "SCAN") || !strings.Contains(all, "COVERING INDEX convo_messages_run") {
			t.Errorf("%s\nis read by\n%s", statement, all)
		}
	}
}

// A buffer that the next append uses again is not what was stored or returned.
func TestAppendKeepsNothingOfItsBuffer(t *testing.T) {
	s, ctx := newService(t, nil), t.Context()
	first, err := s.Append(ctx, api, numbered(0, 3)...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := s.Append(ctx, api, numbered(10+i*64, 10+(i+1)*64)...); err != nil {
			t.Fatal(err)
		}
	}
	for i, e := range first {
		stored, err := s.store.entry(ctx, e.Seq)
		if want := numbered(i, i+1)[0]; err != nil || !same(t, stored.Message, want) || !same(t, e.Message, want) {
			t.Errorf("%d: %+v, %+v, %v", i, stored.Message, e.Message, err)
		}
	}
}

// A message that is too long for a run is stored by itself, at any place of an
// append.
func TestLongMessagesOfOneAppend(t *testing.T) {
	dir := t.TempDir()
	s, ctx := New(Options{DB: openDatabase(t, filepath.Join(dir, "cellmux.db")), LockDir: dir}), t.Context()
	long := strings.Repeat("long ", 1<<20)
	for round := range 2 {
		batch := []protocol.ChatMessage{
			answer(fmt.Sprint("a", round), "short"), answer(fmt.Sprint("b", round), long), answer(fmt.Sprint("c", round), "short"),
		}
		if _, err := s.Append(ctx, api, batch...); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.Page(ctx, api.Session, 0, 4)
	if err != nil || !slices.Equal(ids(page), []string{"c0", "a1", "b1", "c1"}) || page[2].Message.Text() != long {
		t.Fatalf("%v, %v", ids(page), err)
	}
}

// Two screens that read one transcript append the same messages at once, cut in
// different places: each is stored once, whole, by whoever was first.
func TestTwoProcessesAppendTheSameMessagesAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cellmux.db")
	const total = 900
	var services []*Service
	for range 3 {
		services = append(services, New(Options{DB: openDatabase(t, path), LockDir: dir}))
	}
	all := make([]protocol.ChatMessage, total)
	for i := range all {
		all[i] = answer(fmt.Sprintf("m%d", i), fmt.Sprintf("text %d", i))
	}
	ended := make(chan error, len(services))
	for n, s := range services {
		go func() {
			for from, size := 0, 5+n; from < total; size = size%64 + 7 {
				to := min(total, from+size)
				if _, err := s.Append(context.Background(), api, all[from:to]...); err != nil {
					ended <- err
					return
				}
				from = to
			}
			ended <- nil
		}()
	}
	for range services {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	page, err := services[0].Page(t.Context(), api.Session, 0, 2*total)
	if err != nil || len(page) != total {
		t.Fatalf("%d messages, %v", len(page), err)
	}
	seen := map[string]bool{}
	for _, e := range page {
		if n := numberOf(t, e); seen[e.Message.ID] || !same(t, e.Message, all[n]) {
			t.Errorf("%s: twice %v, %s", e.Message.ID, seen[e.Message.ID], e.Message.Text())
		}
		seen[e.Message.ID] = true
	}
}
