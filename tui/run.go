package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
	"cellmux/tui/input"
)

// ErrNoScreen says that the terminal cannot show a full screen.
var ErrNoScreen = errors.New("this terminal cannot show a full screen")

// ErrFailed says that cellmux itself is at fault.
var ErrFailed = errors.New("the screen failed")

// ticksPerSecond is how often Bubble Tea looks for something to draw, which it
// never has: the terminal's Screen draws.
const ticksPerSecond = 1

// Run shows the screen until the user quits, ctx ends, the process is told to
// end, or the terminal goes away. The terminal is as it was when it returns,
// also after a panic in a command. What is left to say is written to Out.
func Run(ctx context.Context, o Options) error {
	if o.Getenv != nil && o.Getenv("TERM") == "dumb" {
		return fmt.Errorf("%w: TERM is dumb; use `cellmux ls` and the other commands, or set TERM to what your terminal is", ErrNoScreen)
	}
	terminal, err := input.Open(o.In, o.Out)
	if err != nil {
		return fmt.Errorf("%w: %w; for scripts there is `cellmux ls --json` and the other commands", ErrNoScreen, err)
	}
	defer terminal.Keys.Close()
	restore, err := terminal.Save()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoScreen, err)
	}
	ctx, stop := input.UntilSignal(ctx)
	defer stop()
	m, err := New(ctx, o)
	if err != nil {
		return err
	}
	// Bubble Tea listens for a new size a moment after it has drawn: one that comes
	// before would never be seen.
	resized, deaf := terminal.Resized()
	defer deaf()
	m.width, m.height = terminal.Size() // the first frame need not wait for a message
	m.device = &lent{terminal: terminal, in: o.In, out: o.Out, restore: restore}
	defer func() {
		terminal.Screen.Leave()
		restore()
	}()
	terminal.Typing()
	terminal.Screen.Enter()
	drawing, endDrawing := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { terminal.Screen.Run(drawing) })
	defer ended.Wait()
	defer endDrawing()
	options := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(terminal.Keys), tea.WithOutput(terminal),
		tea.WithAltScreen(), tea.WithReportFocus(), tea.WithFPS(ticksPerSecond),
		tea.WithoutSignalHandler(), // UntilSignal hears SIGHUP too
	}
	if m.mouse {
		options = append(options, tea.WithMouseCellMotion())
	}
	program := tea.NewProgram(drawn{Model: m, frames: terminal.Screen, more: terminal.Keys.More}, options...)
	ended.Go(func() { tellSizes(drawing, program, terminal, resized) })
	_, err = program.Run()
	switch {
	case err == nil:
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("%w; panes run on: %w", ErrFailed, err)
	case errors.Is(err, input.ErrClosed), ctx.Err() != nil:
		// The terminal hung up, or we were told to end. Nothing is lost: panes run
		// on, and every message was stored before anything else happened to it.
		return nil
	default:
		return fmt.Errorf("the screen ended: %w; panes run on", err)
	}
	terminal.Screen.Leave()
	if text := m.Farewell(); text != "" {
		fmt.Fprintln(o.Out, text)
	}
	return nil
}

// tellSizes sends the terminal's size each time it may have changed.
func tellSizes(ctx context.Context, program *tea.Program, terminal *input.Terminal, resized <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-resized:
			if !open {
				return
			}
			if width, height := terminal.Size(); width > 0 {
				program.Send(tea.WindowSizeMsg{Width: width, Height: height})
			}
		}
	}
}

// lent is the real device.
type lent struct {
	terminal *input.Terminal
	in       io.Reader
	out      io.Writer
	restore  func() // to the modes that the user's shell had set
}

func (l *lent) Pause()                    { l.terminal.Keys.Pause() }
func (l *lent) Resume()                   { l.terminal.Keys.Resume() }
func (l *lent) Enter()                    { l.terminal.Screen.Enter() }
func (l *lent) Leave()                    { l.terminal.Screen.Leave() }
func (l *lent) SetCursor(column, row int) { l.terminal.Screen.SetCursor(column, row) }
func (l *lent) HideCursor()               { l.terminal.Screen.HideCursor() }
func (l *lent) Send(sequence string)      { _, _ = l.terminal.Screen.Write([]byte(sequence)) }

// Lend gives a program the terminal's own files: with anything else in between
// it would get pipes.
func (l *lent) Lend(a fleet.Attachment) {
	a.SetStdin(l.in)
	a.SetStdout(l.out)
}

func (l *lent) Raw() (restore func()) { return l.terminal.Raw() }

func (l *lent) Usual() (restore func()) {
	l.restore()
	return l.terminal.Typing
}

func (l *lent) Suspend() (tea.ExecCommand, error) {
	if err := input.CanSuspend(); err != nil {
		return nil, fmt.Errorf("suspending is off: %w", err)
	}
	return input.Suspension{}, nil
}
