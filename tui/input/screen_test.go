package input

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/hinshun/vt10x"
)

// terminalOf keeps what was written, and shows it as a terminal would.
type terminalOf struct {
	mu      sync.Mutex
	emulate vt10x.Terminal
	all     strings.Builder
	writes  int
	written chan struct{}
}

const columns, lines = 20, 6

func newTerminal() *terminalOf {
	return &terminalOf{emulate: vt10x.New(vt10x.WithSize(columns, lines)), written: make(chan struct{}, 1000)}
}

func (t *terminalOf) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.Write(p)
	_, _ = t.emulate.Write(p)
	t.writes++
	select {
	case t.written <- struct{}{}:
	default: // nobody counts them
	}
	return len(p), nil
}

func (t *terminalOf) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes
}

func (t *terminalOf) rows() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimRight(t.emulate.String(), "\n")
}

// ours is a screen in the alternate screen, as Bubble Tea enters it.
func ours() (*Screen, *terminalOf) {
	t := newTerminal()
	s := NewScreen(t)
	for _, sequence := range []string{ansi.SetModeAltScreenSaveCursor, ansi.EraseEntireScreen, ansi.CursorHomePosition, ansi.HideCursor} {
		_, _ = s.Write([]byte(sequence))
	}
	return s, t
}

func frameOf(rows ...string) string {
	full := make([]string, lines)
	for i := range full {
		row := ""
		if i < len(rows) {
			row = rows[i]
		}
		full[i] = fmt.Sprintf("%-*s", columns, row)
	}
	return strings.Join(full, "\n")
}

// Whatever the frames before were, and whatever was erased meanwhile, the
// terminal shows the newest frame.
func TestTheTerminalShowsTheNewestFrame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s, terminal := ours()
	for range 2000 {
		rows := make([]string, lines)
		for i := range rows {
			rows[i] = strings.Repeat(string(rune('a'+random.IntN(3))), random.IntN(columns+1))
		}
		switch random.IntN(6) {
		case 0:
			_, _ = s.Write([]byte(ansi.EraseEntireScreen))
		case 1:
			s.Repaint()
		case 2:
			s.SetCursor(random.IntN(columns), random.IntN(lines))
		case 3:
			s.HideCursor()
		}
		s.Show(frameOf(rows...))
		s.draw()
		if got, want := terminal.rows(), frameOf(rows...); got != want {
			t.Fatalf("it shows\n%s\nand not\n%s", got, want)
		}
	}
}

func TestWhatIsShownAlreadyIsNotWrittenAgain(t *testing.T) {
	s, terminal := ours()
	s.Show(frameOf("one", "two"))
	if !s.draw() {
		t.Fatal("the first frame was not drawn")
	}
	before := terminal.count()
	s.Show(frameOf("one", "two"))
	if s.draw() || terminal.count() != before {
		t.Error("the same frame was written twice")
	}
	terminal.all.Reset()
	s.Show(frameOf("one", "2"))
	s.draw()
	if text := terminal.all.String(); strings.Contains(text, "one") || !strings.Contains(text, "2  ") {
		t.Errorf("for one row it wrote %q", text)
	}
	if text := terminal.all.String(); !strings.HasPrefix(text, beginUpdate) || !strings.HasSuffix(text, endUpdate) {
		t.Errorf("it is no synchronised update: %q", text)
	}
	s.Repaint()
	s.draw()
	if text := terminal.all.String(); !strings.Contains(text, "one") {
		t.Errorf("after a resize it wrote %q", text)
	}
}

func TestBubbleTeasFramesAreDroppedAndItsModesAreNot(t *testing.T) {
	s, terminal := ours()
	s.Show(frameOf("ours"))
	s.draw()
	terminal.all.Reset()
	_, _ = s.Write([]byte(ansi.CursorHomePosition + "\r " + ansi.EraseLineRight + ansi.CursorPosition(0, 1)))
	if text := terminal.all.String(); text != "" {
		t.Errorf("a frame of Bubble Tea's was written: %q", text)
	}
	for _, mode := range []string{ansi.SetModeBracketedPaste, ansi.SetModeMouseButtonEvent, ansi.SetModeFocusEvent, ansi.CursorHomePosition} {
		terminal.all.Reset()
		if _, _ = s.Write([]byte(mode)); terminal.all.String() != mode {
			t.Errorf("for %q it wrote %q", mode, terminal.all.String())
		}
	}
}

// A program in the foreground has the terminal to itself, and what it left on
// the alternate screen is drawn over.
func TestNothingIsDrawnOnSomebodyElsesScreen(t *testing.T) {
	s, terminal := ours()
	s.SetCursor(3, 1)
	s.Show(frameOf("before"))
	s.draw()
	_, _ = s.Write([]byte(ansi.ResetModeAltScreenSaveCursor))
	before := terminal.count()
	s.Show(frameOf("meanwhile"))
	s.Repaint()
	if s.draw() || terminal.count() != before {
		t.Error("a frame was drawn outside of the alternate screen")
	}
	for _, sequence := range []string{ansi.SetModeAltScreenSaveCursor, ansi.EraseEntireScreen, ansi.CursorHomePosition, ansi.ShowCursor} {
		_, _ = s.Write([]byte(sequence))
	}
	s.HideCursor()
	s.draw()
	if got := terminal.rows(); !strings.HasPrefix(got, "meanwhile") {
		t.Errorf("after the return it shows\n%s", got)
	}
	if terminal.emulate.CursorVisible() {
		t.Error("the cursor that was left on is shown")
	}
}

func TestAFrameWaitsOnlyBehindOthers(t *testing.T) {
	s, terminal := ours()
	for len(terminal.written) > 0 {
		<-terminal.written
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	defer running.Wait()
	defer cancel()
	began := time.Now()
	const frames = 12
	for i := range frames {
		s.Show(frameOf(fmt.Sprint(i)))
		select {
		case <-terminal.written:
		case <-time.After(30 * time.Second):
			t.Fatal("a frame was never drawn")
		}
	}
	// The first were drawn at once, and the others in their time.
	if least := (frames - atOnce) * time.Second / FramesPerSecond; time.Since(began) < least*9/10 {
		t.Errorf("%d frames in %v", frames, time.Since(began))
	}
}
