package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cellmux/cell"
	"cellmux/cell/git"
	"cellmux/cell/proc"
	"cellmux/cell/state"
	"cellmux/engine"
	"cellmux/engine/agent"
	"cellmux/engine/fleet"
	"cellmux/engine/host"
	"cellmux/engine/tmux"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/run"
	"cellmux/tui"
	"cellmux/tui/cli"
	"cellmux/tui/settings"
)

// wiring is what this process was given.
type wiring struct {
	environ []string
	home    string
	user    string
	dir     string
	paths   cli.Paths
}

// application is every part, joined.
type application struct {
	settings      settings.Settings
	server        *tmux.Server
	watcher       *agent.Watcher
	conversations *convo.Service
	fleet         *fleet.Fleet
	panes         *fleet.Panes
	shell         *fleet.Shell
	conversation  *fleet.Conversation
	log           *slog.Logger
	runtime       string   // directory of sockets and launch files
	notices       []string // what happened to the last run, for the user
	serverRuns    bool     // since before open returned
	close         func() error
}

// closePatience bounds how long commands that still run may take to end.
const closePatience = 10 * time.Second

// open opens the database and joins the packages. Nothing runs yet, but what
// early does with the tmux server: it gets it before the database is opened, so
// that tmux can be asked meanwhile. early may be nil.
func (w wiring) open(ctx context.Context, prompts cell.ResolveOpts, early func(*tmux.Server)) (*application, error) {
	if w.home == "" {
		return nil, errors.New("HOME is not set: there is nowhere to keep anything")
	}
	chosen, err := w.settings()
	if err != nil {
		return nil, err
	}
	log, logFile, err := cli.OpenLog(w.paths.Log)
	if err != nil {
		return nil, err
	}
	runtime, err := engine.RuntimeDir(w.getenv)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the cellmux program: %w", err)
	}
	runner := proc.New()
	server := w.server(runner, chosen, runtime, log)
	if early != nil {
		early(server)
	}
	db, report, err := w.database(ctx)
	if err != nil {
		return nil, err
	}

	agents := w.agents(runner, chosen)
	watcher := agents.Watch(agent.WatchOptions{Capture: func(ctx context.Context, pane string) ([]string, error) {
		screen, err := server.Capture(ctx, pane, 0)
		return screen.Rows, err
	}})
	engines := w.engines(log)
	files := &fleet.ProjectFiles{
		Global: w.paths.GlobalCell, Home: w.home, Getenv: w.getenv,
		Approvals: w.approvals(), Environ: w.environ,
	}
	opener := engine.OpenerOptions{
		Engines: engines, Panes: server, Self: self, RuntimeDir: runtime, Environ: w.environ,
		Agent: func(name string) (engine.Agent, bool) { return agents.Lookup(name) },
		Pass:  chosen.Agents.Pass, Home: w.home, HostUser: w.user,
		GitConfig: func(ctx context.Context, dir string) func(string) string {
			return cell.GitConfigIn(ctx, runner, dir, w.environ)
		},
		Configs: files.Configs(runner, w.environ),
		State:   engine.StateName(w.paths.State), PanesGone: server.Gone,
	}
	shown := opener
	shown.Configs = files.Shown(w.environ)
	panes := fleet.NewPanes(server)
	turns := fleet.NewTurns(runner, engine.NewOpener(opener), agents)
	transport := fleet.NewTransport(server, agents, watcher)
	conversations := convo.New(convo.Options{
		DB: db.SQL(), Path: db.Path(), LockDir: filepath.Join(w.paths.State, "locks"),
		Pane: transport, Headless: turns, Log: log,
	})
	reader := &git.Reader{Runner: runner, Environ: w.environ, TempDir: w.getenv("TMPDIR")}
	var executions *run.Service // it hands its records to the fleet
	f := fleet.New(fleet.Options{
		Store: db, Server: server, Opener: engine.NewOpener(opener), Shown: engine.NewOpener(shown),
		Agents: agents, Watcher: watcher, Projects: files, Engines: engines,
		Workspaces: w.paths.Workspaces, Home: w.home, HostUser: w.user, Offer: w.dir,
		LookPath:      w.lookPath,
		Order:         chosen.Agents.Order,
		Path:          w.getenv("PATH"),
		Getenv:        w.getenv,
		Prompts:       prompts,
		Conversations: conversations,
		ForgetShell:   func(ctx context.Context, cell string, slot int) error { return executions.Forget(ctx, cell, slot) },
		Git:           reader,
		Commits:       git.Committer{Reader: reader},
		Outside:       panes.Outside,
		Log:           log,
	})
	turns.Of(f)
	transport.Of(f)
	conversation := fleet.NewConversation(f, conversations)
	shellEnv := &fleet.ShellEnv{Opener: engine.NewOpener(opener)}
	blocks, blockNames := fleet.Blocks(chosen.Shell.Block)
	executions = run.New(run.Options{
		DB: db.SQL(), Runner: runner, SpillDir: filepath.Join(w.paths.State, "output"),
		Engines: func(kind engine.Kind) (engine.Engine, error) {
			for _, e := range engines {
				if e.Kind() == kind {
					return e, nil
				}
			}
			return nil, fmt.Errorf("engine %q is not available in this cellmux", kind)
		},
		Env: shellEnv.Env, Secrets: shellEnv.Secrets, OnRecord: conversation.Record,
		Blocks: blocks, BlockNames: blockNames, Program: chosen.Shell.Program, Log: log,
		Limits: run.Limits{Produced: chosen.Shell.MaxOutput << 20},
	})
	a := &application{
		settings: chosen, server: server, watcher: watcher, conversations: conversations, fleet: f, panes: panes,
		shell: fleet.NewShell(f, executions), conversation: conversation, log: log, runtime: runtime,
		serverRuns: early != nil,
	}
	if report.SetAside != "" {
		a.notices = append(a.notices, fmt.Sprintf("The database was damaged (%s); it lies in %s and a new one was begun.", report.Reason, report.SetAside))
	}
	a.close = join(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		return executions.Close(ctx)
	}, db.Close, logFile.Close)
	return a, nil
}

// server is our tmux server; nothing is started.
func (w wiring) server(runner proc.Runner, chosen settings.Settings, runtime string, log *slog.Logger) *tmux.Server {
	return tmux.New(tmux.Options{
		Runner: runner, Program: chosen.Tmux.Program, Socket: w.socket(chosen), RuntimeDir: runtime, Env: w.environ,
		Prefs: tmux.Prefs{DetachKeys: chosen.Tmux.Detach, HistoryLimit: chosen.Tmux.History, Mouse: chosen.Tmux.Mouse},
		Log:   log,
	})
}

func (w wiring) agents(runner proc.Runner, chosen settings.Settings) *agent.Set {
	return agent.New(agent.Options{Custom: customAgents(chosen.Agents), Runner: runner, Environ: w.environ})
}

// engines are those that this cellmux has; nothing is started. log may be nil.
func (w wiring) engines(log *slog.Logger) []engine.Engine {
	hostname, _ := os.Hostname() // "" is said as such
	return []engine.Engine{host.New(host.Options{Home: w.home, Hostname: hostname}), w.docker(log)}
}

func (w wiring) lookPath(program string) (string, error) { return proc.LookPath(program, w.environ) }

// checks are doctor's. They open what they look at themselves: doctor must work
// where nothing else does.
func (w wiring) checks() []cli.Check {
	chosen, err := w.settings()
	if err != nil {
		chosen = settings.Settings{} // a check of its own tells
	}
	runner := proc.New()
	return []cli.Check{
		cli.CheckTmux(w.server(runner, chosen, w.paths.Runtime, nil)),
		cli.CheckTerminal(w.getenv, w.home),
		cli.CheckEngines(w.engines(nil)),
		cli.CheckAgents(w.agents(runner, chosen), w.lookPath),
		cli.CheckDatabase(w.paths.Database),
		cli.CheckDisk(w.paths.State),
		cli.CheckFiles("config.toml", func() error { return err }),
		cli.CheckFiles("devcell.toml", func() error { _, err := w.loadCell(w.dir); return err }),
		cli.CheckClock(time.Now),
	}
}

// settings loads config.toml and checks its keys against the bindings.
func (w wiring) settings() (settings.Settings, error) {
	chosen, err := settings.Load(w.paths.Settings)
	if err != nil {
		return chosen, err
	}
	if err := tui.CheckKeys(chosen.Keys); err != nil {
		return chosen, fmt.Errorf("%s: %w", w.paths.Settings, err)
	}
	if err := tui.CheckTheme(chosen.Screen.Theme, chosen.Themes); err != nil {
		return chosen, fmt.Errorf("%s: [screen] theme: %w", w.paths.Settings, err)
	}
	return chosen, nil
}

// database opens the one database, with the tables of every part.
func (w wiring) database(ctx context.Context) (*state.DB, state.Report, error) {
	db, report, err := state.Open(ctx, w.paths.Database)
	if err != nil {
		return nil, report, err
	}
	for component, steps := range map[string][]string{"run": run.Migrations(), "convo": convo.Migrations()} {
		if err := db.Migrate(ctx, component, steps); err != nil {
			_ = db.Close()
			return nil, report, err
		}
	}
	return db, report, nil
}

// socket is the tmux server's: the environment stands over the settings.
func (w wiring) socket(chosen settings.Settings) string {
	if w.getenv(cli.SocketVariable) == "" && chosen.Tmux.Socket != "" {
		return chosen.Tmux.Socket
	}
	return w.paths.TmuxSocket
}

func customAgents(chosen settings.Agents) []agent.Custom {
	var out []agent.Custom
	for name, c := range chosen.Custom {
		settle, _ := time.ParseDuration(c.Settle) // checked when it was loaded
		out = append(out, agent.Custom{
			Name: name, Command: c.Command, Headless: c.Headless, Interrupt: c.Interrupt, Settle: settle,
			Screen: agent.ScreenRule{Ready: c.Ready, Busy: c.Busy, Asking: c.Asking},
		})
	}
	return out
}

// run keeps everything current until ctx ends.
func (a *application) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	if !a.serverRuns {
		all.Go(func() { _ = a.server.Run(ctx) }) // what goes wrong is in its list
	}
	afterList := func(do func()) {
		all.Go(func() {
			select {
			case <-a.fleet.Listed():
				do()
			case <-ctx.Done():
			}
		})
	}
	afterList(func() { a.watcher.Run(ctx) })
	afterList(func() {
		if err := a.conversations.Run(ctx); err != nil && ctx.Err() == nil {
			a.log.Error("deliveries ended", "error", err.Error())
		}
	})
	a.fleet.Run(ctx)
}

// openForCommands is open for the command line.
func (w wiring) openForCommands(ctx context.Context, prompts cell.ResolveOpts) (*cli.App, error) {
	a, err := w.open(ctx, prompts, nil)
	if err != nil {
		return nil, err
	}
	return &cli.App{
		Fleet: a.fleet, Panes: a.panes, Shell: a.shell, Conversation: a.conversation, Jobs: a.shell, Images: a.fleet,
		Notices: a.notices, Run: a.run, Close: a.close,
	}, nil
}
