//go:build linux

// Command bench measures docker cells against the docker command alone, in one
// run on one daemon, and prints a table and the same as JSON. It needs the socket
// of a daemon that holds cellmux-test:debian in CELLMUX_TEST_DOCKER: run it as
//
//	.ci/dockerd run go run ./engine/docker/bench
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/docker"
)

const (
	image  = "cellmux-test:debian"
	rounds = 25
	cells  = 50
	// allowed beyond the ratio: reading the state, the hand-off file and tmux's
	// new session, which bare docker exec does not do.
	allowance = 20 * time.Millisecond
)

// line is one figure: ours, the raw one, and what was promised.
type line struct {
	Name   string  `json:"name"`
	Ours   float64 `json:"ours_ms"`
	Raw    float64 `json:"raw_ms"`
	Ratio  float64 `json:"ratio"`
	Budget string  `json:"budget"`
	Held   bool    `json:"held"`
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == engine.HandoffArgument {
		err := engine.RunHandoff(os.Args[2], os.Getenv)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(err.Code)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	socket := os.Getenv("CELLMUX_TEST_DOCKER")
	if socket == "" {
		return errors.New("no daemon: run .ci/dockerd run go run ./engine/docker/bench")
	}
	dir, err := os.MkdirTemp("", "cellmux-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{
		runner: &counter{Runner: proc.New()}, dir: dir,
		environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DOCKER_HOST=unix://" + socket},
	}
	b.engine = docker.New(docker.Options{
		Runner: b.runner, Environ: b.environ, StateDir: filepath.Join(dir, "state"), HostUser: "ada", UID: os.Getuid(), GID: os.Getgid(),
	})
	defer func() { err = errors.Join(err, b.close()) }()
	opening, err := b.opening()
	if err != nil {
		return err
	}
	listing, err := b.listing()
	if err != nil {
		return err
	}
	lines := append(opening, listing...)
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "FIGURE\tCELLMUX\tDOCKER\tRATIO\tBUDGET\tHELD")
	for _, l := range lines {
		fmt.Fprintf(table, "%s\t%.1f ms\t%.1f ms\t%.2f\t%s\t%v\n", l.Name, l.Ours, l.Raw, l.Ratio, l.Budget, l.Held)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(lines)
}

type bench struct {
	runner  *counter
	dir     string
	environ []string
	engine  *docker.Docker
	made    []engine.Cell
	extra   []string
}

type counter struct {
	proc.Runner
	n int
}

func (c *counter) Run(ctx context.Context, cmd proc.Cmd) (proc.Result, error) {
	c.n++
	return c.Runner.Run(ctx, cmd)
}

func (b *bench) docker(args ...string) (string, error) {
	result, err := proc.New().Run(context.Background(), proc.Cmd{
		Argv: append([]string{"docker"}, args...), Dir: "/", Env: b.environ, Timeout: time.Minute,
	})
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("docker %s: %s", args[0], result.Stderr)
	}
	return strings.TrimSpace(string(result.Stdout)), err
}

func (b *bench) tmux(args ...string) (string, error) {
	result, err := proc.New().Run(context.Background(), proc.Cmd{
		Argv: append([]string{"tmux", "-S", filepath.Join(b.dir, "tmux"), "-f", "/dev/null"}, args...), Dir: "/", LeavesDaemon: true,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "TERM=xterm"},
	})
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("tmux %s: %s", args[0], result.Stderr)
	}
	return strings.TrimSpace(string(result.Stdout)), err
}

func (b *bench) close() error {
	var all error
	for _, c := range b.made {
		all = errors.Join(all, b.engine.Remove(context.Background(), c))
	}
	for _, id := range b.extra {
		_, err := b.docker("rm", "--force", id)
		all = errors.Join(all, err)
	}
	return errors.Join(all, b.engine.PruneNetworks(context.Background()))
}

// Open implements engine.Panes on a tmux server of the bench's own.
func (b *bench) Open(_ context.Context, s engine.PaneSpec) (string, error) {
	return b.tmux(append([]string{"new-session", "-d", "-P", "-F", "#{pane_id}", "-c", s.Dir, "--"}, s.Argv...)...)
}

// speaker is the agent whose program says through a pipe that it runs.
type speaker struct{}

func (speaker) Name() string { return "speaker" }
func (speaker) Plan(context.Context, engine.AgentInput) (engine.AgentPlan, error) {
	return engine.AgentPlan{Argv: []string{"sh", "-c", "echo up >fifo"}}, nil
}

// opening measures, in turns, a bare docker exec and a pane from the request to
// the first word of its program.
func (b *bench) opening() ([]line, error) {
	ctx := context.Background()
	c := engine.Cell{
		Name: "bench", Workspace: "main", Kind: engine.Docker,
		ProjectDir: filepath.Join(b.dir, "project"), WorkspaceHome: filepath.Join(b.dir, "home"),
		Config: cfg.CellConfig{Cell: cfg.CellSection{Image: image}},
	}
	if err := os.Mkdir(c.ProjectDir, 0o755); err != nil {
		return nil, err
	}
	b.made = append(b.made, c)
	if err := b.engine.Up(ctx, c, nil); err != nil {
		return nil, err
	}
	id, err := b.docker("ps", "--quiet", "--filter", "label=dev.cellmux.cell=bench", "--filter", "volume="+c.ProjectDir)
	if err != nil {
		return nil, err
	}
	fifo := filepath.Join(c.ProjectDir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	runtime := filepath.Join(b.dir, "run")
	if err := os.Mkdir(runtime, 0o700); err != nil {
		return nil, err
	}
	opener := engine.NewOpener(engine.OpenerOptions{
		Engines: []engine.Engine{b.engine}, Panes: b, Self: self, RuntimeDir: runtime, Environ: b.environ,
		Agent: func(string) (engine.Agent, bool) { return speaker{}, true },
	})
	// A server that is there already is the common case.
	if _, err := b.tmux("new-session", "-d", "sleep", "1000"); err != nil {
		return nil, err
	}
	defer func() { _, _ = b.tmux("kill-server") }()

	var ours, raw []time.Duration
	for i := range rounds + 2 {
		begin := time.Now()
		if _, err := b.docker("exec", id, "true"); err != nil {
			return nil, err
		}
		bare := time.Since(begin)

		begin = time.Now()
		if _, err := opener.Open(ctx, engine.OpenRequest{Cell: c, Slot: i, Agent: "speaker"}); err != nil {
			return nil, err
		}
		word, err := os.Open(fifo) // blocks until the program opens it
		if err != nil {
			return nil, err
		}
		opened := time.Since(begin)
		_, err = io.Copy(io.Discard, word)
		if err := errors.Join(err, word.Close()); err != nil {
			return nil, err
		}
		if i >= 2 { // the first ones warm caches
			ours, raw = append(ours, opened), append(raw, bare)
		}
	}
	l := compare("open a pane in a running cell, p50", ours, raw)
	l.Budget = "1.15x + 20 ms"
	l.Held = l.Ours <= 1.15*l.Raw+float64(allowance.Milliseconds())
	return []line{l}, nil
}

// listing measures the list of many containers against one docker ps.
func (b *bench) listing() ([]line, error) {
	owner, err := b.docker("ps", "--filter", "label=dev.cellmux.cell=bench", "--format", `{{.Label "dev.cellmux.owner"}}`)
	if err != nil {
		return nil, err
	}
	for i := range cells - 1 {
		name := "many-" + strconv.Itoa(i)
		id, err := b.docker("create", "--name", "cellmux-"+name+"-"+owner[:6], "--network", "none", "--label", "dev.cellmux.owner="+owner,
			"--label", "dev.cellmux.cell="+name, image, "true")
		if err != nil {
			return nil, err
		}
		b.extra = append(b.extra, id)
	}
	var ours, raw []time.Duration
	calls := 0
	for range rounds {
		begin := time.Now()
		if _, err := b.docker("ps", "--all", "--no-trunc"); err != nil {
			return nil, err
		}
		raw = append(raw, time.Since(begin))
		b.runner.n = 0
		begin = time.Now()
		all, err := b.engine.Instances(context.Background())
		if err != nil {
			return nil, err
		}
		ours = append(ours, time.Since(begin))
		if len(all) != cells {
			return nil, fmt.Errorf("%d containers are listed of %d", len(all), cells)
		}
		calls = max(calls, b.runner.n)
	}
	l := compare(fmt.Sprintf("list %d containers, p50 (calls: %d)", cells, calls), ours, raw)
	l.Budget, l.Held = "1 call", calls == 1
	return []line{l}, nil
}

func compare(name string, ours, raw []time.Duration) line {
	a, b := median(ours), median(raw)
	return line{Name: name, Ours: a, Raw: b, Ratio: a / b}
}

// median is in milliseconds.
func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}
