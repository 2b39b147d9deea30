package e2e

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"cellmux/cell/proc/proctest"
)

// patience bounds every wait for something that should happen soon. It is long
// because two slow cores run everything at once in CI; nothing waits that long
// unless it fails.
const patience = 30 * time.Second

// programs is where TestMain puts cellmux and the stub agent.
var programs string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cellmux-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	for name, pkg := range map[string]string{"cellmux": "cellmux", "claude": "cellmux/tui/e2e/stubagent"} {
		sub := filepath.Join(dir, name)
		if err := os.Mkdir(sub, 0o755); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		build := exec.Command("go", "build", "-race", "-o", filepath.Join(sub, name), pkg)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build %s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	return m.Run()
}

func TestScripts(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux: " + err.Error())
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds:                commands(),
	})
}

func commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"start":      start,
		"resize":     resize,
		"keys":       keys,
		"type":       typeText,
		"see":        see,
		"hide":       hide,
		"ended":      ended,
		"frame":      frame,
		"until":      until,
		"until-file": untilFile,
		"received":   receivedText,
		"server":     server,
		"secretless": secretless,
		"nowhere":    nowhere,
	}
}

type worldKey struct{}

// world is what one script started.
type world struct {
	outer   string // socket name of the tmux server that shows cellmux
	product string // socket name of the server that cellmux is told to use
}

func setup(env *testscript.Env) error {
	suffix := make([]byte, 6)
	if _, err := rand.Read(suffix); err != nil {
		return err
	}
	w := &world{
		outer:   "cellmux-e2e-outer-" + hex.EncodeToString(suffix),
		product: "cellmux-e2e-" + hex.EncodeToString(suffix),
	}
	home := filepath.Join(env.WorkDir, "home")
	runtime := filepath.Join(env.WorkDir, "run")
	for _, dir := range []string{home, runtime, filepath.Join(env.WorkDir, "project")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := welcomed(home); err != nil {
		return err
	}
	env.Cd = filepath.Join(env.WorkDir, "project")
	env.Vars = []string{
		"WORK=" + env.WorkDir,
		"HOME=" + home,
		"PATH=" + strings.Join([]string{filepath.Join(programs, "cellmux"), filepath.Join(programs, "claude"), "/usr/local/bin", "/usr/bin", "/bin"}, ":"),
		"CELLMUX=" + filepath.Join(programs, "cellmux"),
		"TMPDIR=" + env.WorkDir,
		"XDG_RUNTIME_DIR=" + runtime,
		"CELLMUX_TMUX_SOCKET=" + w.product,
		"TERM=xterm-256color",
		"LANG=C.UTF-8",
		"GORACE=halt_on_error=1",
	}
	for _, socket := range []string{w.outer, w.product} {
		if out, err := tmuxOutput(socket, "list-sessions"); err == nil {
			return fmt.Errorf("a tmux server answers on %s already (%s): it is not ours", socket, out)
		}
	}
	env.Values[worldKey{}] = w
	env.Defer(func() {
		// Both sockets have names that nobody else can know.
		for _, socket := range []string{w.outer, w.product} {
			if out, err := tmuxOutput(socket, "kill-server"); err != nil && !noServer(out) {
				env.T().Log(socket, out, err)
			}
		}
		proctest.EndAllOf(env.T().(testing.TB), home)
		for _, socket := range []string{w.outer, w.product} {
			if err := os.Remove(filepath.Join("/tmp", fmt.Sprintf("tmux-%d", os.Getuid()), socket)); err != nil && !os.IsNotExist(err) {
				env.T().Log(err)
			}
		}
	})
	return nil
}

// welcomed makes a home that of somebody who has used claude before: nothing is
// asked about the first agent in a directory.
func welcomed(home string) error {
	return os.WriteFile(filepath.Join(home, ".claude.json"), []byte(`{"hasCompletedOnboarding":true,"projects":{"/":{"hasTrustDialogAccepted":true}}}`), 0o600)
}

func noServer(out string) bool {
	return strings.Contains(out, "no server running") || strings.Contains(out, "error connecting") || strings.Contains(out, "server exited")
}

func tmuxOutput(socket string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-L", socket, "-f", "/dev/null"}, args...)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}
