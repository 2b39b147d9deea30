//go:build unix

package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// Main lets a test binary stand in for "cellmux __pane FILE"; TestMain calls it.
func Main(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == engine.HandoffArgument {
		err := engine.RunHandoff(os.Args[2], os.Getenv)
		fmt.Fprintln(os.Stderr, "cellmux:", err)
		os.Exit(err.Code)
	}
	os.Exit(m.Run())
}

// canaryAgent is a declaration whose program tells its secrets into a pipe and
// then stays.
type canaryAgent struct{ fifo string }

func (canaryAgent) Name() string { return "claude" }

func (a canaryAgent) Plan(context.Context, engine.AgentInput) (engine.AgentPlan, error) {
	return engine.AgentPlan{
		Argv: []string{"/bin/sh", "-c", `exec 9>"$1"; printf '%s %s %s' "$ANTHROPIC_API_KEY" "$DB_PASSWORD" "$AGENT_TOKEN" >&9; cat`, "sh", a.fifo},
		Env:  []string{"AGENT_TOKEN=canary-of-the-plan"},
	}, nil
}

type canaryConfigs struct{}

func (canaryConfigs) Values(_ context.Context, c engine.Cell) (engine.Values, error) {
	return engine.Values{Config: c.Config, BaseDir: c.ProjectDir, Secrets: []string{"DB_PASSWORD=canary-of-secrets"}}, nil
}

// tmuxPanes opens panes on a tmux server of the test's own.
type tmuxPanes struct {
	t      *testing.T
	socket string
}

func (p tmuxPanes) run(args ...string) (proc.Result, error) {
	return proc.New().Run(context.Background(), proc.Cmd{
		Argv: append([]string{"tmux", "-S", p.socket, "-f", "/dev/null"}, args...), Dir: "/", LeavesDaemon: true,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "TERM=xterm", "LC_ALL=C.UTF-8"},
	})
}

func (p tmuxPanes) tmux(args ...string) string {
	p.t.Helper()
	result, err := p.run(args...)
	if err != nil || result.ExitCode != 0 {
		p.t.Fatalf("tmux %q: %v, exit %d: %s", args, err, result.ExitCode, result.Stderr)
	}
	return string(result.Stdout)
}

func (p tmuxPanes) Open(_ context.Context, s engine.PaneSpec) (string, error) {
	args := []string{"new-session", "-d", "-P", "-F", "#{pane_id}", "-c", s.Dir, "--"}
	return strings.TrimSpace(p.tmux(append(args, s.Argv...)...)), nil
}

// Canaries plants secrets wherever cellmux carries some, opens a pane with them
// on a real tmux server, and looks for them where they must not be: in any
// argument of any process, in tmux's environment, in every file that the cell
// and cellmux have, in error texts, and in the places that the caller names.
func Canaries(t *testing.T, s Subject, places func() map[string]string) {
	if _, err := proc.LookPath("tmux", []string{"PATH=" + os.Getenv("PATH")}); err != nil {
		t.Skip("needs tmux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runtime := t.TempDir()
	if err := os.Chmod(runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	panes := tmuxPanes{t, filepath.Join(runtime, "tmux")}
	inside, outside := s.fifo(t, "canaries")
	agent := canaryAgent{inside}
	opener := engine.NewOpener(engine.OpenerOptions{
		Engines: []engine.Engine{s.Engine}, Panes: panes, Configs: canaryConfigs{},
		Agent:      func(string) (engine.Agent, bool) { return agent, true },
		Self:       self,
		RuntimeDir: runtime,
		Environ:    []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ANTHROPIC_API_KEY=canary-of-the-host"},
	})
	request := engine.OpenRequest{Cell: s.Cell, Agent: "claude"}
	s.up(t)
	if _, err := opener.Open(deadline(t), request); err != nil {
		t.Fatalf("Open: %v", err)
	}
	// The server goes with its last pane, if that is faster.
	t.Cleanup(func() { _, _ = panes.run("kill-server") })
	t.Cleanup(func() { _ = opener.End(context.Background(), s.Cell, 0) })
	const all = "canary-of-the-host canary-of-secrets canary-of-the-plan"
	if got := outside.read(t, len(all)); got != all {
		t.Fatalf("inside, the secrets are %q", got)
	}

	found := map[string]string{"tmux's environment": panes.tmux("show-environment", "-g") + panes.tmux("show-environment")}
	for what, text := range commandLines() {
		found[what] = text
	}
	for _, dir := range []string{runtime, s.Cell.ProjectDir, s.Cell.WorkspaceHome} {
		for what, text := range files(t, dir) {
			found[what] = text
		}
	}
	if places != nil {
		for what, text := range places() {
			found[what] = text
		}
	}
	for _, spec := range s.refused() {
		_, err := s.Engine.Launch(spec)
		found["the error of a refused launch"] += fmt.Sprintln(err)
	}
	for what, text := range found {
		if i := strings.Index(text, "canary-of"); i >= 0 {
			t.Errorf("%s holds a secret: …%q…", what, text[max(0, i-80):min(len(text), i+80)])
		}
	}
}

// refused are launches that an engine may refuse, with secrets in them.
func (s Subject) refused() []engine.Spec {
	secrets := []string{"LD_PRELOAD=canary-of-an-error", "RAW=canary-of-an-error\xff"}
	return []engine.Spec{
		{Cell: s.Cell, Env: secrets, Secrets: []string{"LD_PRELOAD", "RAW"}},
		{Cell: s.Cell, Argv: []string{"true"}, Env: secrets[:1], Secrets: []string{"LD_PRELOAD"}},
		{Cell: s.Cell, Argv: []string{"true"}, Env: secrets[1:], Secrets: []string{"RAW"}},
	}
}

// commandLines are the arguments of every process that can be seen.
func commandLines() map[string]string {
	all := make(map[string]string)
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		line, _ := os.ReadFile(name)
		all[name] = string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
	}
	return all
}

// files are the regular files below dir, read as far as they can be.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || slices.Contains([]string{".credentials.json"}, entry.Name()) {
			return nil
		}
		content, _ := os.ReadFile(path)
		all[path] = string(content)
		return nil
	})
	return all
}
