package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// socketVariable holds the socket of the tests' docker daemon (.ci/dockerd).
const socketVariable = "CELLMUX_TEST_DOCKER"

// TestRealDockerScripts are stories on a real docker daemon, in testdata/docker.
// The global devcell.toml makes every cell one of docker's, in a small Debian in
// which the stub agent is called claude. $CELL is a cell name of the script's own.
func TestRealDockerScripts(t *testing.T) {
	socket := os.Getenv(socketVariable)
	if socket == "" {
		t.Skipf("needs a docker daemon: .ci/dockerd run go test ./tui/e2e sets %s", socketVariable)
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux: " + err.Error())
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/docker",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                commands(),
		Setup: func(env *testscript.Env) error {
			if err := setup(env); err != nil {
				return err
			}
			w := env.Values[worldKey{}].(*world)
			env.Vars = append(env.Vars,
				"DOCKER_HOST=unix://"+socket,
				"CELL="+strings.TrimPrefix(w.product, "cellmux-"),
			)
			env.Defer(func() { removeContainers(env, socket) })
			dir := filepath.Join(env.WorkDir, "home", ".config", "devcell")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "devcell.toml"), fmt.Appendf(nil,
				"[cell]\nengine = \"docker\"\nimage = \"cellmux-test:debian\"\nvolumes = [%q]\n",
				filepath.Join(programs, "claude", "claude")+":/usr/local/bin/claude:ro"), 0o600)
		},
	})
}

// removeContainers removes what a script's cells left: containers that share a
// directory of the script's own, and the networks of the cellmux that made them.
func removeContainers(env *testscript.Env, socket string) {
	docker := func(args ...string) string {
		out, err := exec.Command("docker", append([]string{"--host", "unix://" + socket}, args...)...).Output()
		if err != nil {
			env.T().Log("docker", args, err)
		}
		return string(bytes.TrimSpace(out))
	}
	for _, id := range strings.Fields(docker("ps", "--all", "--quiet", "--filter", "label=dev.cellmux.owner")) {
		if strings.Contains(docker("container", "inspect", "--format", "{{json .Mounts}}", id), env.WorkDir+"/") {
			owner := "label=dev.cellmux.owner=" + docker("container", "inspect", "--format", `{{index .Config.Labels "dev.cellmux.owner"}}`, id)
			docker("rm", "--force", id)
			for _, network := range strings.Fields(docker("network", "ls", "--quiet", "--filter", owner)) {
				docker("network", "rm", network)
			}
		}
	}
}
