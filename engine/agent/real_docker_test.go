//go:build linux

package agent_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/engine/agent/agenttest"
)

// newDockerUser is a user whose cells are containers of the daemon that the
// tests have. The real claude is mounted into the test image; the workspace home
// is fresh, and the host's own is not seen inside.
func newDockerUser(t *testing.T) *user {
	t.Helper()
	socket := os.Getenv("CELLMUX_TEST_DOCKER")
	if socket == "" {
		t.Skip("needs a docker daemon: .ci/dockerd run go test ./engine/agent sets CELLMUX_TEST_DOCKER")
	}
	program, err := filepath.EvalSymlinks(filepath.Join(agenttest.Bin(t, "claude"), "claude"))
	if err != nil {
		t.Fatal(err)
	}
	u := newUserWith(t, "claude", agenttest.NewMockAt(t, hostAddress(t)), "DOCKER_HOST=unix://"+socket)
	file := filepath.Join(u.home, ".config", "devcell", "devcell.toml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[cell]\nengine = \"docker\"\nimage = \"cellmux-test:debian\"\nvolumes = [%q]\n", program+":/usr/local/bin/claude:ro")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		docker := func(args ...string) []string {
			cmd := exec.Command("docker", args...)
			cmd.Env = u.environ
			out, err := cmd.Output()
			if err != nil {
				t.Logf("docker %q: %v", args, err)
			}
			return strings.Fields(string(out))
		}
		if t.Failed() {
			t.Log(u.run("prompt", "demo:0"))
		}
		for _, container := range docker("ps", "-aq", "--filter", "label=dev.cellmux.cell=demo") {
			mounts := strings.Join(docker("inspect", "-f", "{{range .Mounts}}{{.Source}} {{end}}", container), " ")
			if !strings.Contains(mounts, u.project) {
				continue // another test's
			}
			networks := docker("inspect", "-f", "{{range $name, $n := .NetworkSettings.Networks}}{{$name}} {{end}}", container)
			docker("rm", "-f", container)
			docker(append([]string{"network", "rm"}, networks...)...)
		}
	})
	return u
}

// hostAddress is one of this host that containers reach over their bridge.
func hostAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("needs an address besides the loopback")
	return ""
}

func TestRealClaudeInADockerCell(t *testing.T) {
	u := newDockerUser(t)
	u.must("new", "--name", "demo")
	// A fresh home: no welcome, no question of trust, no question for the key.
	if ref := u.must("open", "demo", "--agent", "claude", "--append-system-prompt", "OVERLAY-ONE"); ref != "demo:0" {
		t.Fatalf("opened %q", ref)
	}
	u.firstTurn("OVERLAY-ONE")
	u.until(20*time.Second, "idle in the list", func() bool { return u.row(0).Status == "idle" })

	// The server dies with every pane; what it left in the container is no second
	// writer of the conversation, which goes on with a new overlay.
	for _, overlay := range []string{"OVERLAY-TWO", "OVERLAY-THREE"} {
		if out, err := u.tmux("kill-server"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		u.must("open", "demo:0", "--append-system-prompt", overlay)
		u.send(0, "what is "+overlay)
		again := u.asked("what is " + overlay)
		if !strings.Contains(again.UserText(), "ALPHA") {
			t.Errorf("the conversation was lost: %q", again.UserText())
		}
		if !strings.Contains(again.System, overlay) || strings.Contains(again.System, "OVERLAY-ONE") {
			t.Errorf("the system text is not that of this start, with %s", overlay)
		}
	}
	if n := u.must("run", "demo:0", "ps -C claude -o pid= | wc -l"); n != "1" {
		t.Errorf("%s claudes run in the container", n)
	}
}
