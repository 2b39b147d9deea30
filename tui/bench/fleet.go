//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const socket = "cellmux"

// stage is a HOME of its own with cells on a private tmux server.
type stage struct {
	dir    string
	env    []string
	binary string
	self   string
	server int
	panes  []pane
}

type pane struct{ id, session string }

// newStage opens n shell panes, four to a cell, through cellmux itself. Each
// prints its mark.
func newStage(binary, self string, n int) (*stage, error) {
	dir, err := os.MkdirTemp("/tmp", "cmbench")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, binary: binary, self: self, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SHELL=/bin/sh", "USER=bench", "LANG=C.UTF-8", "TERM=xterm-256color",
		"COLORTERM=truecolor", "TMUX_TMPDIR=" + dir, "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
	}}
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
		return nil, err
	}
	for i := range n {
		project := filepath.Join(dir, fmt.Sprintf("p%02d", i/4))
		if err := os.MkdirAll(project, 0o700); err != nil {
			return nil, err
		}
		if out, err := s.run(binary, "open", project, "--agent", "shell"); err != nil {
			return s, fmt.Errorf("open a pane: %w: %s", err, out)
		}
	}
	out, err := s.tmux("list-panes", "-a", "-F", "#{pane_id} #{session_name} #{pid}")
	if err != nil {
		return s, err
	}
	for l := range strings.Lines(out) {
		f := strings.Fields(l)
		if len(f) == 3 && f[1] != "_hub" {
			s.panes = append(s.panes, pane{f[0], f[1]})
			s.server, _ = strconv.Atoi(f[2])
		}
	}
	if len(s.panes) != n {
		return s, fmt.Errorf("%d panes opened, %d live", n, len(s.panes))
	}
	// The floor attaches to a hub that cellmux makes.
	if _, err := s.tmux("new-session", "-d", "-s", "_hub", "-x", "80", "-y", "24", "exec cat"); err != nil {
		return s, err
	}
	for _, p := range s.panes {
		if err := s.typeLine(p, "PS1=; clear; printf 'mark-%s-\\n' "+p.session); err != nil {
			return s, err
		}
	}
	for _, p := range s.panes {
		if err := s.await(p, mark(p.session)); err != nil {
			return s, err
		}
	}
	return s, nil
}

func mark(session string) string { return "mark-" + session + "-" }

func (s *stage) run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir = s.env, s.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *stage) tmux(args ...string) (string, error) {
	return s.run("tmux", append([]string{"-u", "-L", socket}, args...)...)
}

func (s *stage) typeLine(p pane, text string) error {
	if _, err := s.tmux("send-keys", "-t", p.id, "-l", text); err != nil {
		return err
	}
	_, err := s.tmux("send-keys", "-t", p.id, "Enter")
	return err
}

func (s *stage) await(p pane, text string) error {
	for range 200 {
		if out, err := s.tmux("capture-pane", "-p", "-t", p.id); err == nil && strings.Contains(out, "\n"+text) || strings.HasPrefix(out, text) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("pane %s never showed %q", p.session, text)
}

// busy makes the first n panes print without pause, until the stage ends.
func (s *stage) busy(n int) error {
	for _, p := range s.panes[:min(n, len(s.panes))] {
		if err := s.typeLine(p, s.self+" -print"); err != nil {
			return err
		}
	}
	time.Sleep(500 * time.Millisecond)
	return nil
}

func (s *stage) end() {
	_, _ = s.tmux("kill-server") // its socket lies in the stage's own directory
	_ = os.RemoveAll(s.dir)
}

// printStamps prints 50 lines a second, each with the time in microseconds.
func printStamps() {
	for {
		fmt.Printf("stamp-%d- some text as a build would print it\n", time.Now().UnixMicro())
		time.Sleep(20 * time.Millisecond)
	}
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
