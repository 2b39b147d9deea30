package convo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellmux/shellctx"
	"cellmux/shellctx/protocol"
)

func answer(id, body string) protocol.ChatMessage {
	return protocol.NewText(id, protocol.Assistant, body, time.Unix(1_800_000_000, 0))
}

func ids(entries []Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Message.ID)
	}
	return all
}

func numbered(from, to int) []protocol.ChatMessage {
	var all []protocol.ChatMessage
	for i := from; i < to; i++ {
		all = append(all, answer(fmt.Sprint(i), fmt.Sprint("text ", i)))
	}
	return all
}

func TestPagesGoFromTheNewestUp(t *testing.T) {
	s, ctx := newService(t, nil), t.Context()
	// Other conversations lie between.
	other := Target{Session: "other", Cell: "web"}
	for i := range 10 {
		if _, err := s.Append(ctx, api, numbered(i, i+1)...); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(ctx, other, numbered(i, i+1)...); err != nil {
			t.Fatal(err)
		}
	}
	var pages [][]string
	for before := int64(0); ; {
		page, err := s.Page(ctx, api.Session, before, 4)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		pages = append(pages, ids(page))
		before = page[0].Seq
	}
	if want := [][]string{{"6", "7", "8", "9"}, {"2", "3", "4", "5"}, {"0", "1"}}; !reflect.DeepEqual(pages, want) {
		t.Fatalf("pages %v", pages)
	}
	middle, err := s.Page(ctx, api.Session, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	around, err := s.Around(ctx, api.Session, middle[0].Seq, 2)
	if err != nil || !reflect.DeepEqual(ids(around), []string{"3", "4", "5", "6"}) {
		t.Fatalf("around %v, %v", ids(around), err)
	}
	if page, err := s.Page(ctx, "nobody's", 0, 5); err != nil || len(page) != 0 {
		t.Fatalf("an unknown conversation: %v, %v", page, err)
	}
}

func TestABatchIsIdempotentMessageByMessage(t *testing.T) {
	s, ctx := newService(t, nil), t.Context()
	if _, err := s.Append(ctx, api, numbered(0, 70)...); err != nil {
		t.Fatal(err)
	}
	entries, err := s.Append(ctx, api, numbered(60, 150)...)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(entries); i++ {
		if entries[i].Seq <= entries[i-1].Seq {
			t.Fatalf("entries %d and %d have places %d and %d", i-1, i, entries[i-1].Seq, entries[i].Seq)
		}
	}
	page, err := s.Page(ctx, api.Session, 0, 1000)
	if err != nil || len(page) != 150 {
		t.Fatalf("%d messages, %v", len(page), err)
	}
	for i, e := range page {
		if e.Message.ID != fmt.Sprint(i) || e.Message.Text() != fmt.Sprint("text ", i) {
			t.Fatalf("place %d holds %s: %q", i, e.Message.ID, e.Message.Text())
		}
	}
	conflict := numbered(150, 153)
	conflict = append(conflict, answer("7", "something else"))
	if _, err := s.Append(ctx, api, conflict...); err == nil {
		t.Fatal("another message took the ID of a stored one")
	}
	if page, err := s.Page(ctx, api.Session, 0, 1000); err != nil || len(page) != 150 {
		t.Fatalf("a failed batch left %d messages, %v", len(page), err)
	}
}

func TestHistoryIsNotQueuedByASecondSubmit(t *testing.T) {
	p := readyPane()
	s := newService(t, func(o *Options) { o.Pane = p })
	if _, err := s.Append(t.Context(), api, text("m1", "told long ago")); err != nil {
		t.Fatal(err)
	}
	submit(t, s, text("m1", "told long ago"))
	deliver(t, s)
	if len(p.pastes) != 0 {
		t.Fatalf("typed %q", p.pastes)
	}
}

func TestManyWritersKeepOneOrder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cellmux.db")
	const writers, each = 4, 25
	var wait sync.WaitGroup
	for w := range writers {
		s := New(Options{DB: openDatabase(t, path), LockDir: dir})
		wait.Go(func() {
			for i := range each {
				if _, err := s.Append(context.Background(), api, answer(fmt.Sprintf("%d-%d", w, i), "x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	s := New(Options{DB: openDatabase(t, path), LockDir: dir})
	page, err := s.Page(t.Context(), api.Session, 0, 1000)
	if err != nil || len(page) != writers*each {
		t.Fatalf("%d messages, %v", len(page), err)
	}
	next := map[string]int{}
	for _, e := range page {
		writer, number, _ := strings.Cut(e.Message.ID, "-")
		if number != fmt.Sprint(next[writer]) {
			t.Fatalf("writer %s: %s comes where %d should", writer, number, next[writer])
		}
		next[writer]++
	}
}

func TestUnknownPartsAreStoredByteForByte(t *testing.T) {
	s := newService(t, nil)
	var m protocol.ChatMessage
	const part = `{"type":"image","data":  "AA==","n":1.50}`
	if err := json.Unmarshal([]byte(`{"id":"m","role":"assistant","content":[`+part+`],"later":[ 1 ]}`), &m); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), api, m); err != nil {
		t.Fatal(err)
	}
	page, err := s.Page(t.Context(), api.Session, 0, 1)
	if err != nil || string(page[0].Message.Content[0].Raw()) != part || string(page[0].Message.Extra["later"]) != "[ 1 ]" {
		t.Fatalf("%v, %v", page, err)
	}
}

func TestAskPolicyIsFixedByTheLineThenTheConversationThenTheDefault(t *testing.T) {
	s, ctx := newService(t, nil), t.Context()
	asks := func(line, global bool) bool {
		t.Helper()
		got, err := s.Asks(ctx, api, line, global)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if asks(false, false) || !asks(false, true) || !asks(true, false) {
		t.Error("without a policy the line or the default decides")
	}
	for policy, want := range map[AskPolicy]bool{AskOn: true, AskOff: false} {
		if err := s.SetAskPolicy(ctx, api, policy); err != nil {
			t.Fatal(err)
		}
		if asks(false, false) != want || asks(false, true) != want || !asks(true, false) {
			t.Errorf("policy %v does not decide", policy)
		}
	}
}

func TestChangesAreToldAcrossHandles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cellmux.db")
	writer := New(Options{DB: openDatabase(t, path), LockDir: dir})
	reader := New(Options{DB: openDatabase(t, path), LockDir: dir, Path: path})
	changed := reader.Changed(t.Context())
	told := func() bool {
		select {
		case session := <-changed:
			return session == api.Session || session == ""
		default:
			return false
		}
	}
	n := 0
	eventually(t, "a message of another handle is told", func() bool {
		// The watch begins at some moment after Changed has returned.
		if _, err := writer.Append(t.Context(), api, answer(fmt.Sprint(n), "x")); err != nil {
			t.Fatal(err)
		}
		n++
		return told()
	})
	seq := submit(t, writer, text("m", "hi")).Seq
	eventually(t, "the message is told", told)
	if err := writer.Discard(t.Context(), seq); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a state is told", told)
}

func TestASlowReaderGetsAnyForSeveral(t *testing.T) {
	s := newService(t, func(o *Options) { o.Path = "" })
	changed := s.Changed(t.Context())
	s.changed("a")
	s.changed("a")
	if got := <-changed; got != "a" {
		t.Fatalf("got %q", got)
	}
	s.changed("a")
	s.changed("b")
	if got := <-changed; got != "" {
		t.Fatalf("got %q, want any", got)
	}
}

func TestExportAndImport(t *testing.T) {
	p := readyPane()
	from := newService(t, func(o *Options) { o.Pane = p })
	ctx := t.Context()
	submit(t, from, record(t, "r1", shellctx.Record{Command: "ls", Output: "<a> & b\n\u2028"}))
	submit(t, from, text("m1", "hi"))
	deliver(t, from)
	if err := from.Answered(ctx, api, time.Now(), answer("a1", "hello\nworld")); err != nil {
		t.Fatal(err)
	}
	p.set(func(p *pane) { p.state = PaneState{} })
	submit(t, from, text("m2", "still queued"))
	submit(t, from, record(t, "r2", shellctx.Record{Command: "pwd"}))

	var first bytes.Buffer
	if err := from.Export(ctx, &first); err != nil {
		t.Fatal(err)
	}
	box := readyPane()
	to := newService(t, func(o *Options) { o.Pane = box })
	done, err := to.Import(ctx, bytes.NewReader(first.Bytes()))
	if err != nil || done != (Imported{Messages: 5}) {
		t.Fatalf("%+v, %v", done, err)
	}
	if got, want := states(t, to), []string{"r1 answered", "m1 answered", "a1 ", "m2 failed", "r2 saved"}; !reflect.DeepEqual(got, want) && !reflect.DeepEqual(got, append([]string{"r1 submitted"}, want[1:]...)) {
		t.Fatalf("imported %v", got)
	}
	deliver(t, to)
	submit(t, to, text("m3", "new"))
	deliver(t, to)
	if got := box.submitted(); !reflect.DeepEqual(got, []string{"new"}) {
		t.Fatalf("what was imported was delivered: %q", got)
	}
	if done, err := to.Import(ctx, bytes.NewReader(first.Bytes())); err != nil || done != (Imported{Known: 5}) {
		t.Fatalf("a second time: %+v, %v", done, err)
	}
	original, err := from.Page(ctx, api.Session, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	imported, err := to.Page(ctx, api.Session, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range original {
		a, _ := original[i].Message.Encode()
		b, _ := imported[i].Message.Encode()
		if !bytes.Equal(a, b) {
			t.Errorf("message %d: %s became %s", i, a, b)
		}
	}
}

func TestImportNamesTheLineThatItCannotRead(t *testing.T) {
	s := newService(t, nil)
	const header = `{"format":"cellmux.conversations","version":1}` + "\n"
	const good = `{"session":"s","cell":"c","slot":0,"agent":"a","message":{"id":"1","role":"user","content":[]}}` + "\n"
	for input, want := range map[string]string{
		"":                                     "header",
		"{}\n":                                 "no export",
		header + good + "\n{\n":                "line 3",
		header + good + `{"x":1}`:              "line 3",
		strings.Replace(header, ":1", ":9", 1): "version 9",
	} {
		if _, err := s.Import(t.Context(), strings.NewReader(input)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", input, err, want)
		}
	}
	if page, err := s.Page(t.Context(), "s", 0, 10); err != nil || len(page) != 1 {
		t.Fatalf("the lines before: %v, %v", page, err)
	}
}

// A line in the middle of an import that is no message, or has another one's ID,
// is named by its number; the lines before it are stored and counted.
func TestImportStopsAtTheLineThatItRefuses(t *testing.T) {
	for name, bad := range map[string]string{
		"no message":       `{"session":"s"}`,
		"null":             `{"session":"s","message":null}`,
		"a number":         `{"session":"s","message":7}`,
		"a role of 7":      `{"session":"s","message":{"id":"x","role":7,"content":[]}}`,
		"no ID":            `{"session":"s","message":{"role":"user","content":[]}}`,
		"another one's ID": `{"session":"s","message":{"id":"m1","role":"user","content":[{"type":"text","text":"other"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, nil)
			lines := []string{`{"format":"cellmux.conversations","version":1}`}
			for i := range 300 {
				lines = append(lines, fmt.Sprintf(`{"session":"s","cell":"c","agent":"a","message":{"id":"m%d","role":"user","content":[]}}`, i))
			}
			lines = slices.Insert(lines, 290, bad)
			done, err := s.Import(t.Context(), strings.NewReader(strings.Join(lines, "\n")))
			if err == nil || !strings.Contains(err.Error(), "line 291:") || done != (Imported{Messages: 289}) {
				t.Errorf("%+v, %v", done, err)
			}
			if page, err := s.Page(t.Context(), "s", 0, 1000); err != nil || len(page) != 289 {
				t.Errorf("%d are stored, %v", len(page), err)
			}
		})
	}
}

func TestForgottenConversationsAreFoundNoMore(t *testing.T) {
	s, ctx := newService(t, nil), t.Context()
	submit(t, s, text("m1", "needle"))
	if hits, err := s.Search(ctx, Query{Text: "needle"}); err != nil || len(hits) != 1 {
		t.Fatalf("%v, %v", hits, err)
	}
	submit(t, s, text("m2", "needle not indexed yet"))
	if err := s.Forget(ctx, api.Session); err != nil {
		t.Fatal(err)
	}
	submit(t, s, text("m3", "hay"))
	if hits, err := s.Search(ctx, Query{Text: "needle"}); err != nil || len(hits) != 0 {
		t.Fatalf("%v, %v", hits, err)
	}
	if got := states(t, s); !reflect.DeepEqual(got, []string{"m3 queued"}) {
		t.Fatal(got)
	}
}
