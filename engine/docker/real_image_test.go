//go:build linux

package docker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/docker"
)

// nodeBase makes a base image in which node and npm are stand-ins: no registry of
// images or packages of node can be reached here, so npm writes down what it was
// asked for.
func (l *lab) nodeBase() string {
	l.t.Helper()
	const name = "cellmux-test:node"
	text := "FROM " + testImage + `
RUN printf '#!/bin/sh\nexit 0\n' >/usr/bin/node && printf '#!/bin/sh\necho "$@" >>/npm.log\n' >/usr/bin/npm && chmod 755 /usr/bin/node /usr/bin/npm
`
	result, err := proc.New().Run(context.Background(), proc.Cmd{
		Argv: []string{"docker", "build", "--tag", name, "-"}, Dir: "/", Env: l.o.Environ, Stdin: strings.NewReader(text), Timeout: 2 * time.Minute,
	})
	if err != nil || result.ExitCode != 0 {
		l.t.Fatalf("build the base: %v: %s", err, result.Stderr)
	}
	return name
}

// Our own Dockerfile, with a real package manager, from the base that was asked
// for; then a cell on it.
func TestRealImageOfOurs(t *testing.T) {
	l := newLab(t, func(o *docker.Options) {
		o.BuildArgs = []string{"--network", "host"} // the test's daemon has no default bridge to build on
	})
	l.o.BaseImage = l.nodeBase()
	l.engine = docker.New(l.o)
	c := l.cell(func(c *engine.Cell) {
		c.Config.Cell.Image = ""
		c.Config.Cell.Stack = "dev"
		c.Config.Cell.Modules = []string{"codex", "claude"}
		c.Config.Cell.Packages = []string{"tree"}
	})
	var steps []engine.Progress
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	reference, err := l.engine.BuildImage(ctx, c, func(p engine.Progress) { steps = append(steps, p) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.try("image", "rm", "--force", reference) })
	if !strings.HasPrefix(reference, "cellmux/cell:dev-claude-codex-") {
		t.Errorf("the image is called %s", reference)
	}
	numbered := slices.DeleteFunc(slices.Clone(steps), func(p engine.Progress) bool { return p.Total == 0 })
	if len(numbered) < 3 || numbered[len(numbered)-1].Unit != "steps" || numbered[0].Done >= numbered[len(numbered)-1].Done {
		t.Errorf("the build's progress was %+v", numbered)
	}

	steps = nil
	if err := l.engine.Up(ctx, c, func(p engine.Progress) { steps = append(steps, p) }); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(steps, func(p engine.Progress) bool { return strings.Contains(p.Step, "build") }) {
		t.Errorf("the image was built again: %+v", steps)
	}
	if got := l.output(c, "git --version | cut -d' ' -f1,2; tree --version | cut -d' ' -f1; bash -c 'echo bash'; cat /npm.log"); got !=
		"git version\ntree\nbash\ninstall --global --no-fund --no-audit @anthropic-ai/claude-code @openai/codex\ncache clean --force" {
		t.Errorf("inside:\n%s", got)
	}

	images, err := l.engine.Images(l.ctx())
	if err != nil || len(images) != 1 || images[0].Reference != reference || images[0].Stack != "dev-claude-codex-"+strings.Split(strings.TrimPrefix(reference, "cellmux/cell:dev-claude-codex-"), "-")[0] || !images[0].InUse || images[0].Size == "" || images[0].Created.IsZero() {
		t.Errorf("Images = %+v, %v", images, err)
	}
	if removed, err := l.engine.PruneImages(l.ctx()); err != nil || len(removed) != 0 {
		t.Errorf("PruneImages removed %+v under a container, %v", removed, err)
	}
	if err := l.engine.Remove(l.ctx(), c); err != nil {
		t.Fatal(err)
	}
	if removed, err := l.engine.PruneImages(l.ctx()); err != nil || len(removed) != 1 || removed[0].Reference != reference {
		t.Errorf("PruneImages = %+v, %v", removed, err)
	}
	if images, err := l.engine.Images(l.ctx()); err != nil || len(images) != 0 {
		t.Errorf("Images after it = %+v, %v", images, err)
	}
}

// devcontainer writes a project's devcontainer.json with a Dockerfile beside it.
func devcontainer(t *testing.T, project, json, dockerfile string) {
	t.Helper()
	dir := filepath.Join(project, ".devcontainer")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "devcontainer.json"), json)
	if dockerfile != "" {
		write(t, filepath.Join(dir, "Dockerfile"), dockerfile)
	}
}

func TestRealDevcontainerIsBuiltOnceItIsApproved(t *testing.T) {
	approved := false
	l := newLab(t, func(o *docker.Options) {
		o.Approved = func(string, []byte) bool { return approved }
		o.BuildArgs = []string{"--network", "host"}
	})
	c := l.cell(func(c *engine.Cell) { c.Config.Cell.Image = "" })
	devcontainer(t, c.ProjectDir, `{
	// comments and trailing commas are allowed here
	"build": {"dockerfile": "Dockerfile", "args": {"WORD": "hello",},},
}`, "FROM "+testImage+"\nARG WORD\nCOPY Dockerfile /beside\nRUN echo $WORD >/word\n")
	l.o.BaseImage = "localhost:1/none:1" // where an unapproved one leads: ours, which cannot be had here
	l.engine = docker.New(l.o)
	if reference, err := l.engine.BuildImage(l.ctx(), c, nil); err == nil || !strings.HasPrefix(reference, "cellmux/cell:") {
		t.Errorf("unapproved, BuildImage = %s, %v", reference, err)
	}
	approved = true
	l.up(c)
	t.Cleanup(func() { _, _ = l.engine.PruneImages(context.Background()) })
	t.Cleanup(func() { _ = l.engine.Remove(context.Background(), c) })
	if got := l.output(c, "cat /word; head -1 /beside"); got != "hello\nFROM "+testImage {
		t.Errorf("inside: %q", got)
	}
}

func TestRealBuildThatFailsSaysWhyAndOneThatIsCancelledEnds(t *testing.T) {
	l := newLab(t, func(o *docker.Options) {
		o.Approved = func(string, []byte) bool { return true }
		o.BuildArgs = []string{"--network", "host"}
	})
	c := l.cell(func(c *engine.Cell) { c.Config.Cell.Image = "" })
	devcontainer(t, c.ProjectDir, `{"build": {"dockerfile": "Dockerfile"}}`, "FROM "+testImage+"\nRUN echo talk && exit 9\n")
	if _, err := l.engine.BuildImage(l.ctx(), c, nil); err == nil || !strings.Contains(err.Error(), "exit 9") {
		t.Errorf("BuildImage = %v, want what failed", err)
	}
	if left := l.docker("ps", "--all", "--quiet", "--filter", "ancestor="+testImage, "--filter", "exited=9"); left != "" {
		t.Errorf("the failed step left the container %s", left)
	}
	devcontainer(t, c.ProjectDir, `{"build": {"dockerfile": "Dockerfile"}}`, "FROM "+testImage+"\nRUN echo begun && sleep 1000\n")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begin := time.Now()
	_, err := l.engine.BuildImage(ctx, c, func(p engine.Progress) {
		if strings.Contains(p.Step, "sleep 1000") || strings.HasSuffix(p.Step, "begun") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || time.Since(begin) > 30*time.Second {
		t.Errorf("BuildImage = %v after %v", err, time.Since(begin))
	}
	waitFor(t, "the build's container to end", func() bool {
		return l.docker("ps", "--quiet", "--filter", "ancestor="+testImage) == ""
	})
}
