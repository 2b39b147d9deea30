// Package docker carries cells in containers, through the docker or podman
// command.
//
// The rule it keeps: a container gets the project, the workspace home and what
// the user listed, and nothing else of the host: no socket of the daemon, no
// privilege, no port beyond the loopback, no value in an argument. A daemon that
// gives no answer is said to give none; nothing is removed or replaced on the
// strength of a missing answer.
package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"cellmux/cell/cfg"
	"cellmux/cell/lock"
	"cellmux/cell/proc"
	"cellmux/engine"
)

// Labels of everything that this package makes. They hold names and settings
// that docker inspect shows anyhow, never a value of the environment.
const (
	labelOwner    = "dev.cellmux.owner"    // digest of uid and state directory
	labelCell     = "dev.cellmux.cell"     // name of the cell
	labelSettings = "dev.cellmux.settings" // what the container was made with, JSON
	labelImage    = "dev.cellmux.image"    // on images of ours: their stack tag
	labelEgress   = "dev.cellmux.egress"   // on proxies: their configuration's digest
)

// Options is what the engine works with. Runner, Environ and StateDir are
// required.
type Options struct {
	Runner   proc.Runner
	Environ  []string // of the host: where docker is found, and how it reaches its daemon
	StateDir string   // private to this user, kept over restarts: generated files that containers mount
	Program  string   // docker or podman, a name or a path; "" is the first one found
	HostUser string   // name inside, and of the home there; "" is "user"
	Home     string   // the user's own home on the host
	UID, GID int
	// Egress is the argv of a statically linked Linux program that serves the
	// egress proxy; its first word is a path on this host.
	Egress    []string
	Deadline  time.Duration // for a quick answer of the daemon; 0 is 10 s
	BaseImage string        // that images of ours are built on; "" is DefaultBase
	BuildArgs []string      // of every docker build besides
	// Approved tells whether the user has approved a file of the project, such as
	// a devcontainer.json; nil approves none.
	Approved func(path string, content []byte) bool
	Log      *slog.Logger // nil discards
}

// Docker is the engine. It is safe for concurrent use.
type Docker struct {
	o     Options
	owner string
	host  func() ([]netip.Prefix, error) // addresses that this host has or reaches

	mu    sync.Mutex
	facts *facts            // of the runtime, once it has answered
	users map[string]string // by cell, what its container was made for: "uid:gid"
}

var (
	_ engine.Engine        = (*Docker)(nil)
	_ engine.AgentPreparer = (*Docker)(nil)
	_ engine.Drifter       = (*Docker)(nil)
	_ engine.Idler         = (*Docker)(nil)
	_ engine.Images        = (*Docker)(nil)
	_ engine.Remover       = (*Docker)(nil)
)

// New returns the engine. It starts nothing.
func New(o Options) *Docker {
	if o.Deadline == 0 {
		o.Deadline = 10 * time.Second
	}
	if o.HostUser == "" {
		o.HostUser = "user"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	digest := sha256.Sum256([]byte(strconv.Itoa(o.UID) + "\x00" + o.StateDir))
	return &Docker{
		o: o, owner: hex.EncodeToString(digest[:6]), host: hostSubnets, users: make(map[string]string),
	}
}

// Kind implements engine.Engine.
func (*Docker) Kind() engine.Kind { return engine.Docker }

// containerName is the name of a cell's container. It holds the owner, since
// another user of the daemon may have a cell of the same name.
func (d *Docker) containerName(cell string) string { return "cellmux-" + cell + "-" + d.owner[:6] }

// home is the path inside that holds the workspace home.
func (d *Docker) home() string { return "/home/" + d.o.HostUser }

// project is the path inside that holds a cell's project. It differs between
// cells: agents file their conversations by directory below the home, which all
// cells of a workspace share.
func (*Docker) project(c engine.Cell) string { return "/src/" + c.Name }

func hostname(c engine.Cell) string {
	if c.Config.Cell.Hostname != "" {
		return c.Config.Cell.Hostname
	}
	return "cell-" + c.Name
}

// Guest implements engine.Engine. It reads the project's .git, to say what git
// can do inside, and starts nothing.
func (d *Docker) Guest(c engine.Cell) cfg.Guest {
	g := cfg.Guest{
		Isolated:   true,
		Kind:       "Docker container",
		Hostname:   hostname(c),
		Home:       d.home(),
		ProjectDir: d.project(c),
	}
	repository := readRepository(c.ProjectDir)
	g.Git = repository.access(c.Config.Git.Worktree)
	mounts, err := d.mounts(c, repository)
	if err == nil {
		for _, m := range mounts {
			if !m.inner {
				g.Mounts = append(g.Mounts, cfg.Mount{Host: m.host, Guest: m.guest, ReadOnly: m.readOnly, Note: m.note})
			}
		}
	}
	l := limitsOf(c.Config.Docker)
	if l.memory != "" {
		g.Limits = append(g.Limits, l.memory+" of memory")
	}
	if l.cpus != "" {
		g.Limits = append(g.Limits, l.cpus+" processors")
	}
	switch network, hosts := networkOf(c.Config.Cell); network {
	case networkNone:
		g.Limits = append(g.Limits, "no network")
	case networkAllowlist:
		g.Limits = append(g.Limits, "network to these hosts alone, over HTTPS: "+strings.Join(hosts, ", "))
	}
	return g
}

// Up implements engine.Engine. A container that runs is left as it is, even
// where the configuration has changed since: somebody may be in it (Drift tells).
func (d *Docker) Up(ctx context.Context, c engine.Cell, progress func(engine.Progress)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if progress == nil {
		progress = func(engine.Progress) {}
	}
	if err := engine.CheckProjectDir(c.ProjectDir); err != nil {
		return err
	}
	if !filepath.IsAbs(c.WorkspaceHome) {
		return fmt.Errorf("the workspace home %q is not an absolute path", c.WorkspaceHome)
	}
	if err := os.MkdirAll(c.WorkspaceHome, 0o700); err != nil {
		return fmt.Errorf("make the workspace home: %w", err)
	}
	if err := d.local(ctx); err != nil {
		return err
	}
	if b, ok := d.glance(ctx, d.containerName(c.Name)); ok && b.owner == d.owner && b.status == "running" {
		return nil
	}
	if b, found, err := d.inspect(ctx, d.containerName(c.Name)); err != nil || found && b.owner == d.owner && b.status == "running" {
		return err
	}
	unlock, err := d.lock(ctx, "cell-"+c.Name)
	if err != nil {
		return err
	}
	defer unlock()
	// Somebody may create, start or remove the same container by hand between
	// two calls of ours; each such answer leads to another look.
	for range 4 {
		var again bool
		if again, err = d.step(ctx, c, progress); !again {
			return err
		}
	}
	return err
}

// step brings a cell one state nearer to running; again asks for another look.
func (d *Docker) step(ctx context.Context, c engine.Cell, progress func(engine.Progress)) (again bool, err error) {
	name := d.containerName(c.Name)
	box, found, err := d.inspect(ctx, name)
	switch {
	case err != nil:
		return false, err
	case found && box.owner != d.owner:
		return false, fmt.Errorf("a container %s exists that cellmux did not make: rename or remove it", name)
	case found && box.status == "running":
		return false, nil
	case found && box.status == "paused":
		return true, d.do(ctx, "continue the paused container of cell "+c.Name, "unpause", name)
	}
	if err := d.prepareRepository(c, readRepository(c.ProjectDir)); err != nil {
		return false, err
	}
	want, err := d.plan(ctx, c)
	if err != nil {
		return false, err
	}
	if found && box.status != "restarting" && box.status != "removing" {
		if len(want.changes(box.settings)) > 0 {
			// It is down, and was made for other settings: nobody is in it.
			return true, d.remove(ctx, name)
		}
		progress(engine.Progress{Step: "starting the container"})
		if err := d.reconnect(ctx, want.network, progress); err != nil {
			return errors.Is(err, errNetworkGone), err
		}
		if box.status == "created" { // by a cellmux that came no further
			return d.startFirst(ctx, name)
		}
		return d.start(ctx, name)
	}
	if err := d.ensureImage(ctx, c, progress); err != nil {
		return false, err
	}
	if err := d.create(ctx, c, want, progress); err != nil {
		return errors.Is(err, errNameTaken) || errors.Is(err, errNetworkGone), err
	}
	return d.startFirst(ctx, name)
}

// create makes a cell's container, in its network. What another container has
// left (this cell's, of other settings) goes.
func (d *Docker) create(ctx context.Context, c engine.Cell, p plan, progress func(engine.Progress)) error {
	args, err := d.createArgs(c, p)
	if err != nil {
		return err
	}
	unlock, err := d.lockNetworks(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := d.prepareNetwork(ctx, p.network, progress); err != nil {
		return err
	}
	progress(engine.Progress{Step: "creating the container"})
	if err := d.do(ctx, "create the container of cell "+c.Name, args...); err != nil {
		return err
	}
	d.tidyNetworks(ctx)
	return nil
}

// reconnect makes the network of a container that exists work again.
func (d *Docker) reconnect(ctx context.Context, n network, progress func(engine.Progress)) error {
	unlock, err := d.lockNetworks(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return d.prepareNetwork(ctx, n, progress)
}

// startFirst starts a container that has not run yet.
func (d *Docker) startFirst(ctx context.Context, name string) (again bool, err error) {
	err = d.introduceUser(ctx, name)
	switch {
	case err == nil:
		return d.start(ctx, name)
	case errors.Is(err, ErrGone):
		return true, err
	}
	return false, errors.Join(err, d.remove(context.WithoutCancel(ctx), name))
}

// start starts a container. One that cannot start is removed: it would fail in
// the same way for ever, while its reason (a taken port, a missing directory)
// may pass.
func (d *Docker) start(ctx context.Context, name string) (again bool, err error) {
	err = d.do(ctx, "start the container", "start", name)
	switch {
	case err == nil, errors.Is(err, ErrGone):
		return err != nil, err
	case errors.Is(err, errNetworkGone):
		// Somebody removed it by hand: the container remembers its ID, and needs
		// to be made again.
		return true, d.remove(ctx, name)
	case errors.Is(err, ErrNoDaemon), errors.Is(err, ErrNoAnswer), ctx.Err() != nil:
		return false, err
	}
	return false, errors.Join(err, d.remove(context.WithoutCancel(ctx), name))
}

func (d *Docker) remove(ctx context.Context, name string) error {
	err := d.do(ctx, "remove the container "+name, "rm", "--force", "--volumes", name)
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// Down implements engine.Engine: it stops the container, with every process in
// it. What is mounted stays.
func (d *Docker) Down(ctx context.Context, c engine.Cell) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.local(ctx); err != nil {
		return err
	}
	unlock, err := d.lock(ctx, "cell-"+c.Name)
	if err != nil {
		return err
	}
	defer unlock()
	err = d.do(ctx, "stop the container of cell "+c.Name, "stop", "--time", "2", d.containerName(c.Name))
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// Remove implements engine.Remover: it stops and removes a cell's container. With
// the last container that needs them go its network and its egress proxy. Where
// those cannot be removed the log tells, and Remove has succeeded all the same:
// the next container that is made or removed takes them along.
func (d *Docker) Remove(ctx context.Context, c engine.Cell) error {
	if err := d.local(ctx); err != nil {
		return err
	}
	unlock, err := d.lock(ctx, "cell-"+c.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := d.remove(ctx, d.containerName(c.Name)); err != nil {
		return err
	}
	unlockNetworks, err := d.lockNetworks(ctx)
	if err != nil {
		return err
	}
	defer unlockNetworks()
	d.tidyNetworks(ctx)
	return nil
}

// DownIfIdle stops a cell's container when nothing runs in it but its own idle
// process, and tells whether it did. A program that somebody started inside,
// in a pane or in the background, keeps it up.
func (d *Docker) DownIfIdle(ctx context.Context, c engine.Cell) (bool, error) {
	result, err := d.run(ctx, d.o.Deadline, "top", d.containerName(c.Name), "-eo", "pid,args")
	if err = d.judge("look into the container of cell "+c.Name, result, err); err != nil {
		if errors.Is(err, ErrGone) || errors.Is(err, errNotRunning) {
			return false, nil
		}
		return false, err
	}
	// The heading, the init process and its sleep.
	if lines := strings.Count(strings.TrimSpace(string(result.Stdout)), "\n"); lines > 2 {
		return false, nil
	}
	return true, d.Down(ctx, c)
}

// Drift implements engine.Drifter: a phrase for each change ("memory: 4g, now
// 8g"). It asks docker nothing that it has answered before.
func (d *Docker) Drift(ctx context.Context, c engine.Cell, i engine.Instance) ([]string, error) {
	want, err := d.plan(ctx, c)
	if err != nil {
		return nil, err
	}
	return want.changes(i.Settings), nil
}

// Instances implements engine.Engine: one call, however many there are.
func (d *Docker) Instances(ctx context.Context) ([]engine.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.local(ctx); err != nil {
		return nil, err
	}
	f, err := d.known(ctx)
	if err != nil {
		return nil, err
	}
	state, label := `{{.State}}`, `{{.Label %q}}`
	if f.podman { // its own State is a sentence
		state, label = `{{.ListContainer.State}}`, `{{index .Labels %q}}`
	}
	columns := []string{`{{.ID}}`, fmt.Sprintf(label, labelCell), state, `{{.Status}}`, `{{.Names}}`, fmt.Sprintf(label, labelSettings)}
	result, err := d.run(ctx, d.o.Deadline, "ps", "--all", "--no-trunc",
		"--filter", "label="+labelOwner+"="+d.owner, "--filter", "label="+labelCell,
		"--format", strings.Join(columns, "\t"))
	if err = d.judge("list the containers", result, err); err != nil {
		return nil, err
	}
	var all []engine.Instance
	for line := range strings.Lines(string(result.Stdout)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 6)
		if len(fields) != 6 {
			return nil, fmt.Errorf("list the containers: %s answered a row that cellmux cannot read: %q", d.program(), line)
		}
		if fields[4] != d.containerName(fields[1]) {
			continue // renamed by hand: whoever did it keeps it, and the cell gets another
		}
		box := d.box(fields[0], fields[2], map[string]string{labelOwner: d.owner, labelCell: fields[1], labelSettings: fields[5]})
		all = append(all, engine.Instance{
			ID: box.id, Cell: fields[1], Running: box.status == "running", Paused: box.status == "paused",
			Detail: fields[3], Settings: box.settings,
		})
	}
	return all, nil
}

// lock keeps every cellmux of this user from doing the same thing at once: two
// terminals that open one cell, or two cells that need one network, of which
// docker makes two of the same name when it is asked twice.
func (d *Docker) lock(ctx context.Context, name string) (unlock func(), err error) {
	held, err := lock.Wait(ctx, filepath.Join(d.o.StateDir, "locks", name))
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}
