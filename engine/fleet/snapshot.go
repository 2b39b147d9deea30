// Package fleet is the list that everything shows and acts on: the cells of
// this host, joined with the panes that run in them now.
//
// The rule it keeps: tmux is the truth about what is alive, the database about
// what exists; a missing answer makes a pane unknown, never dead, and nothing
// is ended or rewritten on the strength of it.
package fleet

import (
	"io"
	"time"
)

// Status is what a slot is doing. The zero value is Unknown.
type Status int

// The statuses, in the order of attention.
const (
	Unknown Status = iota
	Waiting        // the agent asks something; Question says what
	Failed         // the agent reported an error, or needs a login
	Running
	Idle
	Dead    // the pane's program has ended; ExitStatus says how
	Stopped // no pane
)

// Ref names a slot, "CELL:SLOT" on the command line.
type Ref struct {
	Cell string
	Slot int
}

// Slot is one row below a cell.
type Slot struct {
	Ref        Ref
	Agent      string
	Title      string
	SessionID  string
	Status     Status
	Detail     string    // what it does, or why it failed; one line, control characters removed
	Question   string    // of a waiting agent, in its own words
	Since      time.Time // when Status began; zero: before anybody looked
	Pane       string    // tmux pane ID; "" when there is none
	ExitStatus int
	Notes      []string // for the Info tab
	Queued     int      // messages that wait for delivery
	Archived   bool
}

// Cell is one cell with its slots, in slot order.
type Cell struct {
	Name, Title  string
	Workspace    string
	ProjectDir   string
	Engine       string
	EngineReason string
	Guest        Guest
	Offered      bool   // not in the database: the current directory, offered as a cell
	Problem      string // its project file is bad, its directory is gone, …: a sentence
	Approval     string // what of its project file waits for approval; "" nothing
	Git          string // short: "clean", "+48-12 ^2"; "" unknown
	// CommitsOnHost says that git inside can only read: Fleet.Commit commits.
	CommitsOnHost bool
	Pinned        bool
	Archived      bool
	Created       time.Time
	Slots         []Slot
}

// Outside is a pane of the tmux server that the user stands in.
type Outside struct {
	Pane, Session, Command, Path, Title string
	Activity                            time.Time
}

// Engine is an engine's state for the header.
type Engine struct {
	Kind   string
	Usable bool
	Probed bool
	Detail string
}

// Snapshot is the whole list at one moment. It is a value: nobody changes one
// that was handed out.
type Snapshot struct {
	Cells   []Cell
	Outside []Outside
	Engines []Engine
	Work    []Work // long work that runs now, oldest first
	Server  string // "" when tmux answers, else a sentence
	Taken   time.Time
}

// NewCell asks for a cell. Empty fields take the defaults of DESIGN.md: the
// workspace "main", the name from the project's base name, the engine by
// selection.
type NewCell struct {
	ProjectDir string // absolute; required
	Name       string
	Title      string
	Workspace  string
	Engine     string // as --engine says it, auto included; "" not said
	OS         string // as --os says it: linux, macos, windows; "" not said
	Agent      string // what its first pane will run, for the engine auto; "" not said
}

// Approval is what a project's devcell.toml would do once the user approves it.
type Approval struct {
	Cell string
	File string   // path of the file
	Hash string   // of the bytes that were read for Acts; Trust takes it back
	Acts []string // what waits for approval, a line each; empty: nothing does
}

// Fact is a line of the Info tab.
type Fact struct{ Label, Value string }

// Event is something that cellmux did, for the "what cellmux did" view.
type Event struct {
	At      time.Time
	Action  string   // such as "open api:0"
	Command []string // argv that it ran, without values; nil none
	Error   string
}

// Screen is the text of a pane, one string a row; each row ends with its
// colours reset.
type Screen struct {
	Pane          string
	Rows          []string
	Width, Height int
	Taken         time.Time
}

// Attachment lends the terminal to a pane until the user detaches. It has the
// shape of tea.ExecCommand.
type Attachment interface {
	Run() error
	SetStdin(io.Reader)
	SetStdout(io.Writer)
	SetStderr(io.Writer)
}

// AgentChoice is one entry of the agent menu.
type AgentChoice struct {
	Name   string
	Found  bool
	Reason string // when not Found: a sentence that says how to get it
}

// Work is something that takes long (an image build, a copy into a guest), for
// the screen to show and to cancel.
type Work struct {
	ID          string
	Cell        string
	What        string // "building the image of api"
	Step        string
	Done, Total int64 // in Unit; Total 0 is unknown
	Unit        string
	Started     time.Time
}

// Trashed is a deleted cell or slot that can be restored.
type Trashed struct {
	Ref     Ref
	Title   string
	Deleted time.Time
}

// Prompts are the two prompt layers of a slot. An empty Base means that the
// agent's built-in prompt stays.
type Prompts struct{ Base, Overlay string }

// Variable is one variable of a program's environment, or one of the host's that
// stays out of it.
type Variable struct {
	Name  string
	Value string // "" when it stays out; masked when it is secret
	Kept  bool
	Why   string // who let it in, or why it stays out; one phrase
}

// Job is a `!` command of which something runs, in any cellmux of this user.
type Job struct {
	ID         string
	Ref        Ref
	Command    string
	Started    time.Time
	Running    bool // the command itself; else what it left in the background
	Background int  // processes that it left, of one that does not run itself
	Elsewhere  bool // another cellmux runs it
}
