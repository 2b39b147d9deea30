package convo

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// The index merges the rows of all words with a beginning before it gives the
// first: for "w*" every row there is, at each key that is typed. So the newest
// rows that match all else are read instead. A broad beginning fills the page
// from a few of them; one that does not is narrow, and for that the index is
// fast.
const (
	readAheadRows  = 2000
	readAheadBytes = 4 << 20
	readAheadFirst = 100 // rows of the first step; each further one has twice as many
)

// readAhead finds the newest matches, below a row, of a query with beginnings of
// words. All matches down to the row that it returns are found; more says that
// older rows are to be asked for.
func (s *store) readAhead(ctx context.Context, q Query, terms []term, from, below int64) (found []Entry, before int64, more bool, err error) {
	var whole, beginnings []term
	for _, t := range terms {
		if t.prefix {
			beginnings = append(beginnings, t)
		} else {
			whole = append(whole, t)
		}
	}
	statement, args := newestFirst(matchExpression(whole, q), q.Since)
	before = below
	for rows, size, step := 0, 0, readAheadFirst; rows < readAheadRows && size < readAheadBytes; step *= 2 {
		step = min(step, readAheadRows-rows)
		ids, err := s.ids(ctx, statement, append(slices.Clone(args), from, before, step)...)
		if err != nil || len(ids) == 0 {
			return found, before, false, err
		}
		entries, err := s.entries(ctx, ids)
		if err != nil {
			return nil, 0, false, err
		}
		for _, e := range entries {
			before = e.Seq
			text := searchable(e.Message)
			size += len(text)
			if !holds(text, beginnings) {
				continue
			}
			if found = append(found, e); len(found) == q.Limit {
				return found, before, false, nil
			}
		}
		if len(ids) < step {
			return found, before, false, nil
		}
		rows += len(ids)
	}
	return found, before, true, nil
}

// entries are the messages of some IDs, the newest first.
func (s *store) entries(ctx context.Context, ids []int64) ([]Entry, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	return query(ctx, s.db, selectEntries+` WHERE m.id IN (SELECT value FROM json_each(?)) ORDER BY m.id DESC`, string(list))
}

// holds reports whether all the terms are in a text, as the index would.
func holds(text string, terms []term) bool {
	var all []string
	for _, span := range tokens(text) {
		all = append(all, fold(text[span[0]:span[1]]))
	}
	for _, t := range terms {
		if !t.in(all) {
			return false
		}
	}
	return true
}

// in reports whether the term is somewhere among the tokens of a text.
func (t term) in(all []string) bool {
	last := len(t.tokens) - 1
	for ; len(all) > last; all = all[1:] {
		if !slices.Equal(all[:last], t.tokens[:last]) {
			continue
		}
		if all[last] == t.tokens[last] || t.prefix && strings.HasPrefix(all[last], t.tokens[last]) {
			return true
		}
	}
	return false
}
