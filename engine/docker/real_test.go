//go:build linux

package docker_test

import (
	"cmp"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/docker"
	"cellmux/engine/enginetest"
)

// The tests called TestReal… speak to a real daemon. .ci/dockerd starts one, with
// a Debian image in it; without the path of its socket the tests are skipped.
const (
	socketVariable = "CELLMUX_TEST_DOCKER"
	testImage      = "cellmux-test:debian"
)

// lab is a real daemon, and an engine of this test's own on it.
type lab struct {
	t      *testing.T
	engine *docker.Docker
	o      docker.Options
}

func newLab(t *testing.T, change func(*docker.Options)) *lab {
	t.Helper()
	socket := os.Getenv(socketVariable)
	if socket == "" {
		t.Skipf("needs a docker daemon: .ci/dockerd run go test ./engine/docker sets %s", socketVariable)
	}
	l := &lab{t: t, o: docker.Options{
		Runner: proc.New(),
		Environ: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "DOCKER_HOST=unix://" + socket,
		},
		StateDir: t.TempDir(),
		HostUser: "ada",
		UID:      os.Getuid(), GID: os.Getgid(),
	}}
	if change != nil {
		change(&l.o)
	}
	l.engine = docker.New(l.o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := l.engine.PruneNetworks(ctx); err != nil {
			t.Errorf("remove the networks: %v", err)
		}
	})
	return l
}

// docker calls the client by hand.
func (l *lab) docker(args ...string) string {
	l.t.Helper()
	result := l.try(args...)
	if result.ExitCode != 0 {
		l.t.Fatalf("docker %q: exit %d: %s", args, result.ExitCode, result.Stderr)
	}
	return strings.TrimSpace(string(result.Stdout))
}

func (l *lab) try(args ...string) proc.Result {
	l.t.Helper()
	program := cmp.Or(l.o.Program, "docker")
	result, err := proc.New().Run(context.Background(), proc.Cmd{
		Argv: append([]string{program}, args...), Dir: "/", Env: l.o.Environ, Timeout: time.Minute,
	})
	if err != nil {
		l.t.Fatalf("%s %q: %v", program, args, err)
	}
	return result
}

// cell makes a cell of this test's own, and arranges for its container's end.
func (l *lab) cell(change func(*engine.Cell)) engine.Cell {
	l.t.Helper()
	c := engine.Cell{
		Name: "proj", Workspace: "main", Kind: engine.Docker,
		WorkspaceHome: l.t.TempDir(), ProjectDir: l.t.TempDir(),
		Config: cfg.CellConfig{Cell: cfg.CellSection{Image: testImage}},
	}
	if change != nil {
		change(&c)
	}
	l.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := l.engine.Remove(ctx, c); err != nil {
			l.t.Errorf("remove the container: %v", err)
		}
	})
	return c
}

func (l *lab) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	l.t.Cleanup(cancel)
	return ctx
}

func (l *lab) up(c engine.Cell) {
	l.t.Helper()
	if err := l.engine.Up(l.ctx(), c, nil); err != nil {
		l.t.Fatalf("Up: %v", err)
	}
}

// sh runs a shell line inside.
func (l *lab) sh(c engine.Cell, line string, env ...string) proc.Result {
	l.t.Helper()
	launch, err := l.engine.Launch(engine.Spec{Cell: c, Argv: []string{"sh", "-c", line}, Env: env})
	if err != nil {
		l.t.Fatalf("Launch: %v", err)
	}
	cmd := launch.Cmd()
	cmd.Timeout = time.Minute
	result, err := proc.New().Run(l.ctx(), cmd)
	if err != nil {
		l.t.Fatalf("%s: %v (%s)", line, err, result.Stderr)
	}
	return result
}

func (l *lab) output(c engine.Cell, line string, env ...string) string {
	l.t.Helper()
	result := l.sh(c, line, env...)
	if result.ExitCode != 0 {
		l.t.Fatalf("%s: exit %d: %s", line, result.ExitCode, result.Stderr)
	}
	return strings.TrimSpace(string(result.Stdout))
}

func TestRealConformance(t *testing.T) {
	enginetest.Conformance(t, func(t *testing.T) enginetest.Subject {
		l := newLab(t, nil)
		return enginetest.Subject{Engine: l.engine, Cell: l.cell(nil), Path: "/usr/local/bin:/usr/bin:/bin", TextOnly: true}
	})
}
