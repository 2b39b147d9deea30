package tui

import (
	"context"
	"io"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
)

// attach lends the terminal to a pane until the user detaches.
func (m *Model) attach(pane string) tea.Cmd {
	return m.call(quickly, func(context.Context) tea.Msg {
		// The attachment outlives this call: it ends with the screen's own context.
		a, err := m.ports.Panes.Attach(m.ctx, pane)
		return foregroundReady{attachment: a, err: err}
	})
}

func (m *Model) foreground(f foregroundReady) tea.Cmd {
	if f.err != nil {
		m.warn(f.err)
		return nil
	}
	run := m.exec(&borrowed{f.attachment, m.device, f.saved == nil}, func(err error) tea.Msg {
		return foregroundEnded{err, f.saved}
	})
	return func() tea.Msg {
		// Bubble Tea waits half a second for its reader to end, unless the reader
		// has ended by itself.
		m.device.Pause()
		return run()
	}
}

func (m *Model) foregroundDone(f foregroundEnded) tea.Cmd {
	if f.err != nil {
		m.warn(f.err)
	}
	commands := []tea.Cmd{m.rearm(), m.capture(), m.loadTab(), m.loadLog()}
	if f.saved != nil && f.err == nil {
		commands = append(commands, func() tea.Msg {
			text, err := f.saved()
			return edited{text, err}
		})
	}
	return tea.Batch(commands...)
}

// rearm sets the modes that Bubble Tea forgets when a foreground program ends.
func (m *Model) rearm() tea.Cmd {
	if m.mouse {
		return tea.EnableMouseCellMotion
	}
	return tea.DisableMouse
}

// borrowed runs a program in the foreground between two resets of the
// terminal's modes: what it left on (kitty keys, mouse, colours) must neither
// reach us nor the next one.
type borrowed struct {
	attachment fleet.Attachment
	device     device
	raw        bool // it wants every key from its first moment on
}

func (b *borrowed) Run() error {
	b.device.Leave()
	b.device.Lend(b.attachment)
	defer func() {
		b.device.Leave()
		b.device.Enter()
		b.device.Resume()
	}()
	if !b.raw {
		defer b.device.Usual()()
	} else {
		// tmux takes a moment to make the terminal raw. A ctrl-q typed in that
		// moment is flow control to a terminal in its usual modes, and lost.
		restore := b.device.Raw()
		defer func() {
			b.device.Send("\r") // its last word ended in a bare line feed
			restore()
		}()
	}
	return b.attachment.Run()
}

// Bubble Tea offers its own reader and writer; a program needs the terminal.
func (b *borrowed) SetStdin(io.Reader)    {}
func (b *borrowed) SetStdout(io.Writer)   {}
func (b *borrowed) SetStderr(w io.Writer) { b.attachment.SetStderr(w) }

// suspend stops cellmux until the shell continues it.
func (m *Model) suspend() tea.Cmd {
	stop, err := m.device.Suspend()
	if err != nil {
		m.warn(err)
		return nil
	}
	if stop == nil {
		return nil
	}
	run := m.exec(&borrowed{suspension{stop}, m.device, false}, func(err error) tea.Msg { return resumed{err} })
	return func() tea.Msg {
		m.device.Pause()
		return run()
	}
}

// suspension gives a tea.ExecCommand the shape of an attachment.
type suspension struct{ tea.ExecCommand }

// quitNow cancels what runs, so that what it printed is saved, and ends.
func (m *Model) quitNow() tea.Cmd {
	live := m.log.liveRuns()
	if len(live) == 0 {
		return tea.Quit
	}
	m.say("Cancelling " + plural(len(live), "command", "commands") + " and saving …")
	return m.call(quickly, func(ctx context.Context) tea.Msg {
		for _, l := range live {
			l.handle.Cancel()
		}
		for _, l := range live {
			_, _ = l.handle.Wait(ctx)
		}
		return tea.Quit()
	})
}
