package convo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cellmux/shellctx/protocol"
)

// A broad beginning must not pay for all rows that it is in, nor a narrow one
// lose what lies further back.
func TestBeginningIsReadFromTheNewestAsFarAsItMustBe(t *testing.T) {
	s := newService(t, nil)
	const messages = readAheadRows + 500
	var batch []protocol.ChatMessage
	for i := range messages {
		body := fmt.Sprintf("word%d", i)
		if i == 3 {
			body += " needles"
		}
		batch = append(batch, answer(fmt.Sprint(i), body))
	}
	if _, err := s.Append(t.Context(), api, batch...); err != nil {
		t.Fatal(err)
	}
	if got := found(t, s, Query{Text: "wor*", Limit: 2}); !reflect.DeepEqual(got, []string{fmt.Sprint(messages - 1), fmt.Sprint(messages - 2)}) {
		t.Errorf("a broad one: %q", got)
	}
	if got := found(t, s, Query{Text: "need*"}); !reflect.DeepEqual(got, []string{"3"}) {
		t.Errorf("an old one: %q", got)
	}
	if got := found(t, s, Query{Text: "w*", Limit: messages + 1}); len(got) != messages {
		t.Errorf("all of them: %d", len(got))
	}
	for text, want := range map[string]struct {
		found int
		more  bool
	}{
		"wor*":         {10, false},
		"needles wor*": {1, false}, // the whole word narrows what is read,
		"need* wor*":   {1, false}, // and so does a narrow beginning
	} {
		terms := parseTerms(text)
		broad, none, err := s.store.broad(t.Context(), terms)
		if err != nil || none || len(broad) != 1 || broad[0].tokens[0] != "wor" {
			t.Errorf("%s: %v are broad, %v, %v", text, broad, none, err)
		}
		entries, before, more, err := s.store.readAhead(t.Context(), Query{Limit: 10}, terms, broad, 0, newestRow)
		if err != nil || len(entries) != want.found || more != want.more {
			t.Errorf("%s: %d read ahead, more %v, %v", text, len(entries), more, err)
		}
		if text == "wor*" && before != entries[9].Seq {
			t.Errorf("it went on to row %d after the page was full", before)
		}
	}
	for _, text := range []string{"nowhere*", "wor* nowhere*", "needles nowhere*"} {
		if _, none, err := s.store.broad(t.Context(), parseTerms(text)); err != nil || !none {
			t.Errorf("%s may be somewhere: %v", text, err)
		}
		if got := found(t, s, Query{Text: text}); len(got) != 0 {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// What is read ahead and what the index finds are one list: nothing twice,
// nothing left out, the same words taken for matches.
func TestReadAheadFindsWhatTheIndexFinds(t *testing.T) {
	s := newService(t, nil)
	random := rand.New(rand.NewPCG(7, 7))
	parts := []string{"ab", "abc", "b", "Ébène", "日本", "a-b", "x_ab", "1ab", "."}
	var batch []protocol.ChatMessage
	for i := range 300 {
		var words []string
		for range 1 + random.IntN(4) {
			words = append(words, parts[random.IntN(len(parts))])
		}
		batch = append(batch, answer(fmt.Sprint(i), strings.Join(words, " ")))
	}
	if _, err := s.Append(t.Context(), api, batch...); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"a*", "ab*", "ebe*", "日*", "b ab*", "x_a*", "a-b*", `"a b" ab*`, "a* b*", "zz*", "1*"} {
		got := found(t, s, Query{Text: query, Limit: 1000})
		terms := parseTerms(query)
		beginnings := slices.DeleteFunc(slices.Clone(terms), func(t term) bool { return !t.prefix })
		ahead, _, more, err := s.store.readAhead(t.Context(), Query{Limit: 1000}, terms, beginnings, 0, newestRow)
		if err != nil || more || !slices.Equal(ids(ahead), got) {
			t.Errorf("%s: %d read ahead, %d found, %v, %v", query, len(ahead), len(got), more, err)
		}
		statement, args := newestFirst(matchExpression(parseTerms(query), Query{}), time.Time{})
		rows, err := s.store.ids(t.Context(), statement, append(args, 0, newestRow, 1000)...)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, row := range rows {
			e, err := s.store.entry(t.Context(), row)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, e.Message.ID)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d found, the index has %d", query, len(got), len(want))
		}
	}
}

// A search that was given up may still run in the database; the one that is
// given up behind it does not wait for that.
func TestSearchesDoNotPileUp(t *testing.T) {
	s := newService(t, nil)
	submit(t, s, text("one", "a word"))
	s.search <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() {
		_, err := s.Search(ctx, Query{Text: "word"})
		waits <- err
	}()
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	<-s.search
	if got := found(t, s, Query{Text: "word"}); len(got) != 1 {
		t.Fatal(got)
	}
}

func TestSearchThatIsGivenUpEnds(t *testing.T) {
	s := newService(t, nil)
	submit(t, s, text("one", "a word"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Search(ctx, Query{Text: "w*"}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
