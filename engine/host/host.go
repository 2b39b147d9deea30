// Package host carries cells on this machine, with no isolation.
//
// The rule it keeps: a host cell needs nothing installed and nothing started,
// and says plainly that it isolates nothing. A launch is the program itself,
// with exactly the environment that it was given.
package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/engine"
)

// endGrace is how long an execution may take to end after it was asked to.
const endGrace = 2 * time.Second

// Options is what the engine needs to know of this machine.
type Options struct {
	Home     string // the user's own home
	Hostname string
}

// Host is the engine.
type Host struct{ o Options }

var _ engine.Engine = (*Host)(nil)

// New returns the engine.
func New(o Options) *Host { return &Host{o} }

// Kind implements engine.Engine.
func (*Host) Kind() engine.Kind { return engine.Host }

// Probe implements engine.Engine. The host is always usable.
func (*Host) Probe(context.Context) engine.Availability { return engine.Availability{Usable: true} }

// Guest implements engine.Engine: paths are the host's own.
func (h *Host) Guest(c engine.Cell) cfg.Guest {
	return cfg.Guest{
		Kind:       "host",
		Hostname:   h.o.Hostname,
		Home:       h.o.Home,
		ProjectDir: c.ProjectDir,
		Git:        cfg.GitReadWrite,
	}
}

// Up implements engine.Engine: it checks the project directory, which may have
// vanished since the cell was made.
func (*Host) Up(ctx context.Context, c engine.Cell, _ func(engine.Progress)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return engine.CheckProjectDir(c.ProjectDir)
}

// Launch implements engine.Engine: the program itself. A name that Env holds
// twice is kept at its last value.
func (*Host) Launch(s engine.Spec) (engine.Launch, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return engine.Launch{}, errors.New("the command is empty")
	}
	dir := s.Dir
	if dir == "" {
		dir = s.Cell.ProjectDir
	}
	env := s.Env
	if s.Execution != "" {
		env = append(slices.Clone(env), proc.MarkerVariable+"="+s.Execution)
	}
	return engine.Launch{Argv: slices.Clone(s.Argv), Dir: dir, Env: engine.LastWins(env)}, nil
}

// End implements engine.Engine. It finds the execution by its marker in the
// environment of its processes, and blocks until they are gone, 4 s at most.
func (*Host) End(ctx context.Context, _ engine.Cell, execution string) error {
	if execution == "" {
		return errors.New("end an execution: it has no name")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := proc.EndTree(proc.Tree{Marker: execution}, endGrace); err != nil {
		return fmt.Errorf("end execution %s: %w", execution, err)
	}
	return nil
}

// Instances implements engine.Engine. The host has no guests.
func (*Host) Instances(context.Context) ([]engine.Instance, error) { return nil, nil }

// Down implements engine.Engine. There is no guest to stop; a cell's panes are
// ended by the terminal server.
func (*Host) Down(context.Context, engine.Cell) error { return nil }
