package tuitest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"cellmux/tui"
)

// Options shape a screen under test.
type Options struct {
	Width, Height int               // 120 by 36 when 0
	Env           map[string]string // beside TERM and LANG, which may be overridden
	Settings      tui.Settings
	Directory     string
	Notice        string
}

// UI is a running screen.
type UI struct {
	t       *testing.T
	Model   *tui.Model
	Fleet   *Fleet
	mu      sync.Mutex
	waiting []tea.Msg // answers of commands, in the order in which they came
	ended   bool      // it quit
	sent    []tea.Msg // messages for Bubble Tea itself
}

// Run starts a screen over a fleet and gives it to the test, settled.
func Run(t *testing.T, f *Fleet, o Options, test func(ui *UI)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// The bubble begins at midnight; frames read better in the middle of a day.
		<-time.After(12*time.Hour + 4*time.Minute)
		f.Begin()
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { // also when the test fails in the middle
			cancel()
			<-time.After(time.Hour) // lets every timer of a command run out
		}()
		env := map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "en_US.UTF-8"}
		for k, v := range o.Env {
			env[k] = v
		}
		ui := &UI{t: t, Fleet: f}
		m, err := tui.New(ctx, tui.Options{
			Ports: f.Ports(), Settings: o.Settings, Version: "test", Directory: o.Directory, Notice: o.Notice,
			Getenv: func(name string) string { return env[name] },
			Exec: func(c tea.ExecCommand, done tea.ExecCallback) tea.Cmd {
				return func() tea.Msg { return done(c.Run()) }
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ui.Model = m
		ui.start(m.Init())
		w, h := o.Width, o.Height
		if w == 0 {
			w, h = 120, 36
		}
		ui.Resize(w, h).Pass(handPause)
		test(ui)
	})
}

// start runs a command as Bubble Tea does, in a goroutine of its own.
func (ui *UI) start(c tea.Cmd) {
	if c == nil {
		return
	}
	go func() {
		message := c()
		if batch, ok := message.(tea.BatchMsg); ok {
			for _, c := range batch {
				ui.start(c)
			}
			return
		}
		if message != nil {
			ui.mu.Lock()
			ui.waiting = append(ui.waiting, message)
			ui.mu.Unlock()
		}
	}()
}

// Settle handles messages until every command has answered or waits for the
// world or for time to pass.
func (ui *UI) Settle() *UI {
	ui.t.Helper()
	for range 10000 {
		synctest.Wait()
		ui.mu.Lock()
		messages := ui.waiting
		ui.waiting = nil
		ui.mu.Unlock()
		if len(messages) == 0 {
			ui.check()
			return ui
		}
		for _, message := range messages {
			ui.update(message)
		}
	}
	ui.t.Fatal("the screen never settles")
	return ui
}

func (ui *UI) update(message tea.Msg) {
	switch message.(type) {
	case tea.QuitMsg:
		ui.ended = true
		return
	}
	if kind := fmt.Sprintf("%T", message); strings.HasPrefix(kind, "tea.") {
		ui.sent = append(ui.sent, message)
	}
	_, command := ui.Model.Update(message)
	ui.start(command)
}

// Send delivers messages one after the other and settles.
func (ui *UI) Send(messages ...tea.Msg) *UI {
	ui.t.Helper()
	for _, m := range messages {
		ui.update(m)
	}
	return ui.Settle()
}

// Resize changes the terminal's size.
func (ui *UI) Resize(w, h int) *UI {
	ui.t.Helper()
	return ui.Send(tea.WindowSizeMsg{Width: w, Height: h})
}

// Pass lets time pass, and handles what comes meanwhile.
func (ui *UI) Pass(d time.Duration) *UI {
	ui.t.Helper()
	for end := time.Now().Add(d); ; {
		ui.Settle()
		left := time.Until(end)
		if left <= 0 {
			return ui
		}
		<-time.After(min(left, 25*time.Millisecond))
	}
}

// Press presses keys, named as in the table of bindings ("j", "enter",
// "ctrl+r", "space"), and settles after each, with a pause as a hand makes it.
func (ui *UI) Press(keys ...string) *UI {
	ui.t.Helper()
	for _, k := range keys {
		ui.Send(Key(k))
		<-time.After(handPause)
		ui.Settle()
	}
	return ui
}

// handPause is the time between two presses of one hand.
const handPause = 50 * time.Millisecond

// Type types text, a key a rune, and settles at the end.
func (ui *UI) Type(text string) *UI {
	ui.t.Helper()
	for _, r := range text {
		if r == ' ' {
			ui.update(tea.KeyMsg{Type: tea.KeySpace, Runes: []rune{' '}})
			continue
		}
		ui.update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
	}
	return ui.Settle()
}

// Paste pastes text.
func (ui *UI) Paste(text string) *UI {
	ui.t.Helper()
	return ui.Send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Paste: true})
}

// Key is a key press by its name.
func Key(name string) tea.KeyMsg {
	k := tea.KeyMsg{}
	if len(name) > 4 && name[:4] == "alt+" {
		k.Alt = true
		name = name[4:]
	}
	if name == "space" || name == " " {
		k.Type, k.Runes = tea.KeySpace, []rune{' '}
		return k
	}
	if runes := []rune(name); len(runes) == 1 {
		k.Type, k.Runes = tea.KeyRunes, runes
		return k
	}
	for t := tea.KeyType(-100); t < 128; t++ {
		if t.String() == name {
			k.Type = t
			return k
		}
	}
	panic("no key is called " + name)
}

// check holds what every frame must keep: as many rows as the terminal has, and
// each exactly as wide.
func (ui *UI) check() {
	ui.t.Helper()
	w, h := ui.Model.Size()
	if w == 0 {
		return
	}
	rows := strings.Split(ui.Model.View(), "\n")
	if len(rows) != h {
		ui.t.Fatalf("the frame has %d rows, want %d:\n%s", len(rows), h, ui.Frame())
	}
	for i, r := range rows {
		if n := ansi.StringWidth(r); n != w {
			ui.t.Fatalf("row %d is %d cells wide, want %d: %q", i, n, w, r)
		}
	}
}

// Frame is the screen without colours.
func (ui *UI) Frame() string { return ansi.Strip(ui.Model.View()) }

// Colours is the screen with its escape sequences.
func (ui *UI) Colours() string { return ui.Model.View() }

// Quit reports whether the screen has ended.
func (ui *UI) Quit() bool { return ui.ended }

// Messages are those that were meant for Bubble Tea itself, such as mouse modes.
func (ui *UI) Messages() []tea.Msg { return ui.sent }

// Row asserts that a row of the frame holds each of the parts, in order.
func (ui *UI) Row(parts ...string) *UI {
	ui.t.Helper()
	for row := range strings.SplitSeq(ui.Frame(), "\n") {
		if inOrder(row, parts) {
			return ui
		}
	}
	ui.t.Fatalf("no row holds %q:\n%s", parts, ui.Frame())
	return ui
}

// NoRow asserts that no row holds the parts.
func (ui *UI) NoRow(parts ...string) *UI {
	ui.t.Helper()
	for row := range strings.SplitSeq(ui.Frame(), "\n") {
		if inOrder(row, parts) {
			ui.t.Fatalf("a row holds %q:\n%s", parts, ui.Frame())
		}
	}
	return ui
}

// Selected asserts that the row under the selection holds the parts.
func (ui *UI) Selected(parts ...string) *UI {
	ui.t.Helper()
	for row := range strings.SplitSeq(ui.Frame(), "\n") {
		if strings.HasPrefix(row, "❯") || strings.HasPrefix(row, "> ") {
			if !inOrder(row, parts) {
				ui.t.Fatalf("the selected row is %q, want %q", row, parts)
			}
			return ui
		}
	}
	ui.t.Fatalf("no row is selected:\n%s", ui.Frame())
	return ui
}

// Called asserts that a port was called so, at some time.
func (ui *UI) Called(call string) *UI {
	ui.t.Helper()
	for _, c := range ui.Fleet.Calls() {
		if c == call {
			return ui
		}
	}
	ui.t.Fatalf("nothing called %q; calls were:\n%s", call, strings.Join(ui.Fleet.Calls(), "\n"))
	return ui
}

// NotCalled asserts that no call begins so.
func (ui *UI) NotCalled(prefix string) *UI {
	ui.t.Helper()
	for _, c := range ui.Fleet.Calls() {
		if strings.HasPrefix(c, prefix) {
			ui.t.Fatalf("%q was called", c)
		}
	}
	return ui
}

func inOrder(text string, parts []string) bool {
	for _, p := range parts {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return true
}
