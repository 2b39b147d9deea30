//go:build unix

package tmux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// reader turns bracketed paste on and records what arrives, byte for byte.
const reader = `stty raw -echo; printf '\033[?2004hready'; exec cat > got`

func (p *private) got(want string) {
	p.t.Helper()
	path := filepath.Join(p.dir, "got")
	p.eventually("the text", func() bool { b, _ := os.ReadFile(path); return len(b) >= len(want) })
	if b, _ := os.ReadFile(path); string(b) != want {
		p.t.Errorf("got  %q\nwant %q", b, want)
	}
}

func TestPasteArrivesAsOneBracketedBlock(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		id := p.openShell("api", 0, reader)
		p.shows(id, "ready")
		text := "first 'line' \"x\" $HOME #{pid} #(date) ~ {a} \\n;\nsecond\ttab é日本👩‍👧\n; kill-server ;\nlast;"
		if err := p.Paste(t.Context(), id, text); err != nil {
			t.Fatal(err)
		}
		p.got("\x1b[200~" + strings.ReplaceAll(text, "\n", "\r") + "\x1b[201~")
		if buffers := p.must("list-buffers"); buffers != "" {
			t.Errorf("left buffers: %s", buffers)
		}
	})
}

// Two pastes through one buffer would each bring some of the other's text.
func TestPastesAtTheSameTimeDoNotMix(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		const panes, pastes = 3, 4
		var ids [panes]string
		for i := range ids {
			ids[i] = p.openShell("api", i, strings.ReplaceAll(reader, "> got", fmt.Sprintf("> got%d", i)))
			p.shows(ids[i], "ready")
		}
		var sending sync.WaitGroup
		for i, id := range ids {
			sending.Go(func() {
				for range pastes {
					if err := p.Paste(t.Context(), id, strings.Repeat(string(rune('a'+i)), 10_000)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		sending.Wait()
		for i := range ids {
			path := filepath.Join(p.dir, fmt.Sprintf("got%d", i))
			want := strings.Repeat("\x1b[200~"+strings.Repeat(string(rune('a'+i)), 10_000)+"\x1b[201~", pastes)
			p.eventually("the text", func() bool { b, _ := os.ReadFile(path); return len(b) >= len(want) })
			if b, _ := os.ReadFile(path); string(b) != want {
				t.Errorf("pane %d got another's text, or not all of its own: %d bytes, want %d", i, len(b), len(want))
			}
		}
		if buffers := p.must("list-buffers"); buffers != "" {
			t.Errorf("left buffers: %s", buffers)
		}
	})
}

// An embedded end of paste would let the rest be typed, as if by the user.
func TestPasteCannotEndItself(t *testing.T) {
	p := newPrivate(t)
	p.start()
	id := p.openShell("api", 0, reader)
	p.shows(id, "ready")
	if err := p.Paste(t.Context(), id, "a\x1b[201~\r\nrm -rf /\r\x03\x04\x00\u009b201~\x7f\xff\rend"); err != nil {
		t.Fatal(err)
	}
	p.got("\x1b[200~a[201~\rrm -rf /\r201~\uFFFD\rend\x1b[201~")
}

func TestNoPasteableTextHoldsAControl(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		for _, r := range pasteable(text) {
			if r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r < 0xa0) {
				t.Fatalf("%q keeps %q", text, r)
			}
		}
	})
}

func TestLargePasteIsWhole(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		id := p.openShell("api", 0, reader)
		p.shows(id, "ready")
		text := strings.Repeat("0123456789abcde'", 20_000) // 320 kB
		if err := p.Paste(t.Context(), id, text); err != nil {
			t.Fatal(err)
		}
		p.got("\x1b[200~" + text + "\x1b[201~")
		if err := p.Paste(t.Context(), id, strings.Repeat("x", maxPaste+1)); err == nil {
			t.Error("a paste without bound was accepted")
		}
	})
}

// tmux 3.3a crashes, with every pane, when pasting into a dead one.
func TestPasteIntoAPaneThatHasJustDied(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		other := p.openShell("other", 0, "echo alive; exec sleep 1000")
		server := p.serverPID()
		id := p.openShell("api", 0, "read x; exit 0")
		if err := p.Keys(t.Context(), id, "Enter"); err != nil {
			t.Fatal(err)
		}
		// No waiting: the pastes race with the death, and must lose to it once.
		deadline := time.Now().Add(30 * time.Second)
		for {
			err := p.Paste(t.Context(), id, "into the grave")
			if errors.Is(err, ErrDead) {
				break
			}
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("got %v", err)
			}
		}
		for _, err := range []error{p.Keys(t.Context(), id, "Enter"), p.Type(t.Context(), id, "x"), p.Paste(t.Context(), id, "x")} {
			if !errors.Is(err, ErrDead) {
				t.Errorf("got %v", err)
			}
		}
		if now := p.serverPID(); now != server {
			t.Errorf("the server is another: %d, %d", now, server)
		}
		p.shows(other, "alive")
		if buffers := p.must("list-buffers"); buffers != "" {
			t.Errorf("left buffers: %s", buffers)
		}
	})
}

func TestSendingIntoAPaneThatIsGone(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		p.openShell("api", 0, "exec sleep 1000")
		for _, err := range []error{
			p.Paste(t.Context(), "%77", "x"), p.Keys(t.Context(), "%77", "Enter"), p.Type(t.Context(), "%77", "x"),
		} {
			if !errors.Is(err, ErrGone) {
				t.Errorf("got %v", err)
			}
		}
		if _, err := p.Capture(t.Context(), "%77", 0); !errors.Is(err, ErrGone) {
			t.Errorf("got %v", err)
		}
		if buffers := p.must("list-buffers"); buffers != "" {
			t.Errorf("left buffers: %s", buffers)
		}
	})
}

func TestKeysAndTextAreTakenAsTheyAre(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		id := p.openShell("api", 0, `stty raw -echo; printf ready; exec cat > got`)
		p.shows(id, "ready")
		for _, text := range []string{"Enter", "-l", ";", "a;", `\;`, "'\"$x", "#{pid}", "é"} {
			if err := p.Type(t.Context(), id, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Keys(t.Context(), id, "Escape", "C-c", "Up", "x", ";", "Enter"); err != nil {
			t.Fatal(err)
		}
		p.got(`Enter-l;a;\;'"$x#{pid}é` + "\x1b\x03\x1b[Ax;\r")
	})
}

// Our quoting against tmux's own parser.
func TestQuotedArgumentsSurviveTheParser(t *testing.T) {
	p := newPrivate(t)
	p.start()
	p.openShell("api", 0, "exec sleep 1000")
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching("[ -~\n\t\x01\x1b\x7fé日]{0,40}").Draw(rt, "text")
		if _, err := p.run(t.Context(), command{"set-buffer", "-b", "q", "--", text + "."}); err != nil {
			rt.Fatal(err)
		}
		path := filepath.Join(p.dir, "quoted")
		if _, err := p.run(t.Context(), command{"save-buffer", "-b", "q", path}); err != nil {
			rt.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text+"." {
			rt.Fatalf("got %q, want %q, %v", b, text, err)
		}
	})
}
