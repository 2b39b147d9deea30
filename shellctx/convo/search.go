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

// Search finds messages, newest first (by the time of storing), or with Ranked
// best match first. All words of the text must be there, in any case and
// without regard to accents; "several words" in quotes are a phrase, and a word
// that ends in * is the beginning of one. What was stored before the call is
// found.
func (s *Service) Search(ctx context.Context, q Query) ([]Hit, error) {
	if q.Limit <= 0 {
		q.Limit = 50
	}
	terms := parseTerms(q.Text)
	if len(terms) == 0 && strings.TrimSpace(q.Text) != "" {
		return nil, nil // nothing but punctuation, which is not indexed
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
	var found []Entry
	before, more := newestRow, true
	if !q.Ranked && slices.ContainsFunc(terms, func(t term) bool { return t.prefix }) {
		if found, before, more, err = s.readAhead(ctx, q, terms, from); err != nil || !more {
			return found, err
		}
	}
	match := matchExpression(terms, q)
	statement, args := newestFirst(match)
	if q.Ranked && match != "" {
		// Ranking reads every match; there is no next page to ask for.
		statement = `SELECT rowid FROM convo_search WHERE convo_search MATCH ? AND rowid >= ? AND rowid < ? ORDER BY rank LIMIT ?`
	}
	for {
		ids, err := s.ids(ctx, statement, append(slices.Clone(args), from, before, q.Limit)...)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			e, err := s.entry(ctx, id)
			if err != nil {
				return nil, err
			}
			before = min(before, id)
			// The bound below is a day too low.
			if !e.Stored.Before(q.Since) {
				found = append(found, e)
			}
		}
		if len(found) >= q.Limit || len(ids) < q.Limit || q.Ranked {
			return found[:min(len(found), q.Limit)], nil
		}
	}
}

// newestRow is above the ID of every row.
const newestRow = int64(1) << 62

// newestFirst asks for the IDs that match, with the arguments that stand before
// the lowest ID, the one above the highest, and the limit.
func newestFirst(match string) (statement string, args []any) {
	if match == "" {
		return `SELECT id FROM convo_messages WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?`, nil
	}
	return `SELECT rowid FROM convo_search WHERE convo_search MATCH ? AND rowid >= ? AND rowid < ? ORDER BY rowid DESC LIMIT ?`, []any{match}
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

// firstSince is a bound below which nothing was stored since then. Messages are
// stored in the order of their IDs, so it is found by halving.
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
