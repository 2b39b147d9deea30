package convo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseQuery reads a line as the user types it: words, with filters among them.
//
//	cell:api  agent:codex  exit:1  exit:!=0  since:24h  since:3d  since:2026-11-30
//	since:today  since:yesterday  sort:rank
//
// A day is one of now's time zone. Quotes keep words together, and a filter's
// name within quotes is a word. An unknown name before a colon is a word too,
// since output is full of them; a known one with a value that cannot be is an
// error.
func ParseQuery(line string, now time.Time) (Query, error) {
	var q Query
	var words []string
	for _, word := range splitQuoted(line) {
		name, value, isFilter := strings.Cut(word, ":")
		if !isFilter || value == "" {
			words = append(words, word)
			continue
		}
		var err error
		switch name {
		case "cell":
			q.Cell = value
		case "agent":
			q.Agent = value
		case "exit":
			err = q.filterExit(value)
		case "since":
			q.Since, err = parseSince(value, now)
		case "sort":
			switch value {
			case "rank":
				q.Ranked = true
			case "time":
				q.Ranked = false
			default:
				err = fmt.Errorf("sort:%s: it is rank or time", value)
			}
		default:
			words = append(words, word)
		}
		if err != nil {
			return Query{}, err
		}
	}
	q.Text = strings.Join(words, " ")
	return q, nil
}

// splitQuoted splits at white space outside of double quotes, and keeps the
// quotes.
func splitQuoted(line string) []string {
	var words []string
	var word strings.Builder
	quoted := false
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, r := range line {
		if r == '"' {
			quoted = !quoted
		}
		if !quoted && (r == ' ' || r == '\t' || r == '\n') {
			end()
			continue
		}
		word.WriteRune(r)
	}
	end()
	return words
}

func (q *Query) filterExit(value string) error {
	number, not := strings.CutPrefix(value, "!=")
	if !not {
		number, not = strings.CutPrefix(value, "!")
	}
	code, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("exit:%s: it is a number, or != and a number, such as exit:!=0", value)
	}
	if not {
		q.ExitNot = &code
	} else {
		q.Exit = &code
	}
	return nil
}

func parseSince(value string, now time.Time) (time.Time, error) {
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch value {
	case "today":
		return midnight, nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, value, now.Location()); err == nil {
			return t, nil
		}
	}
	if days, ok := strings.CutSuffix(value, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if weeks, ok := strings.CutSuffix(value, "w"); ok {
		if n, err := strconv.Atoi(weeks); err == nil && n >= 0 {
			return now.AddDate(0, 0, -7*n), nil
		}
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("since:%s: it is a day (2026-11-30, today, yesterday) or an age (30m, 24h, 3d, 2w)", value)
}
