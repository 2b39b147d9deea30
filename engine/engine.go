// Package engine carries cells: it holds what an engine is, which one a cell
// gets, and the one way in which a pane is opened on any of them.
//
// The rule it keeps: an engine decides how a value travels into a guest, never
// what the value is. Values come from package cell.
package engine

import (
	"context"
	"strings"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
)

// Kind names an engine; the words are those of [cell] engine in devcell.toml.
type Kind string

// The engines.
const (
	Host    Kind = "host"
	Docker  Kind = "docker"
	Tart    Kind = "tart"
	Winkit  Kind = "winkit"
	MicroVM Kind = "microvm"
)

// Cell is what an engine needs to know of a cell. Values only.
type Cell struct {
	Name          string
	Workspace     string
	WorkspaceHome string // host path
	ProjectDir    string // host path
	Kind          Kind
	Config        cfg.CellConfig // effective and approved
}

// Availability is an engine's answer to "can you carry a cell here, now?".
type Availability struct {
	Usable  bool
	Version string
	Reason  string // when not usable: a sentence with the next step
}

// Progress is one step of long work, for display.
type Progress struct {
	Step        string
	Done, Total int64 // in Unit; Total 0 is unknown
	Unit        string
}

// Instance is a guest that exists now.
type Instance struct {
	Cell    string
	ID      string
	Running bool
	Paused  bool   // stopped in its tracks; Up lets it go on
	Detail  string // as the engine says it: "Up 2 hours"
	// Settings are what it was made with, for Drifter; nil where the engine keeps
	// none.
	Settings map[string]string
}

// Spec is one program to start inside a cell.
type Spec struct {
	Cell      Cell
	Argv      []string // as seen inside
	Dir       string   // inside; "" is the project directory
	Env       []string // KEY=VALUE for the program, in cell.GuestEnv's order, later wins
	Secrets   []string // names in Env whose values must not ride in any argv
	TTY       bool
	Execution string // set: the program is its own session inside, and End(Execution) ends it
}

// Launch is a host process that runs a Spec. Env is complete: the hand-off
// execs it with nothing else.
type Launch struct {
	Argv []string
	Dir  string
	Env  []string
}

// Cmd is the launch as a process without a terminal. Limits and input are the
// caller's to set. The execution that the Spec named stays its marker, so that
// Engine.End finds it.
func (l Launch) Cmd() proc.Cmd {
	c := proc.Cmd{Argv: l.Argv, Dir: l.Dir, Env: l.Env}
	for _, pair := range l.Env {
		if execution, ok := strings.CutPrefix(pair, proc.MarkerVariable+"="); ok {
			c.Marker = execution
		}
	}
	return c
}

// Engine carries cells. Methods that take a context may block on the engine's
// own program and obey its deadline; Guest and Launch are pure. All are safe
// for concurrent use.
type Engine interface {
	Kind() Kind
	Probe(ctx context.Context) Availability
	Guest(c Cell) cfg.Guest
	// Up makes the cell ready to run programs: it creates or starts what is
	// missing and does nothing when the cell is up. progress may be nil.
	Up(ctx context.Context, c Cell, progress func(Progress)) error
	Launch(s Spec) (Launch, error)
	// End ends the session that Spec.Execution named, with everything in it.
	// An execution that has ended already is no error.
	End(ctx context.Context, c Cell, execution string) error
	Instances(ctx context.Context) ([]Instance, error)
	// Down stops the guest and everything in it; what is mounted stays.
	Down(ctx context.Context, c Cell) error
}

// Drifter is an engine whose guests keep the settings that they were made with.
type Drifter interface {
	// Drift tells what of a cell's configuration its guest does not have yet, a
	// phrase for each; it takes effect after Down and Up. i is of Instances.
	Drift(ctx context.Context, c Cell, i Instance) ([]string, error)
}

// Idler is an engine whose guests need not stay when nobody is in them.
type Idler interface {
	// DownIfIdle takes a guest down unless some program runs in it.
	DownIfIdle(ctx context.Context, c Cell) (bool, error)
}

// Remover is an engine whose guests stay when they are down.
type Remover interface {
	// Remove removes a cell's guest for good, for a cell that is deleted for good,
	// with what was made for it. What is mounted stays. A guest that is gone is no
	// error.
	Remove(ctx context.Context, c Cell) error
}

// AgentPreparer is an engine whose guests need something of the host before an
// agent's first start, such as its login. The guest is up.
type AgentPreparer interface {
	PrepareAgent(ctx context.Context, c Cell, agent string) error
}
