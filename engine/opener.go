package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"cellmux/cell"
	"cellmux/cell/cfg"
)

// Values is what the approved configuration of a cell says at the moment of a
// launch: expanded, with its secrets fetched.
type Values struct {
	Config  cfg.CellConfig
	BaseDir string            // where relative paths of the project's file start
	Env     map[string]string // [env], expanded
	Secrets []string          // [secrets] as KEY=VALUE
	Mask    []string          // names in Env whose values came from a secret
	Notes   []string          // sentences for the Info tab
}

// Configs gives the values of a cell. It may run the commands that an approved
// file names for its secrets; its error names a secret, never a value.
type Configs interface {
	Values(ctx context.Context, c Cell) (Values, error)
}

// OpenerOptions is what an Opener works with. Self, RuntimeDir, Environ, Agent
// and at least one engine are required; Panes is, for Open.
type OpenerOptions struct {
	Engines    []Engine
	Panes      Panes
	Agent      func(name string) (Agent, bool)
	Configs    Configs // nil: the Config of each Cell, as it stands
	Self       string  // path of the cellmux program
	RuntimeDir string  // of RuntimeDir
	Environ    []string
	Pass       []string                                                      // host variables that the user lets in besides (config.toml)
	GitConfig  func(ctx context.Context, dir string) func(key string) string // cell.GitConfigIn; nil asks no git
	Home       string                                                        // the user's own home, where agents of host cells keep their files
	HostUser   string
	// State names the state directory that the slots are of (StateName); with "", or without PanesGone, agents that outlive their panes are not looked for.
	State string
	// PanesGone says which panes are certainly gone, by where processes were started.
	PanesGone func(ctx context.Context, origins []PaneOrigin) []bool
}

// Opener opens panes: the one way in which a slot's program is started, on
// every engine. It is safe for concurrent use.
type Opener struct{ o OpenerOptions }

// NewOpener returns an Opener.
func NewOpener(o OpenerOptions) *Opener { return &Opener{o} }

// OpenRequest is a slot whose program is to be started.
type OpenRequest struct {
	Cell    Cell
	Slot    int
	Agent   string // name of the agent's declaration
	BoundID string // the agent's own session ID where it differs; "" none known
	Program string // path of the agent's program; "" is the declaration's own
	Review  bool
	// Trusted says that the user trusts the project's directory for agents: what
	// they ask on a first start on the host is answered for them.
	Trusted bool
	// Headless asks for one turn without a terminal, whose prompt comes on
	// standard input; it serves Prepare alone.
	Headless bool
	Prompts  cell.ResolveOpts // the flag tier; the others are filled in here
	// Width and Height are the size that the pane starts with, in cells of the
	// terminal; 0 leaves it to the terminal server.
	Width, Height int
	Progress      func(Progress) // of long work, such as an image build; may be nil
}

// Opened is a pane that was opened.
type Opened struct {
	Pane  string // tmux's ID, such as "%3"
	Plan  AgentPlan
	Notes []string
}

// Prepared is everything about a program that is about to run in a cell.
type Prepared struct {
	Engine Engine
	Config cfg.Config
	Env    Environment
	Plan   AgentPlan
	Notes  []string
}

// Open starts a slot's program in a pane of its own: it makes the cell ready,
// asks the agent for its plan, and hands the launch over in a file, so that no
// value of it is in an argv or in the terminal server. What an earlier pane of the
// slot has left is ended first. It blocks on that, on the engine and on the
// terminal server, and obeys ctx. On failure nothing is left behind
// but the cell itself, ready.
func (o *Opener) Open(ctx context.Context, r OpenRequest) (Opened, error) {
	engine, err := o.engine(r.Cell.Kind)
	if err != nil {
		return Opened{}, err
	}
	if err := engine.Up(ctx, r.Cell, r.Progress); err != nil {
		return Opened{}, fmt.Errorf("make cell %s ready: %w", r.Cell.Name, err)
	}
	if g, ok := engine.(AgentPreparer); ok {
		if err := g.PrepareAgent(ctx, r.Cell, r.Agent); err != nil {
			return Opened{}, err
		}
	}
	// Before the agent's plan: a conversation that is still being saved would be
	// taken for one that is not there.
	left, err := o.EndLeftover(ctx, r.Cell.Name, r.Slot, r.Progress)
	if err != nil {
		return Opened{}, err
	}
	p, err := o.Prepare(ctx, r)
	if err != nil {
		return Opened{}, err
	}
	for _, l := range left {
		p.Notes = append(p.Notes, fmt.Sprintf("Process %d (%s) had outlived the pane before this one and was ended.", l.PID, l.Program))
	}
	spec := Spec{
		Cell:    r.Cell,
		Argv:    p.Plan.Argv,
		Env:     p.Env.Pairs(),
		Secrets: p.Env.Secrets(),
		TTY:     true,
	}
	if p.Config.Guest.Isolated {
		// A guest's program outlives the client that its pane runs; a name lets
		// it be ended.
		spec.Execution = PaneExecution(r.Cell.Name, r.Slot)
	}
	launch, err := engine.Launch(spec)
	if err != nil {
		return Opened{}, fmt.Errorf("start %s in cell %s: %w", r.Agent, r.Cell.Name, err)
	}
	if p.Plan.Converses && o.o.State != "" {
		launch.Env = append(launch.Env, paneMark{state: o.o.State, cell: r.Cell.Name, slot: r.Slot}.pair())
	}
	file, err := WriteHandoff(o.o.RuntimeDir, launch)
	if err != nil {
		return Opened{}, err
	}
	pane, err := o.o.Panes.Open(ctx, PaneSpec{
		Cell:  r.Cell.Name,
		Slot:  r.Slot,
		Argv:  HandoffCommand(o.o.Self, file),
		Dir:   r.Cell.ProjectDir,
		Agent: r.Agent,
		Width: r.Width, Height: r.Height,
	})
	if err != nil {
		return Opened{}, errors.Join(fmt.Errorf("open the pane of %s:%d: %w", r.Cell.Name, r.Slot, err), os.Remove(file))
	}
	return Opened{Pane: pane, Plan: p.Plan, Notes: p.Notes}, nil
}

// PaneExecution names what runs in a slot's pane, for Engine.End.
func PaneExecution(cell string, slot int) string { return "pane " + cell + ":" + strconv.Itoa(slot) }

// End ends what a slot's pane left running in its guest: closing a pane ends
// its client alone. Host cells leave nothing; the terminal server ends them.
func (o *Opener) End(ctx context.Context, c Cell, slot int) error {
	engine, err := o.engine(c.Kind)
	if err != nil {
		return err
	}
	if !engine.Guest(c).Isolated {
		return nil
	}
	if err := engine.End(ctx, c, PaneExecution(c.Name, slot)); err != nil {
		return fmt.Errorf("end what runs in %s:%d: %w", c.Name, slot, err)
	}
	return nil
}

// Prepare computes what Open would start, and does everything that belongs to
// it but the engine's part: the environment, the agent's plan, its files. It
// serves turns without a pane, too.
func (o *Opener) Prepare(ctx context.Context, r OpenRequest) (Prepared, error) {
	agent, ok := o.o.Agent(r.Agent)
	if !ok {
		return Prepared{}, fmt.Errorf("there is no agent %q; cellmux doctor lists those that were found", r.Agent)
	}
	p, values, err := o.environment(ctx, r)
	if err != nil {
		return Prepared{}, err
	}
	prompts := r.Prompts.PromptEnv(o.getenv)
	prompts.CellCfg, prompts.CfgBaseDir = values.Config, values.BaseDir
	home, program := o.o.Home, r.Program
	if p.Config.Guest.Isolated {
		// A path of the host means nothing inside.
		home, program = r.Cell.WorkspaceHome, ""
	}
	p.Plan, err = agent.Plan(ctx, AgentInput{
		Config:     p.Config,
		CellConfig: values.Config,
		Prompts:    prompts,
		SessionID:  cell.SessionID(p.Config.AppName()),
		BoundID:    r.BoundID,
		Home:       home,
		Env:        p.Env.Pairs(),
		Program:    program,
		Review:     r.Review,
		Trusted:    r.Trusted,
		Headless:   r.Headless,
	})
	if err != nil {
		return Prepared{}, fmt.Errorf("prepare %s for %s:%d: %w", r.Agent, r.Cell.Name, r.Slot, err)
	}
	if len(p.Plan.Argv) == 0 {
		return Prepared{}, fmt.Errorf("prepare %s for %s:%d: its declaration names no program", r.Agent, r.Cell.Name, r.Slot)
	}
	p.Env.drop(p.Plan.Drop, r.Agent+" must not take over another session's settings")
	p.Env.add(p.Plan.Env, "set for "+r.Agent+" by cellmux", false)
	p.Notes = append(p.Notes, p.Plan.Notes...)
	return p, nil
}

// Environment returns what a program gets in a slot, without an agent's own part
// where r.Agent is "": what a `!` line runs with, and what cellmux env shows.
// It writes nothing and starts nothing but the commands of approved secrets.
func (o *Opener) Environment(ctx context.Context, r OpenRequest) (Environment, error) {
	p, _, err := o.environment(ctx, r)
	return p.Env, err
}

func (o *Opener) environment(ctx context.Context, r OpenRequest) (Prepared, Values, error) {
	engine, err := o.engine(r.Cell.Kind)
	if err != nil {
		return Prepared{}, Values{}, err
	}
	values := Values{Config: r.Cell.Config, Env: r.Cell.Config.Env, BaseDir: r.Cell.ProjectDir}
	if o.o.Configs != nil {
		if values, err = o.o.Configs.Values(ctx, r.Cell); err != nil {
			return Prepared{}, Values{}, fmt.Errorf("configuration of cell %s: %w", r.Cell.Name, err)
		}
	}
	guest := engine.Guest(r.Cell)
	p := Prepared{
		Engine: engine,
		Config: cfg.Config{
			Workspace:     r.Cell.Workspace,
			WorkspaceHome: r.Cell.WorkspaceHome,
			Cell:          r.Cell.Name,
			Slot:          r.Slot,
			ProjectDir:    r.Cell.ProjectDir,
			Engine:        string(r.Cell.Kind),
			HostUser:      o.o.HostUser,
			Guest:         guest,
		},
		Notes: slices.Clone(values.Notes),
	}
	input := cell.EnvInput{
		WorkspaceName: r.Cell.Workspace,
		CellName:      p.Config.AppName(),
		ProjectDir:    guest.ProjectDir,
		Git:           values.Config.Git,
		Timezone:      values.Config.Cell.Timezone,
		Locale:        values.Config.Cell.Locale,
		Env:           values.Env,
		Mise:          values.Config.Mise,
		Getenv:        o.getenv,
	}
	if o.o.GitConfig != nil {
		input.GitConfig = o.o.GitConfig(ctx, r.Cell.ProjectDir)
	}
	if guest.Isolated {
		p.Env.forward(o.o.Environ, r.Agent)
		p.Env.addGuest(cell.GuestEnv(input), values)
	} else {
		p.Env.inherit(cell.NarrowInput{
			Environ: o.o.Environ,
			Command: narrowedAs(r),
			Pass:    o.o.Pass,
			Review:  r.Review,
		})
		p.Env.addGuest(cell.HostEnv(input), values)
	}
	p.Env.add(values.Secrets, "[secrets]", true)
	model := cell.ModelFor(cell.ModelInput{
		Agent:    r.Agent,
		LLM:      values.Config.LLM,
		Isolated: guest.Isolated,
		Key:      p.Env.value("OPENROUTER_API_KEY"),
	})
	p.Env.add(model.Env, "[llm]", false)
	p.Env.add(model.Secrets, "[llm]", true)
	p.Notes = append(p.Notes, model.Notes...)
	return p, values, nil
}

// addGuest adds cell's own pairs, and says which of them came from [env].
func (e *Environment) addGuest(pairs []string, values Values) {
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		v := Variable{Name: name, Value: value, Kept: true, From: "every cell gets it"}
		if set, ok := values.Env[name]; ok && set == value {
			v.From, v.Secret = "[env]", slices.Contains(values.Mask, name)
		}
		e.variables = append(e.variables, v)
	}
}

// narrowedAs is the name that decides how the host's environment is narrowed: a
// declared agent's needs are known whatever its program is called.
func narrowedAs(r OpenRequest) string {
	if _, known := cell.KnownAgent(r.Agent); known || r.Program == "" {
		return r.Agent
	}
	return path.Base(r.Program)
}

func (o *Opener) engine(kind Kind) (Engine, error) {
	for _, e := range o.o.Engines {
		if e.Kind() == kind {
			return e, nil
		}
	}
	return nil, fmt.Errorf("engine %q is not available in this cellmux", kind)
}

// getenv looks a host variable up; the last one wins.
func (o *Opener) getenv(name string) string {
	for _, pair := range slices.Backward(o.o.Environ) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}
