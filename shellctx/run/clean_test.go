package run

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var colours = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// FuzzClean holds the cleaner to its promises, whatever a program prints and
// wherever the pieces are cut.
func FuzzClean(f *testing.F) {
	for _, s := range []string{
		"", "plain\n", "a\r\nb\r\n", "10%\r20%\r\n", "\x1b[31mred\x1b[0m", "\x1b]0;t\a", "\x1b]52;c;x\x1b\\", "\x1bP\x1b\\", "\x1b[2J",
		"\xff\xfe\x00", "\xe2\x82", "\xe2\x82\xac", "a\b\bb", "\x1b", "\x1b[", "\x1b[1;", "\x9b31m", "\u009b31m", "\x1b(0", "\x1b[\x1b[m",
		"\x1b[31m\b", "e\u0301\b", "\x1b]\x18x", strings.Repeat("\x1b[1m", 100) + "x\ry", "日本\r語", "\u202e", "\x1b[38:2::1:2:3mx",
	} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, raw []byte, cut int) {
		for _, colour := range []bool{true, false} {
			whole := cleaner{colour: colour}
			whole.write(raw, 0)
			cost := whole.total()
			text := whole.text()
			if !utf8.ValidString(text) {
				t.Fatalf("%q is not valid", text)
			}
			rest := text
			if colour {
				rest = colours.ReplaceAllString(text, "")
			}
			for _, r := range rest {
				if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f {
					t.Fatalf("%q holds %U", text, r)
				}
			}
			if !colour && utf8.Valid(raw) {
				sum := 0
				for _, r := range text {
					sum += encodedLen([]byte(string(r)))
				}
				if sum != cost {
					t.Fatalf("%q costs %d, counted as %d", text, sum, cost)
				}
			}
			// Pieces make no difference.
			pieces := cleaner{colour: colour}
			step := max(1, cut%7)
			for part := raw; len(part) > 0; part = part[min(step, len(part)):] {
				pieces.write(part[:min(step, len(part))], 0)
			}
			if got := pieces.text(); got != text {
				t.Fatalf("in pieces %q, whole %q", got, text)
			}
		}
	})
}

// TestExcerptBoundaries cuts texts of all kinds of characters at all lengths
// around the limits.
func TestExcerptBoundaries(t *testing.T) {
	for _, unit := range []string{"x", "é", "日", "👩‍👩‍👧", "\"", "\n", "a\n", "\x01", "\x1b[31mx", "\xff", "@", "ab\rcd\n", "\t"} {
		for _, n := range []int{modelHead, modelHead + modelTail, modelHead + modelTail + 1, 300 << 10} {
			raw := bytes.Repeat([]byte(unit), n/len(unit)+2)
			text, cut := excerpt(memory(raw))
			if !utf8.ValidString(text) {
				t.Errorf("%q x %d: not valid", unit, n)
			}
			sum := 0
			for _, r := range text {
				sum += encodedLen([]byte(string(r)))
			}
			if limit := modelHead + modelTail + 80; sum > limit {
				t.Errorf("%q x %d: %d bytes of JSON", unit, n, sum)
			}
			if !cut && text != strings.ToValidUTF8(text, "") {
				t.Errorf("%q x %d: damaged", unit, n)
			}
			if whole := (&cleaner{}); !cut {
				whole.write(raw, 0)
				if whole.text() != text {
					t.Errorf("%q x %d: said to be whole and is not", unit, n)
				}
			} else if !strings.Contains(text, "bytes of output not shown …]") {
				t.Errorf("%q x %d: the gap is not said", unit, n)
			}
		}
	}
}

// TestSpillKeepsHeadAndTail writes in pieces of many sizes past the ring's end,
// and reads back what must be there, before and after it is put in order.
func TestSpillKeepsHeadAndTail(t *testing.T) {
	const size = 4096
	for _, total := range []int{0, 1, size / 2, size - 1, size, size + 1, size + 700, 3*size + 5, 10 * size} {
		for _, piece := range []int{1, 7, 1000, size, 3 * size} {
			s, err := newSpill(t.TempDir(), "x", size)
			if err != nil {
				t.Fatal(err)
			}
			var all []byte
			for i := 0; len(all) < total; i++ {
				all = fmt.Appendf(all, "%d,", i)
			}
			all = all[:total]
			for rest := all; len(rest) > 0; {
				n := min(piece, len(rest))
				if err := s.write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			check := func(s *spill, when string) {
				head, tail := s.kept()
				got := make([]byte, head)
				if _, err := s.ReadAt(got, 0); err != nil || !bytes.Equal(got, all[:head]) {
					t.Fatalf("%s: head of %d in pieces of %d: %v", when, total, piece, err)
				}
				got = make([]byte, int64(total)-tail)
				if _, err := s.ReadAt(got, tail); err != nil || !bytes.Equal(got, all[tail:]) {
					t.Fatalf("%s: tail of %d in pieces of %d: %v", when, total, piece, err)
				}
				if total > size && int64(total)-tail != size/2 {
					t.Fatalf("%s: tail of %d bytes", when, int64(total)-tail)
				}
			}
			check(s, "written")
			again, err := openSpill(s.path, size)
			if err != nil {
				t.Fatal(err)
			}
			check(again, "opened again")
			again.close()
			head, tail := s.kept()
			want := string(all)
			if tail > head {
				want = fmt.Sprintf("%s\n[… %d bytes are not kept …]\n%s", all[:head], tail-head, all[tail:])
			}
			if err := s.straighten(); err != nil {
				t.Fatal(err)
			}
			s.close()
			// A crash between this and the record finds the file once more.
			again, err = openSpill(s.path, size)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, again.size())
			if _, err := again.ReadAt(got, 0); err != nil || string(got) != want {
				t.Fatalf("straightened: %d in pieces of %d: %v, %d bytes", total, piece, err, len(got))
			}
			again.close()
		}
	}
}

func FuzzMasker(f *testing.F) {
	f.Add([]byte("a s3cr3t b"), "s3cr3t", 3)
	f.Add([]byte("aaaaab"), "aaab", 1)
	f.Add([]byte("abcabcabd"), "abcabd", 2)
	f.Fuzz(func(t *testing.T, raw []byte, secret string, piece int) {
		if len(secret) < minSecret || strings.Contains(masked, secret) || strings.ContainsRune(secret, '*') {
			return
		}
		m := newMasker([]string{secret})
		var out []byte
		for rest := raw; len(rest) > 0; {
			n := min(max(1, piece%9), len(rest))
			out = append(out, m.write(rest[:n])...)
			rest = rest[n:]
		}
		out = append(out, m.finish()...)
		if bytes.Contains(out, []byte(secret)) {
			t.Fatalf("%q shows in %q", secret, out)
		}
		if !bytes.Contains(raw, []byte(secret)) && !bytes.Equal(out, raw) {
			t.Fatalf("%q became %q", raw, out)
		}
	})
}

// TestHostileOutputCostsNoMoreThanItsLength: what would be quadratic must not be.
func TestHostileOutputCostsNoMoreThanItsLength(t *testing.T) {
	for _, unit := range []string{"\x1b[1m\b", "\b", "\r", "\x1b", "\x1b[1m\rx", "\x1b]", "x\b", "\xe2"} {
		raw := bytes.Repeat([]byte(unit), (4<<20)/len(unit))
		begin := time.Now()
		Clean(raw)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%q: 4 MiB took %v", unit, took)
		}
	}
}
