//go:build unix

package tmux

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCaptureReachesIntoTheHistory(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		p.SetSize(40, 11) // ten rows and the status line
		id := p.openShell("api", 0, `seq 1 100; printf end; exec sleep 1000`)
		p.shows(id, "end")
		for _, tc := range []struct {
			offset, clamped int
			first, last     string
		}{
			{0, 0, "92", "end"},
			{5, 5, "87", "96"},
			{91, 91, "1", "10"},
			{1000, 91, "1", "10"},
			{-3, 0, "92", "end"},
		} {
			s, err := p.Capture(t.Context(), id, tc.offset)
			if err != nil || len(s.Rows) != 10 || s.Height != 10 || s.Width != 40 || s.History != 91 || s.Offset != tc.clamped ||
				s.Rows[0] != tc.first || s.Rows[9] != tc.last {
				t.Errorf("offset %d: %+v, %v", tc.offset, s, err)
			}
		}
		if s, _ := p.Capture(t.Context(), id, 0); s.CursorX != 3 || s.CursorY != 9 || !s.CursorShown || s.Dead {
			t.Errorf("got %+v", s)
		}
	})
}

// tmux lets a colour run on into the next line and draws lines in a shifted
// character set.
func TestCapturedRowsStandAlone(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		id := p.openShell("api", 0, `printf '\033[1;31mred\nstill\033[0m plain\n\033(0lqk\033(B box\n\033]8;;http://x\033\\link\033]8;;\033\\\nend'; exec sleep 1000`)
		p.shows(id, "end")
		s, err := p.Capture(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"\x1b[1m\x1b[31mred\x1b[0m", "\x1b[1;31mstill\x1b[0m\x1b[39m\x1b[49m plain\x1b[0m", "┌─┐ box", "link", "end"}
		if !slices.Equal(s.Rows[:5], want) {
			t.Errorf("got %q", s.Rows[:5])
		}
	})
}

func TestRowsKeepColoursAndNothingElse(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "plain é日本", "plain é日本"},
		{"cursor movement", "a\x1b[2Jb\x1b[1;1Hc\x1b[?25ld", "abcd"},
		{"title and hyperlink", "a\x1b]2;t\x07b\x1b]8;;u\x1b\\c", "abc"},
		{"unfinished", "a\x1b", "a"},
		{"unfinished sequence", "a\x1b[31", "a"},
		{"unfinished string", "a\x1b]52;c;Zm9v", "a"},
		{"private parameters", "a\x1b[>4;2mb", "ab"},
		{"controls", "a\x00\x07\x08\x7f\u009b31mb", "a31mb"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"colour", "\x1b[38;5;196mx\x1b[39m", "\x1b[38;5;196mx\x1b[39m\x1b[0m"},
	} {
		if got := plainRows([]string{tc.in})[0]; got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	for _, tc := range []struct{ set, carried string }{
		{"\x1b[31m", "\x1b[31m"},
		{"\x1b[1;4;38;2;1;2;3;48;5;7m", "\x1b[1;4;38;2;1;2;3;48;5;7m"},
		{"\x1b[4:3m\x1b[58:5:9m\x1b[38:2::1:2:3m", "\x1b[4:3;38:2::1:2:3;58:5:9m"},
		{"\x1b[1;2;3;7m\x1b[22;23m", "\x1b[7m"},
		{"\x1b[91;102m\x1b[39m", "\x1b[102m"},
		{"\x1b[31m\x1b[0;1m", "\x1b[1m"},
		{"\x1b[31m\x1b[m", ""},
		{"\x1b[38;5m", "\x1b[38;5m"}, // cut short: nothing follows to misread
	} {
		want := tc.carried + "x"
		if tc.carried != "" {
			want += resetSGR
		}
		if got := plainRows([]string{tc.set, "x"})[1]; got != want {
			t.Errorf("%q: got %q, want %q", tc.set, got, want)
		}
	}
}

func FuzzRowsKeepColoursAndNothingElse(f *testing.F) {
	f.Add("a\x1b[31mb\x1b]8;;\x1b\\\x0eq\x0f")
	f.Add("\x1b[38;2;1m\x1bP\x1b[200~")
	f.Fuzz(func(t *testing.T, text string) {
		rows := plainRows(strings.Split(text, "\n"))
		for _, row := range rows {
			for i := 0; i < len(row); i++ {
				if row[i] == 0x1b {
					kind, _, n := escape(row[i:])
					if kind != 'm' {
						t.Fatalf("%q keeps %q", text, row[i:i+n])
					}
					i += n - 1
				} else if row[i] < 0x20 || row[i] == 0x7f {
					t.Fatalf("%q keeps a control in %q", text, row)
				}
			}
			if strings.Contains(row, "\x1b") && !strings.HasSuffix(row, resetSGR) {
				t.Fatalf("%q: %q does not end plain", text, row)
			}
		}
	})
}

func FuzzParseRows(f *testing.F) {
	f.Add("%1|0|||12|80|24|0|1700000000|0~1~api~1~sh~1~api-0~1~sh~1~/tmp~1~a|b~1~%2|1|7||0|80|24|0|0|1~1~api~1~sh~1~api-1~1~sh~1~~1~~1~")
	f.Fuzz(func(t *testing.T, text string) {
		panes, err := (rowForm{mark: "~1~"}).parseAll(text)
		for _, p := range panes {
			if err != nil || !strings.HasPrefix(p.ID, "%") || p.Session == hubSession || strings.ContainsAny(p.Title+p.Path+p.Command, "\n\x1b") {
				t.Fatalf("%q: %+v, %v", text, p, err)
			}
		}
	})
}

// One malformed row rejects the answer: a list that is silently shorter would
// make panes look stopped.
func TestMalformedRowRejectsTheAnswer(t *testing.T) {
	good := "%1|0|||12|80|24|0|1700000000|0~1~api~1~sh~1~api-0~1~sh~1~/tmp~1~a|b~1~"
	if panes, err := (rowForm{mark: "~1~"}).parseAll(good + good); err != nil || len(panes) != 1 || panes[0].Title != "a|b" {
		t.Errorf("%+v, %v", panes, err)
	}
	for _, bad := range []string{
		good + "x", good[:len(good)-1], strings.Replace(good, "~1~api", "~2~api", 1), good + "~1~", good + good[:len(good)-3],
		strings.Replace(good, "|80|", "|wide|", 1), strings.Replace(good, "%1", "1", 1), "can't find pane",
	} {
		if panes, err := (rowForm{mark: "~1~"}).parseAll(good + bad); err == nil {
			t.Errorf("%q was accepted: %+v", bad, panes)
		}
	}
}

func TestFollowSendsWhatChanges(t *testing.T) {
	p := newPrivate(t)
	p.start()
	id := p.openShell("api", 0, `echo one; read x; echo two; read x; exit`)
	ctx, cancel := context.WithCancel(t.Context())
	events := p.Follow(ctx, id, 0, 20*time.Millisecond)
	var last Screen
	await := func(want string) {
		t.Helper()
		deadline := time.After(30 * time.Second)
		for !strings.Contains(strings.Join(last.Rows, "\n"), want) {
			select {
			case e, ok := <-events:
				if !ok || e.Err != nil {
					t.Fatalf("waiting for %q: %v", want, e.Err)
				}
				last = e.Screen
			case <-deadline:
				t.Fatalf("no %q in %q", want, last.Rows)
			}
		}
	}
	await("one")
	if err := p.Keys(t.Context(), id, "Enter"); err != nil {
		t.Fatal(err)
	}
	await("two")
	if err := p.Kill(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for e := range events {
		if e.Err != nil && !errors.Is(e.Err, ErrGone) {
			t.Errorf("got %v", e.Err)
		}
	}
	cancel()

	ctx, cancel = context.WithCancel(t.Context())
	again := p.openShell("api", 1, `exec sleep 1000`)
	events = p.Follow(ctx, again, 0, 0)
	<-events
	cancel()
	for range events { // ends with its context
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.feeds) != 0 {
		t.Errorf("%d feeds are left", len(p.feeds))
	}
}
