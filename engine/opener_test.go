package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/cell"
	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/enginetest"
)

// panes stands in for the terminal server.
type panes struct {
	opened []engine.PaneSpec
	err    error
}

func (p *panes) Open(_ context.Context, s engine.PaneSpec) (string, error) {
	p.opened = append(p.opened, s)
	return "%3", p.err
}

// agent is a declaration that returns its plan and remembers what it was asked.
type agent struct {
	name  string
	plan  engine.AgentPlan
	err   error
	asked []engine.AgentInput

	planning func() // is called by Plan; may be nil
}

func (a *agent) Name() string { return a.name }
func (a *agent) Plan(_ context.Context, in engine.AgentInput) (engine.AgentPlan, error) {
	a.asked = append(a.asked, in)
	if a.planning != nil {
		a.planning()
	}
	return a.plan, a.err
}

type configs struct {
	values engine.Values
	err    error
}

func (c configs) Values(context.Context, engine.Cell) (engine.Values, error) { return c.values, c.err }

type house struct {
	opener  *engine.Opener
	options engine.OpenerOptions
	fake    *enginetest.Fake
	panes   *panes
	agent   *agent
	cell    engine.Cell
	run     string
}

func newHouse(t *testing.T, name string, change func(*engine.OpenerOptions)) *house {
	t.Helper()
	h := &house{
		fake:  enginetest.NewFake(),
		panes: &panes{},
		agent: &agent{name: name, plan: engine.AgentPlan{Argv: []string{"/usr/bin/env", "-0"}}},
		run:   privateDir(t),
		cell: engine.Cell{
			Name: "proj", Workspace: "main", Kind: engine.Docker,
			WorkspaceHome: t.TempDir(), ProjectDir: t.TempDir(),
		},
	}
	o := engine.OpenerOptions{
		Engines:    []engine.Engine{h.fake},
		Panes:      h.panes,
		Agent:      func(n string) (engine.Agent, bool) { return h.agent, n == name },
		Self:       testBinary(t),
		RuntimeDir: h.run,
		Home:       t.TempDir(),
		Environ: []string{
			pathEnv(), "HOME=/home/ada", "LANG=C", "ANTHROPIC_API_KEY=sk-ant-canary", "OPENAI_API_KEY=sk-openai-canary",
			"AWS_SECRET_ACCESS_KEY=aws-canary", "SSH_AUTH_SOCK=/tmp/agent", "GIT_DIR=/elsewhere/.git", "TMUX=/tmp/outer,1,0", "ANTHROPIC_MODEL=",
		},
	}
	if change != nil {
		change(&o)
	}
	h.options, h.opener = o, engine.NewOpener(o)
	return h
}

func (h *house) open(t *testing.T) engine.Opened {
	t.Helper()
	opened, err := h.opener.Open(context.Background(), engine.OpenRequest{Cell: h.cell, Slot: 2, Agent: h.agent.name, Width: 80, Height: 24})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// inside opens the slot, runs its pane's command as tmux would, and returns the
// environment that the program found.
func (h *house) inside(t *testing.T) []string {
	t.Helper()
	h.open(t)
	spec := h.panes.opened[len(h.panes.opened)-1]
	result, err := proc.New().Run(context.Background(), proc.Cmd{Argv: spec.Argv, Dir: spec.Dir, Env: []string{"TERM=tmux-256color", "FROM_THE_SERVER=1"}})
	if err != nil || result.ExitCode != 0 {
		t.Fatalf("the pane's command: %v, exit %d: %s", err, result.ExitCode, result.Stderr)
	}
	return strings.Split(strings.TrimSuffix(string(result.Stdout), "\x00"), "\x00")
}

func names(pairs []string) []string {
	var all []string
	for _, p := range pairs {
		name, _, _ := strings.Cut(p, "=")
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestOpenTagsThePaneAndTellsTheAgentWhoItIs(t *testing.T) {
	h := newHouse(t, "claude", nil)
	h.agent.plan.Notes = []string{"a note"}
	opened := h.open(t)
	if opened.Pane != "%3" || !slices.Equal(opened.Notes, []string{"a note"}) {
		t.Errorf("opened %+v", opened)
	}
	spec := h.panes.opened[0]
	if spec.Cell != "proj" || spec.Slot != 2 || spec.Agent != "claude" || spec.Dir != h.cell.ProjectDir || spec.Width != 80 || spec.Height != 24 {
		t.Errorf("pane %+v", spec)
	}
	in := h.agent.asked[0]
	if in.SessionID != cell.SessionID("proj-2") || in.Config.AppName() != "proj-2" || in.Home != h.cell.WorkspaceHome {
		t.Errorf("the agent was asked %+v", in)
	}
	if h.fake.Ups("proj") != 1 {
		t.Errorf("Up was called %d times", h.fake.Ups("proj"))
	}
}

// What ps and tmux's environment can see is the pane's command: the program,
// the word and a path.
func TestOpenPutsNoValueIntoThePanesCommand(t *testing.T) {
	h := newHouse(t, "claude", func(o *engine.OpenerOptions) {
		o.Configs = configs{values: engine.Values{Secrets: []string{"DB_PASSWORD=db-canary"}}}
	})
	h.open(t)
	argv := h.panes.opened[0].Argv
	if len(argv) != 3 || argv[1] != engine.HandoffArgument || filepath.Dir(argv[2]) != h.run {
		t.Errorf("the pane's command is %q", argv)
	}
	for _, word := range argv {
		if strings.Contains(word, "canary") {
			t.Errorf("%q holds a secret", word)
		}
	}
}

func TestGuestGetsCellsValuesAndItsProvidersAlone(t *testing.T) {
	h := newHouse(t, "claude", func(o *engine.OpenerOptions) {
		o.Configs = configs{values: engine.Values{
			Config:  cfg.CellConfig{Cell: cfg.CellSection{Timezone: "UTC"}},
			Env:     map[string]string{"GREETING": "hello"},
			Secrets: []string{"DB_PASSWORD=db-canary"},
		}}
	})
	got := h.inside(t)
	want := append(cell.GuestEnv(cell.EnvInput{
		WorkspaceName: "main", CellName: "proj-2", ProjectDir: h.cell.ProjectDir, Timezone: "UTC",
		Env: map[string]string{"GREETING": "hello"},
	}), "ANTHROPIC_API_KEY=sk-ant-canary", "DB_PASSWORD=db-canary", "TERM=tmux-256color",
		proc.MarkerVariable+"="+engine.PaneExecution("proj", 2))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the guest has\n%q, want\n%q", got, want)
	}
}

func TestOpenCodeGetsEveryProviderItCanUse(t *testing.T) {
	for agent, want := range map[string]bool{"opencode": true, "claude": false, "opencode-next": false} {
		h := newHouse(t, agent, nil)
		if got := slices.Contains(h.inside(t), "OPENAI_API_KEY=sk-openai-canary"); got != want {
			t.Errorf("%s: OPENAI_API_KEY arrived: %v, want %v", agent, got, want)
		}
	}
}

func TestHostCellIsNarrowedAndClaimsNoSandbox(t *testing.T) {
	h := newHouse(t, "claude", func(o *engine.OpenerOptions) { o.Pass = []string{"SSH_AUTH_SOCK"} })
	h.fake.Isolated = false
	got := h.inside(t)
	for _, pair := range []string{"HOME=/home/ada", "ANTHROPIC_API_KEY=sk-ant-canary", "SSH_AUTH_SOCK=/tmp/agent", "LANG=en_US.UTF-8", "CELL_NAME=proj-2", "TERM=tmux-256color"} {
		if !slices.Contains(got, pair) {
			t.Errorf("%s is missing in %q", pair, got)
		}
	}
	for _, name := range []string{"DEVCELL_CONTAINER", "IS_SANDBOX", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "GIT_DIR", "TMUX", "FROM_THE_SERVER"} {
		if slices.Contains(names(got), name) {
			t.Errorf("%s arrived", name)
		}
	}
}

// A command of the user's own inherits everything; but a terminal and a git
// repository that belong to cellmux's own surroundings would mislead it.
func TestHostShellInheritsEverythingButItsSurroundings(t *testing.T) {
	h := newHouse(t, "shell", nil)
	h.fake.Isolated = false
	got := names(h.inside(t))
	for name, want := range map[string]bool{"AWS_SECRET_ACCESS_KEY": true, "OPENAI_API_KEY": true, "SSH_AUTH_SOCK": true, "GIT_DIR": false, "TMUX": false} {
		if slices.Contains(got, name) != want {
			t.Errorf("%s arrived: %v, want %v", name, !want, want)
		}
	}
}

func TestPlanTakesOutAndAdds(t *testing.T) {
	h := newHouse(t, "claude", nil)
	h.agent.plan.Drop = []string{"ANTHROPIC_API_KEY"}
	h.agent.plan.Env = []string{"CLAUDE_CONFIG_DIR=/x", "LANG=C.UTF-8"}
	got := h.inside(t)
	if slices.Contains(names(got), "ANTHROPIC_API_KEY") {
		t.Error("what the plan drops arrived")
	}
	if !slices.Contains(got, "CLAUDE_CONFIG_DIR=/x") || !slices.Contains(got, "LANG=C.UTF-8") {
		t.Errorf("what the plan adds did not win: %q", got)
	}
}

// Closing a pane ends its client alone; what ran in the guest is ended by name.
func TestEndReachesIntoGuestsAlone(t *testing.T) {
	h := newHouse(t, "claude", nil)
	must(t, h.opener.End(context.Background(), h.cell, 2))
	if got, want := h.fake.Ended(), []string{engine.PaneExecution("proj", 2)}; !slices.Equal(got, want) {
		t.Errorf("ended %q, want %q", got, want)
	}
	h.fake.Isolated = false
	must(t, h.opener.End(context.Background(), h.cell, 2))
	if got := h.fake.Ended(); len(got) != 1 {
		t.Errorf("ended %q on the host, too", got)
	}
}

func TestAGuestGetsItsAgentsLoginBeforeItsPlan(t *testing.T) {
	h := newHouse(t, "claude", nil)
	h.fake.PrepareError = errors.New("no login")
	_, err := h.opener.Open(context.Background(), engine.OpenRequest{Cell: h.cell, Agent: "claude", Program: "/host/claude"})
	if !errors.Is(err, h.fake.PrepareError) || len(h.agent.asked) != 0 {
		t.Errorf("Open = %v, and the agent was asked %d times", err, len(h.agent.asked))
	}
	h.fake.PrepareError = nil
	h.open(t)
	if got := h.fake.Prepared(); !slices.Equal(got, []string{"claude", "claude"}) {
		t.Errorf("prepared for %q", got)
	}
}

// The path of the host's program means nothing in a guest.
func TestAGuestFindsItsOwnProgram(t *testing.T) {
	h := newHouse(t, "claude", nil)
	_, err := h.opener.Open(context.Background(), engine.OpenRequest{Cell: h.cell, Agent: "claude", Program: "/host/claude"})
	must(t, err)
	if got := h.agent.asked[0].Program; got != "" {
		t.Errorf("the agent in the guest was asked for %q", got)
	}
}

func TestOpenLeavesNothingBehindWhenItFails(t *testing.T) {
	broken := errors.New("it is broken")
	cases := map[string]struct {
		spoil func(*house)
		panes int // asked for
	}{
		"the engine":          {func(h *house) { h.fake.UpError = broken }, 0},
		"the plan":            {func(h *house) { h.agent.err = broken }, 0},
		"the launch":          {func(h *house) { h.fake.LaunchErr = broken }, 0},
		"the terminal server": {func(h *house) { h.panes.err = broken }, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, "claude", nil)
			c.spoil(h)
			_, err := h.opener.Open(context.Background(), engine.OpenRequest{Cell: h.cell, Agent: "claude"})
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), "proj") {
				t.Errorf("Open = %v, want the cause and the cell", err)
			}
			if len(h.panes.opened) != c.panes {
				t.Errorf("%d panes were asked for", len(h.panes.opened))
			}
			if left, _ := os.ReadDir(h.run); len(left) != 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	h := newHouse(t, "claude", nil)
	if _, err := h.opener.Open(context.Background(), engine.OpenRequest{Cell: h.cell, Agent: "copilot"}); err == nil || !strings.Contains(err.Error(), `"copilot"`) {
		t.Errorf("an unknown agent: %v", err)
	}
	h.cell.Kind = engine.Tart
	if _, err := h.opener.Open(context.Background(), engine.OpenRequest{Cell: h.cell, Agent: "claude"}); err == nil || !strings.Contains(err.Error(), `"tart"`) {
		t.Errorf("an engine that is not built in: %v", err)
	}
}

func TestEnvironmentSaysWhy(t *testing.T) {
	h := newHouse(t, "claude", func(o *engine.OpenerOptions) {
		o.Configs = configs{values: engine.Values{Env: map[string]string{"LANG": "de_DE.UTF-8"}, Secrets: []string{"DB_PASSWORD=db-canary"}}}
	})
	h.fake.Isolated = false
	env, err := h.opener.Environment(context.Background(), engine.OpenRequest{Cell: h.cell, Slot: 2, Agent: "claude"})
	must(t, err)
	rows := make(map[string]engine.Variable)
	var order []string
	for _, v := range env.Why() {
		rows[v.Name] = v
		order = append(order, v.Name)
	}
	if !slices.IsSorted(order) || len(order) != len(rows) {
		t.Errorf("rows are not one for each name, sorted: %q", order)
	}
	for _, want := range []engine.Variable{
		{Name: "HOME", Value: "/home/ada", Kept: true, From: "base"},
		{Name: "ANTHROPIC_API_KEY", Value: "sk-ant-canary", Kept: true, Secret: true, From: "claude"},
		{Name: "LANG", Value: "de_DE.UTF-8", Kept: true, From: "[env]"},
		{Name: "DB_PASSWORD", Value: "db-canary", Kept: true, Secret: true, From: "[secrets]"},
		{Name: "CELL_NAME", Value: "proj-2", Kept: true, From: "every cell"},
		{Name: "AWS_SECRET_ACCESS_KEY", From: "claude does not need it"},
		{Name: "SSH_AUTH_SOCK", From: "claude does not need it"},
	} {
		got := rows[want.Name]
		reason := got.From
		got.From = want.From
		if got != want || !strings.Contains(reason, want.From) {
			t.Errorf("%s: got %+v because %q, want %+v", want.Name, got, reason, want)
		}
	}
	if want := []string{"ANTHROPIC_API_KEY", "DB_PASSWORD"}; !slices.Equal(env.Secrets(), want) {
		t.Errorf("secrets %q, want %q", env.Secrets(), want)
	}
}

func TestLastWins(t *testing.T) {
	got := engine.LastWins([]string{"A=1", "B=1", "A=2=3", "C=", "B=", "broken", "=x", "A=4"})
	if want := []string{"C=", "B=", "A=4"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A launch that names its execution can be ended by that name, whoever starts it.
func TestLaunchCommandCarriesTheExecution(t *testing.T) {
	c := engine.Launch{Argv: []string{"true"}, Dir: "/", Env: []string{"A=1", proc.MarkerVariable + "=run-7"}}.Cmd()
	if c.Marker != "run-7" || c.Dir != "/" || !slices.Equal(c.Argv, []string{"true"}) {
		t.Errorf("got %+v", c)
	}
}
