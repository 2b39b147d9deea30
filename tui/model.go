// Package tui is the screen: it lists cells and panes, shows what each does and
// which waits, and turns keys into what the user meant.
//
// The rule it keeps: Update routes and View draws, from state alone; whatever
// may block happens in a command that perform makes, which calls one port and
// returns one message, and a message that comes late is dropped. Nothing here
// reads a file, starts a process or opens a connection.
package tui

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
)

// Model is the state of the screen. It is changed by Update alone.
type Model struct {
	ctx      context.Context
	ports    Ports
	settings Settings
	version  string
	exec     func(tea.ExecCommand, tea.ExecCallback) tea.Cmd
	terminal terminal
	home     string
	keys     *keymap
	painter  *painter
	device   device

	width, height int
	focus         place
	zoomed        bool
	mouse         bool
	blurred       bool   // the terminal lost the focus: refresh less often
	pressed       string // the first key of a binding of two
	interrupted   time.Time

	known     bool      // a snapshot has come
	silent    time.Time // since when tmux gives no answer; zero: it answers
	snapshot  fleet.Snapshot
	list      list
	preview   preview
	tabs      tabs
	log       shellLog
	composer  composer
	typeIn    typeIn
	overlay   overlay
	endSearch context.CancelFunc // of the text before; nil: there was none
	lineWaits *lineForPane       // typed into its pane as soon as there is one
	note      note
	undo      time.Time // until when "undo" is offered in the footer
	busy      map[fleet.Ref]string
	acting    map[int]bool      // actions without an answer, by number
	acted     int               // number of the last one
	asked     map[string]bool   // cells whose project file has been shown for approval
	drafts    map[string]string // messages of commits that were not made, by cell
	followed  rowID             // what preview, tabs and log were last loaded for
	arrived   generation        // of the selection
	clock     generation        // of the age tick
	pictures  map[rowView]string
	same      bool // the newest message changed nothing that is shown
}

// A generation tells a command's answer that it comes too late.
type generation int

// device is the terminal behind Bubble Tea; Run supplies tui/input's.
type device interface {
	// Pause and Resume take the keyboard away from the screen and give it back.
	Pause()
	Resume()
	// Enter and Leave set the terminal's modes for the screen, and back.
	Enter()
	Leave()
	SetCursor(column, row int)
	HideCursor()
	// Send writes a sequence that draws nothing, such as OSC 52.
	Send(sequence string)
	// Lend points a foreground program at the terminal itself.
	Lend(fleet.Attachment)
	// Raw makes the terminal hand over every byte as typed, until restore.
	Raw() (restore func())
	// Usual puts the user's own modes back, until restore.
	Usual() (restore func())
	// Suspend stops the process until the shell continues it.
	Suspend() (tea.ExecCommand, error)
}

// New makes a model that has not drawn yet. It fails on a theme or keys that
// cannot be; the error says what to change.
func New(ctx context.Context, o Options) (*Model, error) {
	keys, err := newKeymap(o.Settings.Keys)
	if err != nil {
		return nil, err
	}
	t := readTerminal(o.Getenv)
	style, err := newStyles(o.Settings.Theme, o.Settings.Themes, t.coloured())
	if err != nil {
		return nil, err
	}
	p := &painter{styles: style, glyphs: &unicodeGlyphs}
	if t.ascii || o.Settings.ASCII {
		p.glyphs = &asciiGlyphs
	}
	m := &Model{
		ctx: ctx, ports: o.Ports, settings: o.Settings, version: o.Version, exec: o.Exec, terminal: t,
		keys: keys, painter: p, device: noDevice{},
		focus: inList, list: newList(o.Settings, o.Directory),
		composer: newComposer(), busy: map[fleet.Ref]string{}, acting: map[int]bool{}, asked: map[string]bool{},
		drafts:   map[string]string{},
		pictures: map[rowView]string{},
		mouse:    !o.Settings.NoMouse && !t.mosh,
	}
	if m.exec == nil {
		m.exec = tea.Exec
	}
	if o.Getenv != nil {
		m.home = o.Getenv("HOME")
	}
	m.log.live = map[string]*liveRun{}
	m.log.open = map[string]bool{}
	m.preview.limit = 4
	if o.Notice != "" {
		m.say(o.Notice)
	}
	return m, nil
}

// Init begins to listen to the fleet; to conversations with its first list. It
// does no I/O itself.
func (m *Model) Init() tea.Cmd {
	snapshots := m.ports.Fleet.Watch
	return tea.Batch(
		func() tea.Msg { return watching[fleet.Snapshot](snapshots(m.ctx)) },
		m.tick(),
	)
}

// noDevice is a screen without a terminal, as in tests.
type noDevice struct{}

func (noDevice) Pause()                            {}
func (noDevice) Resume()                           {}
func (noDevice) Enter()                            {}
func (noDevice) Leave()                            {}
func (noDevice) SetCursor(int, int)                {}
func (noDevice) HideCursor()                       {}
func (noDevice) Send(string)                       {}
func (noDevice) Lend(fleet.Attachment)             {}
func (noDevice) Raw() (restore func())             { return func() {} }
func (noDevice) Usual() (restore func())           { return func() {} }
func (noDevice) Suspend() (tea.ExecCommand, error) { return nil, nil }

// Size is the terminal's size in cells, 0 before it is known.
func (m *Model) Size() (w, h int) { return m.width, m.height }
