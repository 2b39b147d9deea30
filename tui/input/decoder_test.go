package input

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A chunk is what one read gave; after is how long before it nothing came.
type chunk struct {
	after time.Duration
	bytes string
}

// decode feeds chunks to a decoder whose clock is the test's and returns the
// events, letting every delay run out at the end.
func decode(chunks ...chunk) []string {
	var d decoder
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	var events []string
	drain := func(until time.Time) {
		for {
			out, wait := d.next(now)
			if out != nil {
				events = append(events, string(out))
				continue
			}
			if wait < 0 || now.Add(wait).After(until) {
				now = until
				return
			}
			now = now.Add(wait)
		}
	}
	for _, c := range chunks {
		drain(now.Add(c.after))
		d.feed([]byte(c.bytes), now)
	}
	drain(now.Add(time.Minute))
	return events
}

func reads(parts ...string) []chunk {
	chunks := make([]chunk, len(parts))
	for i, p := range parts {
		chunks[i] = chunk{time.Millisecond, p}
	}
	return chunks
}

func TestEventsAreTheSameHoweverTheBytesCame(t *testing.T) {
	for _, c := range []struct {
		name   string
		chunks []chunk
		want   []string
	}{
		{"letters of one read are a key each", reads("jjk"), []string{"j", "j", "k"}},
		{"letters and arrows mixed keep their order", reads("j\x1b[Bk\x1b[Aj"), []string{"j", "\x1b[B", "k", "\x1b[A", "j"}},
		{"ESC and [A in two reads are an arrow", reads("\x1b", "[A"), []string{"\x1b[A"}},
		{"an arrow in three reads", reads("\x1b", "[", "A"), []string{"\x1b[A"}},
		{"ESC alone is Esc after a moment", reads("\x1b"), []string{"\x1b"}},
		{"Esc and much later a letter are two", []chunk{{0, "\x1b"}, {time.Second, "j"}}, []string{"\x1b", "j"}},
		{"Esc twice", reads("\x1b\x1b"), []string{"\x1b", "\x1b"}},
		{"Esc j in one read is one event for the screen to take apart", reads("\x1bj"), []string{"\x1bj"}},
		{"a rune split over reads", reads("\xe6", "\x97", "\xa5x"), []string{"日", "x"}},
		{"the stump of a rune is dropped", []chunk{{0, "\xe6\x97"}, {time.Second, "x"}}, []string{"x"}},
		{"bytes that are no text are dropped", reads("\xff\xfea\xc0b"), []string{"a", "b"}},
		{"control characters", reads("\r\t\x03\x7f"), []string{"\r", "\t", "\x03", "\x7f"}},
		{"home and end of application mode", reads("\x1bOH\x1bOF"), []string{"\x1b[H", "\x1b[F"}},
		{"keypad of application mode", reads("\x1bOM\x1bOp"), []string{"\r", "0"}},
		{"alt and O, then a letter", reads("\x1bO!"), []string{"\x1bO", "!"}},
		{"function keys of the Linux console", reads("\x1b[[A"), []string{"\x1b[[A"}},
		{"F12 in two reads", reads("\x1b[2", "4~"), []string{"\x1b[24~"}},
		{"a key that is broken off", reads("\x1b[1\x1b[B"), []string{"\x1b[B"}},
		{"mouse", reads("\x1b[<0;10;", "5M\x1b[<0;10;5m"), []string{"\x1b[<0;10;5M", "\x1b[<0;10;5m"}},
		{"focus", reads("\x1b[I\x1b[O"), []string{"\x1b[I", "\x1b[O"}},
		{"kitty keys are plain ones", reads("\x1b[106u\x1b[99;5u\x1b[97;3u\x1b[97;2u\x1b[27u"), []string{"j", "\x03", "\x1ba", "A", "\x1b"}},
		{"the release of a kitty key is no key", reads("\x1b[106;1:3u"), nil},
		{"modifyOtherKeys are plain ones", reads("\x1b[27;5;99~\x1b[27;2;9~"), []string{"\x03", "\x1b[Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := decode(c.chunks...); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnswersOfTheTerminalAreNeverTyped(t *testing.T) {
	for name, answer := range map[string]string{
		"background colour, BEL":   "\x1b]11;rgb:1e1e/1e1e/2e2e\x07",
		"foreground colour, ST":    "\x1b]10;rgb:cdcd/d6d6/f4f4\x1b\\",
		"primary attributes":       "\x1b[?62;22c",
		"secondary attributes":     "\x1b[>1;10;0c",
		"cursor position":          "\x1b[24;80R",
		"extended cursor position": "\x1b[?24;80R",
		"status":                   "\x1b[0n",
		"mode":                     "\x1b[?2026;2$y",
		"kitty flags":              "\x1b[?1u",
		"window size":              "\x1b[8;36;120t",
		"XTVERSION":                "\x1bP>|tmux 3.3a\x1b\\",
		"DECRQSS":                  "\x1bP1$r0m\x1b\\",
		"kitty graphics":           "\x1b_Gi=31;OK\x1b\\",
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{"j", "k"}
			if got := decode(reads("j" + answer + "k")...); !slices.Equal(got, want) {
				t.Errorf("in one read: %q", got)
			}
			for cut := 1; cut < len(answer); cut++ {
				if got := decode(reads("j"+answer[:cut], answer[cut:]+"k")...); !slices.Equal(got, want) {
					t.Errorf("cut at %d: %q", cut, got)
				}
			}
			// So late that its ESC was taken for the key.
			if got := decode(chunk{0, "\x1b"}, chunk{200 * time.Millisecond, answer[1:]}, chunk{time.Second, "k"}); !slices.Equal(got, []string{"\x1b", "k"}) {
				t.Errorf("ESC and the rest far apart: %q", got)
			}
		})
	}
}

func TestATailOfAnAnswerToTheAttachedProgramIsDropped(t *testing.T) {
	var d decoder
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	d.returned = now
	d.feed([]byte("1e1e;rgb:1e1e/1e1e/2e2e\x07j"), now.Add(100*time.Millisecond))
	if out, _ := d.next(now); string(out) != "j" {
		t.Errorf("got %q, want the key behind the tail", out)
	}
	d.feed([]byte("rgb:"), now.Add(time.Second))
	if out, _ := d.next(now); string(out) != "r" {
		t.Errorf("got %q: what is typed later must not be lost", out)
	}
}

func TestAPasteIsOneEventWhateverItHolds(t *testing.T) {
	text := "line one\r\nESC \x1b[A [201 日本" + strings.Repeat("x", 5000)
	whole := pasteStart + text + pasteEnd
	for _, cut := range []int{1, 3, 6, 7, 20, 300, len(whole) - 3, len(whole) - 1} {
		if got := decode(reads("a"+whole[:cut], whole[cut:]+"b")...); !slices.Equal(got, []string{"a", whole, "b"}) {
			t.Errorf("cut at %d: %d events, %.80q", cut, len(got), got)
		}
	}
}

func TestAPasteThatNeverEndsDoesNotSwallowLaterKeys(t *testing.T) {
	got := decode(chunk{0, pasteStart + "abc"}, chunk{10 * time.Second, "j"})
	if want := []string{pasteStart + "abc" + pasteEnd, "j"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAHugePasteIsCutAndKeysWorkAfterIt(t *testing.T) {
	got := decode(chunk{0, pasteStart}, chunk{0, strings.Repeat("x", 3*maxPaste)}, chunk{0, pasteEnd + "j"})
	if len(got) != 2 || len(got[0]) != maxPaste+len(pasteStart)+len(pasteEnd) || got[1] != "j" {
		t.Errorf("got %d events", len(got))
	}
}

func TestAnAnswerWithoutEndIsBounded(t *testing.T) {
	got := decode(chunk{0, "\x1b]11;" + strings.Repeat("x", 2*maxString)}, chunk{time.Second, "j"})
	if !slices.Equal(got, []string{"j"}) {
		t.Errorf("got %.60q", got)
	}
}

func FuzzDecoderGivesBackEveryLetterAndNothingElse(f *testing.F) {
	for _, seed := range []string{"jk", "\x1b[A", "\x1b]11;rgb:0/0/0\x07", pasteStart + "x" + pasteEnd, "日本\xff", "\x1bOA\x1b\x1b"} {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, bytes string, step uint8) {
		var chunks []chunk
		for i := 0; i < len(bytes); i += int(step) + 1 {
			chunks = append(chunks, chunk{time.Millisecond, bytes[i:min(len(bytes), i+int(step)+1)]})
		}
		total := 0
		for _, e := range decode(chunks...) {
			if e == "" {
				t.Fatal("an empty event")
			}
			total += len(e)
		}
		if limit := len(bytes) + 16*strings.Count(bytes, "\x1b"); total > limit {
			t.Fatalf("%d bytes became %d", len(bytes), total)
		}
	})
}
