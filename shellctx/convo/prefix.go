package convo

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// The index merges the rows of all words with a beginning before it gives the
// first: for "w*" every row there is, at each key that is typed. So where a
// beginning is broad, the newest rows that match all else are read instead: as a
// rule a few of them fill the page. For a narrow one the index is fast.
const (
	readAheadRows  = 2000
	readAheadBytes = 4 << 20
	readAheadFirst = 100  // rows of the first step; each further one has twice as many
	narrowPlaces   = 2000 // in how many places the words of a narrow beginning are at most
)

// broad returns those of the terms that are beginnings of very many words, and
// whether a term is the beginning of none, so that nothing can match.
func (s *store) broad(ctx context.Context, terms []term) (broad []term, none bool, err error) {
	count, err := s.prepare(ctx, `SELECT count(*) FROM (SELECT 1 FROM convo_words WHERE term >= ? AND term <= ? LIMIT ?)`)
	if err != nil {
		return nil, false, err
	}
	for _, t := range terms {
		if !t.prefix {
			continue
		}
		var places int
		beginning := t.tokens[len(t.tokens)-1]
		if err := count.QueryRowContext(ctx, beginning, beginning+string(utf8.MaxRune), narrowPlaces+1).Scan(&places); err != nil {
			return nil, false, err
		}
		if places == 0 {
			return nil, true, nil
		}
		if places > narrowPlaces {
			broad = append(broad, t)
		}
	}
	return broad, false, nil
}

// readAhead finds the newest matches, below a row, of a query of which some terms
// are broad beginnings of words. All matches down to the row that it returns are found; more says that
// older rows are to be asked for.
func (s *store) readAhead(ctx context.Context, q Query, terms, broad []term, from, below int64) (found []Entry, before int64, more bool, err error) {
	var others []term
	for _, t := range terms {
		if !slices.ContainsFunc(broad, func(b term) bool { return slices.Equal(b.tokens, t.tokens) && b.prefix == t.prefix }) {
			others = append(others, t)
		}
	}
	statement, args := newestFirst(matchExpression(others, q), q.Since)
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
			if !holds(text, broad) {
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
