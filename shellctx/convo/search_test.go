package convo

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cellmux/shellctx"
)

func found(t *testing.T, s *Service, q Query) []string {
	t.Helper()
	hits, err := s.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, h := range hits {
		all = append(all, h.Entry.Message.ID)
	}
	return all
}

func TestSearchFindsAndFilters(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := newService(t, func(o *Options) { o.Now = func() time.Time { return now } })
	web := Target{Session: "w", Cell: "web-2", Slot: 1, Agent: "codex"}
	store := func(to Target, m any) {
		t.Helper()
		var err error
		switch m := m.(type) {
		case shellctx.Record:
			_, err = s.Submit(t.Context(), to, record(t, m.Command, m))
		case string:
			_, err = s.Submit(t.Context(), to, text(m, m))
		}
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
	}
	store(api, "The session store fails: see auth.go")
	store(api, shellctx.Record{Command: "go test ./store", Output: "\x1b[31mFAIL\x1b[0m store 0.1s\n", ExitCode: 1})
	store(web, shellctx.Record{Command: "npm run build", Output: "done, session kept", ExitCode: 0})
	store(web, "Où est le café? (Straße)")
	store(web, shellctx.Record{Command: "kill -9 1", Output: "store", ExitCode: -1})
	store(web, "日本語のテスト")
	zero, one := 0, 1
	for name, test := range map[string]struct {
		query Query
		want  []string
	}{
		"newest first":               {Query{Text: "store"}, []string{"kill -9 1", "go test ./store", "The session store fails: see auth.go"}},
		"any case":                   {Query{Text: "SESSION"}, []string{"npm run build", "The session store fails: see auth.go"}},
		"all words":                  {Query{Text: "store session"}, []string{"The session store fails: see auth.go"}},
		"a phrase":                   {Query{Text: `"session store"`}, []string{"The session store fails: see auth.go"}},
		"a phrase in another order":  {Query{Text: `"store session"`}, nil},
		"an open quote":              {Query{Text: `"session store`}, []string{"The session store fails: see auth.go"}},
		"with punctuation":           {Query{Text: "auth.go"}, []string{"The session store fails: see auth.go"}},
		"colours do not hide a word": {Query{Text: "fail"}, []string{"go test ./store"}},
		"without accents":            {Query{Text: "cafe ou"}, []string{"Où est le café? (Straße)"}},
		"with accents":               {Query{Text: "CAFÉ"}, []string{"Où est le café? (Straße)"}},
		"a beginning":                {Query{Text: "sess*"}, []string{"npm run build", "The session store fails: see auth.go"}},
		"punctuation alone":          {Query{Text: "-- ?!"}, nil},
		"the query language":         {Query{Text: `store AND NOT " OR facets:x ) NEAR(`}, nil},
		"a command":                  {Query{Text: "npm"}, []string{"npm run build"}},
		"session":                    {Query{Text: "store", Session: "w"}, []string{"kill -9 1"}},
		"cell":                       {Query{Text: "store", Cell: "web-2"}, []string{"kill -9 1"}},
		"agent":                      {Query{Text: "store", Agent: "claude"}, []string{"go test ./store", "The session store fails: see auth.go"}},
		"not that exit":              {Query{Text: "store", ExitNot: &zero}, []string{"kill -9 1", "go test ./store"}},
		"not that exit, of two":      {Query{ExitNot: &one}, []string{"kill -9 1", "npm run build"}},
		"that exit":                  {Query{Exit: &one}, []string{"go test ./store"}},
		"since":                      {Query{Text: "store", Since: time.Unix(1_800_000_000, 0).Add(2 * time.Hour)}, []string{"kill -9 1"}},
		"filters alone":              {Query{Cell: "web-2", Limit: 2}, []string{"日本語のテスト", "kill -9 1"}},
		"nothing narrows":            {Query{Limit: 2}, []string{"日本語のテスト", "kill -9 1"}},
		"a limit":                    {Query{Text: "store", Limit: 1}, []string{"kill -9 1"}},
		"a part of a sentence":       {Query{Text: "本語"}, []string{"日本語のテスト"}},
		"a filter is no word":        {Query{Text: "zr"}, nil},
	} {
		if got := found(t, s, test.query); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestRankedSearchPutsTheBestFirst(t *testing.T) {
	s := newService(t, nil)
	submit(t, s, text("best", "needle needle needle"))
	submit(t, s, text("newest", "a needle in a haystack of many other words that say nothing about it at all"))
	if got := found(t, s, Query{Text: "needle"}); !reflect.DeepEqual(got, []string{"newest", "best"}) {
		t.Fatal(got)
	}
	if got := found(t, s, Query{Text: "needle", Ranked: true}); !reflect.DeepEqual(got, []string{"best", "newest"}) {
		t.Fatal(got)
	}
}

func TestSinceFindsItsBoundAmongMany(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := newService(t, func(o *Options) { o.Now = func() time.Time { return now } })
	for i := range 300 {
		if _, err := s.Append(t.Context(), api, answer(fmt.Sprint(i), "word")); err != nil {
			t.Fatal(err)
		}
		now = now.Add(24 * time.Hour)
	}
	got := found(t, s, Query{Text: "word", Since: time.Unix(1_800_000_000, 0).Add(290 * 24 * time.Hour)})
	if want := []string{"299", "298", "297", "296", "295", "294", "293", "292", "291", "290"}; !reflect.DeepEqual(got, want) {
		t.Fatal(got)
	}
	first, err := s.store.firstSince(t.Context(), time.Unix(1_800_000_000, 0).Add(290*24*time.Hour))
	if err != nil || first < 280 {
		t.Fatalf("the bound is %d, %v", first, err)
	}
}

// An old message that is imported today is not of today, and is shown and
// exported again with the time that it had.
func TestSinceAsksWhenAMessageWasFirstStored(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := newService(t, func(o *Options) { o.Now = func() time.Time { return now } })
	ctx := t.Context()
	if _, err := s.Append(ctx, api, answer("before", "word")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	line := func(id string, at time.Time) string {
		return fmt.Sprintf(`{"session":"%s","cell":"api","agent":"claude","stored":%q,"message":{"id":%q,"role":"assistant","content":[{"type":"text","text":"word"}]}}`+"\n",
			api.Session, at.UTC().Format(time.RFC3339Nano), id)
	}
	export := `{"format":"cellmux.conversations","version":1}` + "\n" +
		line("old", now.Add(-1000*time.Hour)) + line("recent", now.Add(-time.Minute)) + line("not yet", now.Add(1000*time.Hour))
	if _, err := s.Import(ctx, strings.NewReader(export)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if _, err := s.Append(ctx, api, answer("after", "word")); err != nil {
		t.Fatal(err)
	}
	for _, q := range []Query{{Text: "word"}, {Text: "wor*"}, {}, {Text: "word", Ranked: true}} {
		q.Since = now.Add(-90 * time.Minute)
		got := found(t, s, q)
		slices.Sort(got)
		if want := []string{"after", "not yet", "recent"}; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %q", q, got)
		}
	}
	var again bytes.Buffer
	if err := s.Export(ctx, &again); err != nil {
		t.Fatal(err)
	}
	for _, want := range []time.Time{now.Add(-1001 * time.Hour), now.Add(-time.Hour - time.Minute)} {
		if stamp := want.UTC().Format(time.RFC3339Nano); !strings.Contains(again.String(), `"stored":"`+stamp+`"`) {
			t.Errorf("%s is not in the second export:\n%s", stamp, again.String())
		}
	}
}

func TestSearchGoesOnFromItsLastHit(t *testing.T) {
	s := newService(t, nil)
	if _, err := s.Append(t.Context(), api, numbered(0, 10)...); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"text", "te*"} {
		q := Query{Text: words, Limit: 4}
		var got []string
		for {
			hits, err := s.Search(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(hits) == 0 {
				break
			}
			for _, h := range hits {
				got = append(got, h.Entry.Message.ID)
			}
			q.Before = hits[len(hits)-1].Entry.Seq
		}
		if want := []string{"9", "8", "7", "6", "5", "4", "3", "2", "1", "0"}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q", words, got)
		}
	}
}

// The tokens of snippets and queries must be those of the index, or a hit would
// be found and not marked, or asked for and not found.
func TestTokensAreThoseOfTheIndex(t *testing.T) {
	s := newService(t, nil)
	for i, body := range []string{
		"plain words", "under_score dash-ed dot.ted a/b/c", "x1y2 3.14", "ÀÉÎõü straße ﬁ", "日本語 テスト", "emoji🙂glued",
		"don't", "é decomposed e\u0301", "Ελληνικά", "Привет", "a\u00a0b", "½ x²", "نص عربي", "ñandú", "İstanbul", "ǅ", "ภาษาไทย", "한국어", "\U0001f468\u200d\U0001f469", strings.Repeat("é", 300),
	} {
		id := fmt.Sprint(i)
		submit(t, s, text(id, body))
		for _, span := range tokens(body) {
			word := body[span[0]:span[1]]
			if got := found(t, s, Query{Text: word}); !slices.Contains(got, id) {
				t.Errorf("%q of %q is not found", word, body)
			}
			hits, err := s.Search(t.Context(), Query{Text: word, Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hits {
				if !strings.ContainsRune(h.Snippet, MatchStart) {
					t.Errorf("%q is found in %q and not marked", word, h.Snippet)
				}
			}
		}
	}
}

func TestSnippets(t *testing.T) {
	mark := strings.NewReplacer("<", string(MatchStart), ">", string(MatchEnd))
	long := strings.Repeat("lead ", 100) + "needle" + strings.Repeat(" tail", 100)
	for name, test := range map[string]struct{ text, query, want string }{
		"marked":          {"a needle here", "needle", "a <needle> here"},
		"at the end":      {"a needle", "needle", "a <needle>"},
		"a phrase":        {"one two three", `"two three"`, "one <two> <three>"},
		"a beginning":     {"needles", "need*", "<needles>"},
		"one line":        {"a\n\n\tneedle\r\nb", "needle", "a <needle> b"},
		"control bytes":   {"a\x02b\x03\x1bneedle\x07\u009b", "needle", "a b <needle>"},
		"without a match": {"some text", "other", "some text"},
		"without a query": {"some text", "", "some text"},
		"invalid UTF-8":   {"\xff\xfeneedle\xff", "needle", "\ufffd\ufffd<needle>\ufffd"},
	} {
		got := snippet(test.text, parseTerms(test.query))
		if want := mark.Replace(test.want); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	got := snippet(long, parseTerms("needle"))
	if !strings.Contains(got, mark.Replace("<needle>")) || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") {
		t.Errorf("of a long text: %q", got)
	}
	if n := utf8.RuneCountInString(got); n > snippetWidth+4 {
		t.Errorf("it has %d runes", n)
	}
}

func FuzzSearch(f *testing.F) {
	for _, query := range []string{`"`, `*`, `a"b*`, "AND OR NOT", "text : x", "^a", "{a b}", "a + b", "\x00", "\xff*", "e\u0301", "NEAR(a b)", "-a", "col:"} {
		f.Add("some text with a word", query)
	}
	s := newService(f, nil)
	n := 0
	f.Fuzz(func(t *testing.T, body, query string) {
		n++
		if _, err := s.Submit(t.Context(), api, text(fmt.Sprint("f", n), body)); err != nil {
			t.Fatal(err)
		}
		hits, err := s.Search(t.Context(), Query{Text: query, Limit: 3})
		if err != nil {
			t.Fatalf("%q: %v", query, err)
		}
		for _, h := range hits {
			if strings.Count(h.Snippet, string(MatchStart)) != strings.Count(h.Snippet, string(MatchEnd)) {
				t.Fatalf("marks are not paired: %q", h.Snippet)
			}
			if strings.ContainsAny(h.Snippet, "\x00\x1b\n\r\x07") || !utf8.ValidString(h.Snippet) {
				t.Fatalf("the snippet is not clean: %q", h.Snippet)
			}
		}
	})
}
