//go:build linux

package docker_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/docker"
	"cellmux/engine/enginetest"
)

// podmanVariable holds the containers.conf of the tests' podman (.ci/podman).
const podmanVariable = "CELLMUX_TEST_PODMAN"

// newPodmanLab is a lab on podman, which has no daemon.
func newPodmanLab(t *testing.T) *lab {
	t.Helper()
	conf := os.Getenv(podmanVariable)
	if conf == "" {
		t.Skipf("needs a podman that works here: .ci/podman prints the value of %s", podmanVariable)
	}
	l := &lab{t: t, o: docker.Options{
		Runner: proc.New(), Program: "podman", Deadline: time.Minute,
		Environ: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(),
			"CONTAINERS_CONF=" + conf, "CONTAINERS_STORAGE_CONF=" + filepath.Join(filepath.Dir(conf), "storage.conf"),
		},
		StateDir: t.TempDir(), HostUser: "ada", UID: os.Getuid(), GID: os.Getgid(),
	}}
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

// What the engine keeps on docker it keeps on podman.
func TestRealPodmanConformance(t *testing.T) {
	enginetest.Conformance(t, func(t *testing.T) enginetest.Subject {
		l := newPodmanLab(t)
		return enginetest.Subject{Engine: l.engine, Cell: l.cell(nil), Path: "/usr/local/bin:/usr/bin:/bin", TextOnly: true}
	})
}

func TestRealPodmanUserRepositoryAndList(t *testing.T) {
	l := newPodmanLab(t)
	if a := l.engine.Probe(l.ctx()); !a.Usable || a.Version == "" {
		t.Fatalf("Probe = %+v", a)
	}
	main, worktree := newWorktree(t)
	before := tree(t, main)
	c := l.cell(func(c *engine.Cell) { c.ProjectDir = worktree })
	l.up(c)
	if got := l.output(c, "id -un; echo $HOME; git status --short --branch; echo two >> file; touch made"); got != "ada\n/home/ada\n## topic" {
		t.Errorf("inside: %q", got)
	}
	if result := l.sh(c, "git commit -qam inside"); result.ExitCode == 0 {
		t.Error("a commit went through")
	}
	info, err := os.Stat(filepath.Join(worktree, "made"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) {
		t.Errorf("what was made inside belongs to somebody else: %v", err)
	}
	sameTree(t, before, tree(t, main))
	c.Config.Docker.MemLimit = "300m"
	if drift, err := l.drift(c); err != nil || strings.Join(drift, "; ") != "memory: 4g, now 300m" {
		t.Errorf("Drift = %q, %v", drift, err)
	}
	if down, err := l.engine.DownIfIdle(l.ctx(), c); err != nil || !down {
		t.Errorf("DownIfIdle = %v, %v", down, err)
	}
	if all, err := l.engine.Instances(l.ctx()); err != nil || len(all) != 1 || all[0].Running || all[0].Cell != "proj" {
		t.Errorf("Instances = %+v, %v", all, err)
	}
}

// An allowlist that podman cannot have is refused, never opened.
func TestRealPodmanNetworks(t *testing.T) {
	l := newPodmanLab(t)
	c := l.cell(func(c *engine.Cell) {
		c.Config.Cell.Network = "allowlist"
		c.Config.Cell.NetworkAllow = []string{"example.com"}
	})
	if err := l.engine.Up(l.ctx(), c, nil); err == nil || !strings.Contains(err.Error(), `choose "none" or "open"`) {
		t.Errorf("Up = %v", err)
	}
	if all, err := l.engine.Instances(l.ctx()); err != nil || len(all) != 0 {
		t.Errorf("it left %+v, %v", all, err)
	}
	c.Config.Cell.Network = "none"
	l.up(c)
	if got := l.output(c, "ls /sys/class/net"); got != "lo" {
		t.Errorf("its networks are %q", got)
	}
}
