// Command bench measures what conversations cost against what the disk and the
// database themselves cost, in one run on one machine: ratios, since absolute
// figures say more about the machine.
//
//	go run ./shellctx/convo/bench [-messages 1000000] [-json file]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"cellmux/cell/state"
	"cellmux/shellctx"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
)

// result is one line of the table. Value and Limit are in Unit.
type result struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Limit  float64 `json:"limit"`
	Unit   string  `json:"unit"`
	Within bool    `json:"within"`
	Detail string  `json:"detail"`
}

func main() {
	messages := flag.Int("messages", 1_000_000, "messages to search")
	out := flag.String("json", "", "write the results to this file, - for standard output")
	dir := flag.String("dir", "", "directory on the disk to measure; a temporary one when empty")
	flag.Parse()
	if err := run(context.Background(), *messages, *dir, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, messages int, parent, out string) error {
	dir, err := os.MkdirTemp(parent, "cellmux-convo-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var results []result
	for _, measure := range []func() ([]result, error){
		func() ([]result, error) { return appends(ctx, filepath.Join(dir, "append"), 1, 400, 3) },
		func() ([]result, error) { return appends(ctx, filepath.Join(dir, "batch"), 64, 400, 2) },
		func() ([]result, error) { return openings(ctx, filepath.Join(dir, "open"), 100_000) },
		func() ([]result, error) { return searches(ctx, filepath.Join(dir, "search"), messages) },
	} {
		measured, err := measure()
		if err != nil {
			return err
		}
		results = append(results, measured...)
	}
	return report(results, out)
}

func report(results []result, out string) error {
	encoded, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	switch out {
	case "-":
		fmt.Println(string(encoded))
	case "":
	default:
		if err := os.WriteFile(out, append(encoded, '\n'), 0o644); err != nil {
			return err
		}
	}
	table := os.Stdout
	if out == "-" {
		table = os.Stderr
	}
	w := tabwriter.NewWriter(table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "conversations\tmeasured\tlimit\t\t")
	over := 0
	for _, r := range results {
		verdict := "ok"
		if !r.Within {
			verdict = "OVER"
			over++
		}
		fmt.Fprintf(w, "%s\t%.2f %s\t%.0f %s\t%s\t%s\n", r.Name, r.Value, r.Unit, r.Limit, r.Unit, verdict, r.Detail)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if over > 0 {
		return fmt.Errorf("%d of %d over their limit", over, len(results))
	}
	return nil
}

// service opens a database of its own below dir.
func service(ctx context.Context, dir string) (*convo.Service, func() error, error) {
	db, _, err := state.Open(ctx, filepath.Join(dir, "cellmux.db"))
	if err != nil {
		return nil, nil, err
	}
	if err := db.Migrate(ctx, "convo", convo.Migrations()); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return convo.New(convo.Options{DB: db.SQL(), LockDir: dir}), db.Close, nil
}

// appends compares storing n messages in one transaction with one write(2) and
// fsync(2) of the same bytes. Both meet the same disk: they take turns at being
// first, and the ratio is the median of each pair's, after some that are not
// counted.
func appends(ctx context.Context, dir string, n, rounds int, limit float64) ([]result, error) {
	s, closeDB, err := service(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	file, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	target := convo.Target{Session: "bench", Cell: "bench", Agent: "claude"}
	const body = "the tests of the session store fail since the clock moved into the options; "
	const warmUp = 40
	var bare, durable []time.Duration
	var ratios []float64
	for round := range warmUp + rounds {
		batch := make([]protocol.ChatMessage, n)
		var bytes []byte
		for i := range batch {
			batch[i] = protocol.NewText(fmt.Sprintf("msg-%d-%d", round, i), protocol.User, strings.Repeat(body, 13), time.Now())
			encoded, err := batch[i].Encode()
			if err != nil {
				return nil, err
			}
			bytes = append(bytes, encoded...)
		}
		write := func() error {
			_, err := file.Write(bytes)
			return errors.Join(err, file.Sync())
		}
		store := func() error {
			_, err := s.Append(ctx, target, batch...)
			return err
		}
		first, second := write, store
		if round%2 == 1 {
			first, second = store, write
		}
		took, tookSecond, err := pair(first, second)
		if err != nil {
			return nil, err
		}
		if round%2 == 1 {
			took, tookSecond = tookSecond, took
		}
		if round >= warmUp {
			bare, durable = append(bare, took), append(durable, tookSecond)
			ratios = append(ratios, float64(tookSecond)/float64(took))
		}
	}
	ours, floor := median(durable), median(bare)
	slices.Sort(ratios)
	ratio := ratios[len(ratios)/2]
	name := "durable append : write+fsync of the same bytes"
	if n > 1 {
		name = fmt.Sprintf("%d appends in one transaction : one write+fsync", n)
	}
	return []result{{Name: name, Value: ratio, Limit: limit, Unit: "x", Within: ratio <= limit,
		Detail: fmt.Sprintf("medians %v and %v of %d", ours.Round(time.Microsecond), floor.Round(time.Microsecond), rounds)}}, nil
}

// pair times two actions, one after the other.
func pair(first, second func() error) (a, b time.Duration, err error) {
	start := time.Now()
	if err := first(); err != nil {
		return 0, 0, err
	}
	a = time.Since(start)
	start = time.Now()
	err = second()
	return a, time.Since(start), err
}

// openings measures the newest screenful of a long conversation, and one from
// its middle.
func openings(ctx context.Context, dir string, messages int) ([]result, error) {
	s, closeDB, err := service(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	target := convo.Target{Session: "long", Cell: "long", Agent: "claude"}
	if err := fill(ctx, s, messages, func(int) convo.Target { return target }); err != nil {
		return nil, err
	}
	var newest, middle []time.Duration
	for range 50 {
		start := time.Now()
		page, err := s.Page(ctx, target.Session, 0, 60)
		if err != nil || len(page) != 60 {
			return nil, fmt.Errorf("%d messages on the page: %w", len(page), err)
		}
		newest = append(newest, time.Since(start))
		start = time.Now()
		if _, err := s.Page(ctx, target.Session, page[0].Seq/2, 60); err != nil {
			return nil, err
		}
		middle = append(middle, time.Since(start))
	}
	line := func(name string, times []time.Duration) result {
		value := milliseconds(slices.Max(times))
		return result{Name: name, Value: value, Limit: 100, Unit: "ms", Within: value < 100, Detail: "the slowest of 50"}
	}
	return []result{
		line(fmt.Sprintf("open a conversation of %d messages", messages), newest),
		line("scroll to a page in its middle", middle),
	}, nil
}

func searches(ctx context.Context, dir string, messages int) ([]result, error) {
	s, closeDB, err := service(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	fmt.Fprintf(os.Stderr, "storing and indexing %d messages…\n", messages)
	if err := fill(ctx, s, messages, func(n int) convo.Target {
		return convo.Target{Session: fmt.Sprint("session-", n/1000%100), Cell: fmt.Sprint("cell-", n/1000%20), Agent: "claude"}
	}); err != nil {
		return nil, err
	}
	if _, err := s.Search(ctx, convo.Query{Text: "warm"}); err != nil {
		return nil, err
	}
	zero, seven := 0, 7
	var results []result
	for _, q := range []struct {
		name  string
		query convo.Query
	}{
		{"the commonest word (in every message)", convo.Query{Text: "the"}},
		{"a common word", convo.Query{Text: word(0)}},
		{"a rare word", convo.Query{Text: word(15_000)}},
		{"two common words and a cell", convo.Query{Text: "the " + word(1), Cell: "cell-7"}},
		{"the commonest word, exit:!=0", convo.Query{Text: "the", ExitNot: &zero}},
		{"a phrase", convo.Query{Text: `"the ` + word(0) + `"`}},
		{"a beginning of many words", convo.Query{Text: "w1*"}},
		{"the beginning of all words", convo.Query{Text: "w*"}},
		{"a word that is nowhere", convo.Query{Text: "nowhere"}},
		{"a beginning that is nowhere", convo.Query{Text: "nowhere*"}},
		{"the beginning of all words, and one that is nowhere", convo.Query{Text: "w* nowhere*"}},
		{"the beginning of all words, in a cell that is nowhere", convo.Query{Text: "w*", Cell: "nowhere"}},
		{"a beginning and a rare word", convo.Query{Text: "w1* " + word(15_000)}},
		{"two beginnings of rare words", convo.Query{Text: word(15_000) + "* " + word(15_001) + "*"}},
		{"the beginning of all words, exit:7", convo.Query{Text: "w*", Exit: &seven}},
	} {
		var times []time.Duration
		var hits int
		for range 15 {
			start := time.Now()
			found, err := s.Search(ctx, q.query)
			if err != nil {
				return nil, err
			}
			times = append(times, time.Since(start))
			hits = len(found)
		}
		value := milliseconds(median(times))
		results = append(results, result{Name: "search " + q.name, Value: value, Limit: 50, Unit: "ms", Within: value < 50,
			Detail: fmt.Sprintf("median of %d, newest %d hits of %d messages", len(times), hits, messages)})
	}
	return results, nil
}

const vocabulary = 20_000

func word(n int) string { return fmt.Sprintf("w%x", n*7919) }

// fill stores messages whose words are spread as in a language: a few are in
// most of them.
func fill(ctx context.Context, s *convo.Service, messages int, target func(n int) convo.Target) error {
	random := rand.New(rand.NewPCG(1, 2))
	spread := rand.NewZipf(random, 1.2, 4, vocabulary-1)
	const batch = 1000
	for n := 0; n < messages; n += batch {
		stored := make([]protocol.ChatMessage, 0, batch)
		for i := n; i < n+batch; i++ {
			var text strings.Builder
			text.WriteString("the")
			for range 12 {
				text.WriteString(" " + word(int(spread.Uint64())))
			}
			id := fmt.Sprint("msg-", i)
			if i%10 != 0 {
				stored = append(stored, protocol.NewText(id, protocol.User, text.String(), time.Now()))
				continue
			}
			record := shellctx.Record{Command: "make " + word(int(spread.Uint64())), Output: text.String(), ExitCode: i / 10 % 3}
			message, err := shellctx.NewMessage(id, record, time.Now())
			if err != nil {
				return err
			}
			stored = append(stored, message)
		}
		if _, err := s.Append(ctx, target(n), stored...); err != nil {
			return err
		}
	}
	return nil
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
