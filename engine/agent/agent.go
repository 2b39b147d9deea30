// Package agent knows the coding agents: how each is found, started in a
// conversation, told its prompts, given text, interrupted, watched, and how a
// headless turn of it is run and judged.
//
// The rule it keeps: one declaration per agent says all of it, and panes,
// headless turns, the list and doctor ask the same one. What an agent is doing
// is read from a level source where there is one, so that a missed event leaves
// nothing stuck; a source that says nothing makes the answer unknown, never
// wrong. What a guest wrote is hostile input.
package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// Options is what a Set is made of. The zero value works, without flag probes.
type Options struct {
	// Custom are the user's own agents, from config.toml. One that has the name
	// of a built-in replaces it.
	Custom []Custom
	// Runner starts flag probes; nil is no probes: the flags of the verified
	// versions are assumed.
	Runner proc.Runner
	// Environ is the environment of flag probes, KEY=VALUE.
	Environ []string
	Now     func() time.Time // nil is time.Now
}

// Custom is an agent of the user's own.
type Custom struct {
	Name    string
	Command []string // program and arguments
	// Headless are the program and arguments of one turn without a terminal,
	// whose prompt comes on standard input and whose output is the answer; nil is
	// none.
	Headless  []string
	Interrupt []string // keys; nil is Escape
	// Settle is how long after a paste the Enter must wait; 0 is 300 ms.
	Settle time.Duration
	// Screen says what a row of its screen means; empty fields mean nothing.
	Screen ScreenRule
}

// Set is the agents that can be opened. It is safe for concurrent use.
type Set struct {
	agents []*Agent
	prober *prober
	now    func() time.Time

	listeners listeners
}

// New returns the built-in agents and the user's own.
func New(o Options) *Set {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Set{prober: newProber(o.Runner, o.Environ), now: o.Now}
	declarations := builtin()
	for _, c := range o.Custom {
		d := customDeclaration(c)
		at := slices.IndexFunc(declarations, func(b declaration) bool { return b.name == d.name })
		if at >= 0 {
			declarations[at] = d
			continue
		}
		// Before the shell, which is what is opened when nothing else is there.
		declarations = slices.Insert(declarations, len(declarations)-1, d)
	}
	for _, d := range declarations {
		s.agents = append(s.agents, &Agent{declaration: d, set: s})
	}
	return s
}

// Names lists the agents in the order of preference; the shell is last.
func (s *Set) Names() []string {
	names := make([]string, len(s.agents))
	for i, a := range s.agents {
		names[i] = a.name
	}
	return names
}

// Lookup returns the agent of that name.
func (s *Set) Lookup(name string) (*Agent, bool) {
	for _, a := range s.agents {
		if a.name == name {
			return a, true
		}
	}
	return nil, false
}

// First returns the first agent that lookPath finds, and the path of its
// program. The shell is always found, with an empty path where lookPath knows
// none.
func (s *Set) First(lookPath func(program string) (string, error)) (a *Agent, program string) {
	for _, a := range s.agents {
		if path, ok := a.Find(lookPath); ok {
			return a, path
		}
	}
	return s.agents[len(s.agents)-1], ""
}

// Agent is one agent's declaration, ready for use.
type Agent struct {
	declaration
	set *Set
}

var _ engine.Agent = (*Agent)(nil)

// Name is what devcell.toml, the list and the command line call it.
func (a *Agent) Name() string { return a.name }

// Title is the agent's own name, for people.
func (a *Agent) Title() string { return a.title }

// Verified is the version that the declaration was checked against by running
// it; "" where it comes from documentation alone.
func (a *Agent) Verified() string { return a.verified }

// Find looks for the agent's program. lookPath is exec.LookPath, or the same
// inside a guest.
func (a *Agent) Find(lookPath func(program string) (string, error)) (path string, ok bool) {
	for _, program := range a.programs {
		if path, err := lookPath(program); err == nil && path != "" {
			return path, true
		}
	}
	return "", false
}

// Probed is what doctor says of an agent's binary.
type Probed struct {
	Version  string   // "" unknown
	Standing Standing // of Version
	Missing  []string // flags that the declaration would pass and the binary does not know
	Costs    []string // what works less well with this binary, a sentence each
	Fault    string   // why the binary did not answer, "" when it did or was not asked
}

// Probe asks a binary, once while it does not change, for its version and flags.
// It blocks for as long as --help and --version take, at most 15 s each, and
// obeys ctx. A shell and the user's own agents are not asked: what they would do
// with a --help is not known.
func (a *Agent) Probe(ctx context.Context, program string) Probed {
	if a.install == "" {
		return Probed{}
	}
	f := a.set.prober.probe(ctx, program, a.flags)
	p := Probed{Version: f.version, Standing: standing(f.version, a.verified), Fault: line(f.fault)}
	for _, flag := range a.flags {
		if !f.has(flag) {
			p.Missing = append(p.Missing, flag)
		}
	}
	p.Costs = a.costsOf(f, false)
	return p
}

// costsOf is what works less well with a binary of these features, a sentence
// each; the Info tab and doctor say the same.
func (a *Agent) costsOf(f features, isolated bool) []string {
	if a.costs == nil || !f.known {
		return nil
	}
	return a.costs(f, isolated)
}

// Install is the command that installs the agent, for doctor; "" where there is
// none to name.
func (a *Agent) Install() string { return a.install }

// Settle is how long an Enter must wait after a paste.
func (a *Agent) Settle() time.Duration { return a.settle }

// SteersOnEnter says whether a message that is entered while a turn runs enters
// that turn. Where it does not, the agent queues it.
func (a *Agent) SteersOnEnter() bool { return a.steers }

// TakesMessages says whether the agent holds conversations: a shell does not.
func (a *Agent) TakesMessages() bool { return !a.shell }

// interruptPause is between the keys of an interrupt: two Escapes in one read
// are one key with Alt to a terminal program.
const interruptPause = 200 * time.Millisecond

// Interrupt stops a running turn and nothing else, with the agent's own keys,
// named as tmux names keys. send is called for each; it blocks for the pauses
// between them.
func (a *Agent) Interrupt(ctx context.Context, send func(ctx context.Context, key string) error) error {
	for i, key := range a.interrupt {
		if i > 0 {
			pause := time.NewTimer(interruptPause)
			select {
			case <-ctx.Done():
				pause.Stop()
				return ctx.Err()
			case <-pause.C:
			}
		}
		if err := send(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// ReadOnly says how a review by this agent is kept from changing anything; "" is
// an agent that cannot be kept from it, and must not be asked for one.
func (a *Agent) ReadOnly() string { return a.readOnly }

// StashKeys put a half-typed draft aside so that it comes back after the next
// message; nil where the agent cannot.
func (a *Agent) StashKeys() []string { return slices.Clone(a.stash) }

// Plan says how to start the agent so that it is in the slot's conversation.
func (a *Agent) Plan(ctx context.Context, in engine.AgentInput) (engine.AgentPlan, error) {
	p := &planning{
		AgentInput: in,
		agent:      a,
		rooms:      roomsOf(in),
		now:        a.set.now(),
	}
	p.program = in.Program
	if p.program == "" {
		p.program = a.programs[0]
	}
	if !in.Config.Guest.Isolated && len(a.flags) > 0 {
		p.features = a.set.prober.probe(ctx, p.program, a.flags)
	} else {
		p.features = assumed(a.flags)
	}
	if in.Review && a.readOnly == "" {
		return engine.AgentPlan{}, fmt.Errorf("plan %s for %s: a review may change nothing, and no read-only mode of %s is known", a.name, in.Config.AppName(), a.name)
	}
	if err := p.prepare(); err != nil {
		return engine.AgentPlan{}, fmt.Errorf("plan %s for %s: %w", a.name, in.Config.AppName(), err)
	}
	if err := a.plan(ctx, p); err != nil {
		return engine.AgentPlan{}, fmt.Errorf("plan %s for %s: %w", a.name, in.Config.AppName(), err)
	}
	if err := p.finish(); err != nil {
		return engine.AgentPlan{}, fmt.Errorf("plan %s for %s: %w", a.name, in.Config.AppName(), err)
	}
	return p.out, nil
}
