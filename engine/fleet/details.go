package fleet

import (
	"context"
	"fmt"
	"strings"

	"cellmux/cell"
	"cellmux/cell/cfg"
	"cellmux/engine"
)

// Probe asks every engine whether it can carry a cell here.
func (f *Fleet) Probe(ctx context.Context) []Engine {
	var out []Engine
	for _, e := range f.o.Engines {
		a := e.Probe(ctx)
		detail := a.Reason
		if a.Usable {
			detail = a.Version
		}
		out = append(out, Engine{Kind: string(e.Kind()), Usable: a.Usable, Probed: true, Detail: detail})
	}
	f.mu.Lock()
	f.engines = out
	f.mu.Unlock()
	f.poke()
	return append([]Engine(nil), out...)
}

// Environment is what a program in the slot would get, KEY=VALUE in its order,
// with the values of secrets masked. It executes nothing.
func (f *Fleet) Environment(ctx context.Context, r Ref) ([]string, error) {
	env, err := f.shownEnvironment(ctx, r)
	if err != nil {
		return nil, err
	}
	hidden := map[string]bool{}
	for _, name := range env.Secrets() {
		hidden[name] = true
	}
	pairs := engine.LastWins(env.Pairs())
	for i, pair := range pairs {
		if name, _, _ := strings.Cut(pair, "="); hidden[name] {
			pairs[i] = name + "=" + cell.SecretMask
		}
	}
	return pairs, nil
}

// Variables says of each variable who let it in, and of each one of the host's
// that stays out why; sorted by name, the values of secrets masked. It executes
// nothing.
func (f *Fleet) Variables(ctx context.Context, r Ref) ([]Variable, error) {
	env, err := f.shownEnvironment(ctx, r)
	if err != nil {
		return nil, err
	}
	var variables []Variable
	for _, v := range env.Why() {
		shown := Variable{Name: v.Name, Value: v.Value, Kept: v.Kept, Why: v.From}
		if v.Kept && v.Secret {
			shown.Value = cell.SecretMask
		}
		variables = append(variables, shown)
	}
	return variables, nil
}

func (f *Fleet) shownEnvironment(ctx context.Context, r Ref) (engine.Environment, error) {
	request, err := f.openRequest(ctx, r)
	if err != nil {
		return engine.Environment{}, err
	}
	return f.o.Shown.Environment(ctx, request)
}

// openRequest is a slot as the opener wants it, for looking only.
func (f *Fleet) openRequest(ctx context.Context, r Ref) (engine.OpenRequest, error) {
	c, err := f.cell(ctx, r.Cell)
	if err != nil {
		return engine.OpenRequest{}, err
	}
	request := engine.OpenRequest{Cell: f.engineCell(ctx, c), Slot: max(r.Slot, 0)}
	if r.Slot != WholeCell {
		_, s, err := f.cellAndSlot(ctx, r)
		if err != nil {
			return engine.OpenRequest{}, err
		}
		request.Agent, request.Review = s.Agent, s.Review
	}
	return request, nil
}

// Prompts are the two prompt layers of a slot, as its next launch would have
// them.
func (f *Fleet) Prompts(ctx context.Context, r Ref) (Prompts, error) {
	c, err := f.cell(ctx, r.Cell)
	if err != nil {
		return Prompts{}, err
	}
	config, _, _ := f.o.Projects.Load(ctx, c.ProjectDir)
	opts := cell.ResolveOpts{CellCfg: config, CfgBaseDir: c.ProjectDir}.PromptEnv(f.o.Getenv)
	base, err := cell.ResolveSystemPrompt(opts)
	if err != nil {
		return Prompts{}, fmt.Errorf("the base prompt of %s: %w", r, err)
	}
	about := f.configOf(ctx, c)
	about.Slot = max(r.Slot, 0)
	overlay, err := cell.AssembleOverlayPrompt(about, config, opts)
	if err != nil {
		return Prompts{}, fmt.Errorf("the overlay prompt of %s: %w", r, err)
	}
	return Prompts{Base: base, Overlay: overlay}, nil
}

// Info are the lines of the Info tab: what is known of a row, without secrets.
func (f *Fleet) Info(ctx context.Context, r Ref) ([]Fact, error) {
	c, err := f.cell(ctx, r.Cell)
	if err != nil {
		return nil, err
	}
	found := f.lookAt(ctx, c)
	facts := []Fact{
		{"Cell", c.Name}, {"Title", c.Title}, {"Project", f.tilde(c.ProjectDir)},
		{"Engine", join2(c.Engine, c.EngineReason)}, {"Workspace", c.Workspace},
		{"Created", c.Created.Local().Format("2006-01-02 15:04")},
	}
	if found.problem != "" {
		facts = append(facts, Fact{"Problem", found.problem})
	}
	if found.approval != "" {
		facts = append(facts, Fact{"Approval", found.approval + " (:trust)"})
	}
	facts = append(facts, f.guestFacts(ctx, c)...)
	if r.Slot == WholeCell {
		return facts, nil
	}
	_, s, err := f.cellAndSlot(ctx, r)
	if err != nil {
		return nil, err
	}
	app := cfg.Config{Cell: s.Cell, Slot: s.Number}.AppName()
	facts = append(facts, Fact{"Slot", r.String()}, Fact{"Agent", s.Agent}, Fact{"App name", app}, Fact{"Session", s.SessionID})
	if s.Review {
		facts = append(facts, Fact{"Review", "read-only: its agent may change nothing"})
	}
	if s.AgentSession != "" {
		facts = append(facts, Fact{"Agent's session", s.AgentSession})
	}
	left, err := f.o.Store.LeftSessions(ctx, s.Cell, s.Number)
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		facts = append(facts, Fact{"Earlier session", fmt.Sprintf("%s (until %s)", l.ID, l.Left.Local().Format("2006-01-02 15:04"))})
	}
	if pane, live, err := f.live(ctx, r); err == nil && live {
		if pid, open := f.o.Agents.Elsewhere(f.watched(f.configOf(ctx, c), s, pane)); open {
			facts = append(facts, Fact{"Also open", fmt.Sprintf("process %d has this conversation open in another terminal; neither sees what the other does", pid)})
		}
	}
	if last, has := f.snapshots.newest(); has {
		for _, row := range last.slots() {
			if row.Ref != r {
				continue
			}
			facts = append(facts, Fact{"Status", join2(row.Status.String(), row.Detail)})
			if row.Pane != "" {
				facts = append(facts, Fact{"Pane", row.Pane})
			}
			for _, note := range row.Notes {
				facts = append(facts, Fact{"Note", note})
			}
		}
	}
	return facts, nil
}

func join2(word, detail string) string {
	if detail == "" {
		return word
	}
	return word + " (" + detail + ")"
}

func (s Snapshot) slots() []Slot {
	var out []Slot
	for _, c := range s.Cells {
		out = append(out, c.Slots...)
	}
	return out
}
