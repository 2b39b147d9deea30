// Package enginetest holds what every engine must do, as tests, and a fake.
//
// The rule it keeps: nothing here knows how an engine works. A test looks at
// what a real program inside a cell sees, and at what is left when it has ended.
package enginetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/engine"
)

// Fake is an engine whose guests are processes of this machine: it keeps every
// rule of the conformance suite and can be made to fail. It is safe for
// concurrent use once its exported fields are set.
type Fake struct {
	Word      engine.Kind // "" is Docker
	Isolated  bool        // what Guest says
	Answer    engine.Availability
	UpError   error // what Up answers, after it has counted
	LaunchErr error
	// PrepareError is what PrepareAgent answers.
	PrepareError error

	mu       sync.Mutex
	up       map[string]int // by cell name; a cell that is down has none
	ended    []string
	prepared []string
}

var (
	_ engine.Engine        = (*Fake)(nil)
	_ engine.AgentPreparer = (*Fake)(nil)
)

// NewFake returns a usable fake that claims to be an isolated Docker engine.
func NewFake() *Fake {
	return &Fake{Isolated: true, Answer: engine.Availability{Usable: true, Version: "fake"}}
}

// Kind implements engine.Engine.
func (f *Fake) Kind() engine.Kind {
	if f.Word == "" {
		return engine.Docker
	}
	return f.Word
}

// Probe implements engine.Engine.
func (f *Fake) Probe(context.Context) engine.Availability { return f.Answer }

// Guest implements engine.Engine. Paths are the host's own: the fake mounts
// nothing.
func (f *Fake) Guest(c engine.Cell) cfg.Guest {
	return cfg.Guest{
		Isolated: f.Isolated, Kind: "fake guest", Hostname: c.Name,
		Home: c.WorkspaceHome, ProjectDir: c.ProjectDir, Git: cfg.GitReadWrite,
	}
}

// Ups returns how many times Up was called for a cell since it was last down.
func (f *Fake) Ups(cell string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.up[cell]
}

// Up implements engine.Engine.
func (f *Fake) Up(ctx context.Context, c engine.Cell, progress func(engine.Progress)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.up == nil {
		f.up = make(map[string]int)
	}
	f.up[c.Name]++
	if progress != nil {
		progress(engine.Progress{Step: "starting a fake", Done: 1, Total: 1, Unit: "steps"})
	}
	if f.UpError != nil {
		return f.UpError
	}
	return engine.CheckProjectDir(c.ProjectDir)
}

// Launch implements engine.Engine.
func (f *Fake) Launch(s engine.Spec) (engine.Launch, error) {
	if f.LaunchErr != nil {
		return engine.Launch{}, f.LaunchErr
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return engine.Launch{}, errors.New("the command is empty")
	}
	dir := s.Dir
	if dir == "" {
		dir = s.Cell.ProjectDir
	}
	env := slices.Clone(s.Env)
	if s.Execution != "" {
		env = append(env, proc.MarkerVariable+"="+s.Execution)
	}
	return engine.Launch{Argv: slices.Clone(s.Argv), Dir: dir, Env: engine.LastWins(env)}, nil
}

// End implements engine.Engine.
func (f *Fake) End(ctx context.Context, _ engine.Cell, execution string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	f.ended = append(f.ended, execution)
	f.mu.Unlock()
	_, err := proc.EndTree(proc.Tree{Marker: execution}, 200*time.Millisecond)
	return err
}

// Ended returns the executions that End was called for.
func (f *Fake) Ended() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ended)
}

// PrepareAgent implements engine.AgentPreparer.
func (f *Fake) PrepareAgent(_ context.Context, _ engine.Cell, agent string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepared = append(f.prepared, agent)
	return f.PrepareError
}

// Prepared returns the agents that PrepareAgent was called for.
func (f *Fake) Prepared() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.prepared)
}

// Instances implements engine.Engine.
func (f *Fake) Instances(ctx context.Context) ([]engine.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []engine.Instance
	for name := range f.up {
		all = append(all, engine.Instance{Cell: name, ID: "fake-" + name, Running: true})
	}
	slices.SortFunc(all, func(a, b engine.Instance) int { return strings.Compare(a.Cell, b.Cell) })
	return all, nil
}

// Down implements engine.Engine.
func (f *Fake) Down(ctx context.Context, c engine.Cell) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.up, c.Name)
	return nil
}
