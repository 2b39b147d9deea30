package convo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Search finds messages, newest first (in the order of storing here), or with
// Ranked best match first; Before takes a search on from its last hit. All words of the text must be there, in any case and
// without regard to accents; "several words" in quotes are a phrase, and a word
// that ends in * is the beginning of one. What was stored before the call is
// found. One search of a Service runs at a time; others wait for it, until their
// ctx ends.
func (s *Service) Search(ctx context.Context, q Query) ([]Hit, error) {
	if q.Limit <= 0 {
		q.Limit = 50
	}
	terms := parseTerms(q.Text)
	if len(terms) == 0 && strings.TrimSpace(q.Text) != "" {
		return nil, nil // nothing but punctuation, which is not indexed
	}
	// A step within the index cannot be interrupted: that of a search which was
	// given up is waited for, and those of several do not pile up.
	select {
	case s.search <- struct{}{}:
		defer func() { <-s.search }()
	case <-ctx.Done():
		return nil, fmt.Errorf("search conversations for %q: %w", q.Text, ctx.Err())
	}
	if err := s.store.index(ctx); err != nil {
		return nil, fmt.Errorf("index new messages: %w", err)
	}
	entries, err := s.store.search(ctx, q, terms)
	if err != nil {
		return nil, fmt.Errorf("search conversations for %q: %w", q.Text, err)
	}
	hits := make([]Hit, len(entries))
	for i, e := range entries {
		hits[i] = Hit{Entry: e, Snippet: snippet(searchable(e.Message), terms)}
	}
	return hits, nil
}

// term is one word or phrase of a query, in the index's own tokens.
type term struct {
	tokens []string
	prefix bool
}

func parseTerms(text string) []term {
	var terms []term
	add := func(word string, quoted bool) {
		bare, star := strings.CutSuffix(word, "*")
		t := term{prefix: star && !quoted}
		for _, span := range tokens(bare) {
			t.tokens = append(t.tokens, fold(bare[span[0]:span[1]]))
		}
		if len(t.tokens) > 0 {
			terms = append(terms, t)
		}
	}
	for text != "" {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if rest, quoted := strings.CutPrefix(text, `"`); quoted {
			phrase, after, _ := strings.Cut(rest, `"`)
			add(phrase, true)
			text = after
			continue
		}
		end := strings.IndexFunc(text, unicode.IsSpace)
		if end < 0 {
			end = len(text)
		}
		add(text[:end], false)
		text = text[end:]
	}
	return terms
}

// matchExpression is the query in FTS5's language; "" when nothing narrows it.
// Tokens hold letters and digits alone, so quoting them is enough.
func matchExpression(terms []term, q Query) string {
	var parts []string
	for _, t := range terms {
		part := `text : "` + strings.Join(t.tokens, " ") + `"`
		if t.prefix {
			part += "*"
		}
		parts = append(parts, part)
	}
	require := func(facet string) { parts = append(parts, `facets : "`+facet+`"`) }
	if q.Session != "" {
		require(facet("s", q.Session))
	}
	if q.Cell != "" {
		require(facet("c", q.Cell))
	}
	if q.Agent != "" {
		require(facet("a", q.Agent))
	}
	if q.Exit != nil {
		require(exitFacet(*q.Exit))
	}
	if q.ExitNot != nil {
		require(recordFacet)
	}
	expression := strings.Join(parts, " AND ")
	if q.ExitNot != nil {
		expression = "(" + expression + `) NOT facets : "` + exitFacet(*q.ExitNot) + `"`
	}
	return expression
}

func (s *store) search(ctx context.Context, q Query, terms []term) ([]Entry, error) {
	from, err := s.firstSince(ctx, q.Since)
	if err != nil {
		return nil, err
	}
	before := newestRow
	if q.Before > 0 {
		before = q.Before
	}
	var found []Entry
	broad, none, err := s.broad(ctx, terms)
	if err != nil || none {
		return nil, err
	}
	if !q.Ranked && len(broad) > 0 {
		more := true
		if found, before, more, err = s.readAhead(ctx, q, terms, broad, from, before); err != nil || !more {
			return found, err
		}
	}
	statement, args := newestFirst(matchExpression(terms, q), q.Since)
	if q.Ranked {
		statement = strings.Replace(statement, "ORDER BY s.rowid DESC", "ORDER BY rank", 1)
	}
	ids, err := s.ids(ctx, statement, append(args, from, before, q.Limit-len(found))...)
	if err != nil {
		return nil, err
	}
	entries, err := s.entries(ctx, ids)
	if q.Ranked {
		slices.SortFunc(entries, func(a, b Entry) int { return slices.Index(ids, a.Seq) - slices.Index(ids, b.Seq) })
	}
	return append(found, entries...), err
}

// newestRow is above the ID of every row.
const newestRow = int64(1) << 62

// newestFirst asks for the IDs that match and were stored since then, with the
// arguments that stand before the lowest ID, the one above the highest, and the
// limit.
func newestFirst(match string, since time.Time) (statement string, args []any) {
	statement = `SELECT m.id FROM convo_messages m WHERE `
	row := "m.id"
	if match != "" {
		statement, row = `SELECT s.rowid FROM convo_search s WHERE s.convo_search MATCH ? AND `, "s.rowid"
		args = append(args, match)
	}
	if !since.IsZero() {
		statement += `(SELECT CASE t.first_stored WHEN 0 THEN t.stored ELSE t.first_stored END FROM convo_messages t WHERE t.id = ` + row + `) >= ? AND `
		args = append(args, since.UnixMilli())
	}
	return statement + row + ` >= ? AND ` + row + ` < ? ORDER BY ` + row + ` DESC LIMIT ?`, args
}

func (s *store) ids(ctx context.Context, statement string, args ...any) ([]int64, error) {
	rows, err := s.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// clockSlack is how far a clock may have been set back without a search losing
// what was stored in between.
const clockSlack = 24 * time.Hour

// firstSince is a bound below which nothing was stored since then, here or
// elsewhere. Messages are stored in the order of their IDs, so it is found by
// halving.
func (s *store) firstSince(ctx context.Context, since time.Time) (int64, error) {
	if since.IsZero() {
		return 0, nil
	}
	wanted := since.Add(-clockSlack).UnixMilli()
	var low, high int64
	if err := s.db.QueryRowContext(ctx, `SELECT coalesce(max(id), 0) + 1 FROM convo_messages`).Scan(&high); err != nil {
		return 0, err
	}
	for low < high {
		middle := low + (high-low)/2
		var id, stored int64
		err := s.db.QueryRowContext(ctx, `SELECT id, stored FROM convo_messages WHERE id >= ? ORDER BY id LIMIT 1`, middle).Scan(&id, &stored)
		if errors.Is(err, sql.ErrNoRows) || err == nil && stored >= wanted {
			high = middle
			continue
		}
		if err != nil {
			return 0, err
		}
		low = id + 1
	}
	return low, nil
}
