package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// killGrace is how long the programs of a killed pane have to save their state,
// after the hang-up that the loss of their terminal is.
const killGrace = 2 * time.Second

// sessionName is the session of a slot: the app name, which no other slot has.
func sessionName(cell string, slot int) string { return cell + "-" + strconv.Itoa(slot) }

// Open implements engine.Panes: one session per slot, tagged within the same
// turn of the server, so that no list shows it untagged. A dead pane is
// respawned in place: who is attached stays, and so does what it printed. A
// live pane of the slot is ErrLive, also when another process was faster.
func (s *Server) Open(ctx context.Context, p engine.PaneSpec) (string, error) {
	if err := validSpec(p); err != nil {
		return "", err
	}
	if err := stat(p.Dir); err != nil {
		// tmux itself would start in the home directory and say nothing.
		return "", fmt.Errorf("open a pane for %s:%d: %w", p.Cell, p.Slot, err)
	}
	id, err := s.open(ctx, p)
	if err != nil && !errors.Is(err, ErrLive) {
		// An old tmux refuses an option or a command; its version says so in
		// better words.
		if _, probe := s.Probe(ctx); errors.Is(probe, ErrOld) {
			err = probe
		}
	}
	if err != nil {
		return "", fmt.Errorf("open a pane for %s:%d: %w", p.Cell, p.Slot, err)
	}
	return id, nil
}

func validSpec(p engine.PaneSpec) error {
	if p.Cell == "" || strings.Trim(p.Cell, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("open a pane: %q is no name of a cell", p.Cell)
	}
	if p.Slot < 0 || len(p.Argv) == 0 {
		return fmt.Errorf("open a pane for %s: slot %d with %d arguments", p.Cell, p.Slot, len(p.Argv))
	}
	return nil
}

func (s *Server) open(ctx context.Context, p engine.PaneSpec) (string, error) {
	rows, err := s.query(ctx)
	if err != nil {
		return "", err
	}
	argv := p.Argv
	if len(argv) == 1 {
		argv = []string{"/usr/bin/env", argv[0]} // tmux hands a single argument to a shell
	}
	for _, old := range rows.panes {
		if old.Cell != p.Cell || old.Slot != p.Slot {
			continue
		}
		if !old.Dead {
			return "", ErrLive
		}
		// Without -k tmux refuses when the pane has come to life meanwhile.
		respawn := append(command{"respawn-pane", "-t", old.ID, "-c", literal(p.Dir), "--"}, argv...)
		_, err := s.start(ctx, respawn, command{"set-option", "-p", "-t", old.ID, "@cellmux_agent", p.Agent})
		return old.ID, err
	}

	name := sessionName(p.Cell, p.Slot)
	s.mu.Lock()
	width, height := s.width, s.height-1 // our configuration has one status line
	s.mu.Unlock()
	target := "=" + name + ":"
	created := append(command{"new-session", "-d", "-P", "-F", "#{pane_id}", "-s", name,
		"-n", "pane", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "-c", literal(p.Dir), "--"}, argv...)
	lines, err := s.start(ctx, created,
		command{"set-option", "-p", "-t", target, "@cellmux_cell", p.Cell},
		command{"set-option", "-p", "-t", target, "@cellmux_slot", strconv.Itoa(p.Slot)},
		command{"set-option", "-p", "-t", target, "@cellmux_agent", p.Agent})
	if err != nil {
		return "", err
	}
	if len(lines) == 0 || !strings.HasPrefix(lines[0], "%") {
		return "", fmt.Errorf("tmux named no pane: %q", clip(strings.Join(lines, "; ")))
	}
	return lines[0], nil
}

// start runs commands that need a server, and starts one when there is none.
func (s *Server) start(ctx context.Context, cmds ...command) ([]string, error) {
	if s.connected() {
		return s.run(ctx, cmds...)
	}
	lines, err := s.exec(ctx, true, nil, cmds...)
	if errors.Is(err, ErrNoServer) {
		// The server that was there was just ending.
		lines, err = s.exec(ctx, true, nil, cmds...)
	}
	select {
	case s.nudge <- struct{}{}:
	default:
	}
	return lines, err
}

// literal protects a text that tmux would expand as a format: a directory named
// "#(cmd)" must not run cmd. A run of '#' is halved by the expansion, but for
// one before '[', which is taken for a style and left alone.
func literal(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		j := i
		for j < len(text) && text[j] == '#' {
			j++
		}
		b.WriteString(text[i:j])
		if j == len(text) || text[j] != '[' {
			b.WriteString(text[i:j])
		}
		if j < len(text) {
			b.WriteByte(text[j])
			j++
		}
		i = j
	}
	return b.String()
}

// Kill ends the session of a pane with every process in it: tmux hangs up
// first, then what has not ended within two seconds is killed. A pane that is
// gone is no error. Without an answer from tmux nothing is ended.
func (s *Server) Kill(ctx context.Context, pane string) error {
	if err := validPane(pane); err != nil {
		return err
	}
	lines, err := s.run(ctx, command{"list-panes", "-s", "-t", pane, "-F", "#{pane_pid} #{pane_dead} #{session_name}"})
	if errors.Is(err, ErrGone) || errors.Is(err, ErrNoServer) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop pane %s: %w", pane, err)
	}
	var trees []proc.Tree
	for _, l := range lines {
		fields := strings.SplitN(l, " ", 3)
		if len(fields) != 3 {
			return fmt.Errorf("stop pane %s: tmux answered %q", pane, clip(l))
		}
		if fields[2] == hubSession {
			return fmt.Errorf("stop pane %s: it is not a slot's", pane)
		}
		pid, err := strconv.Atoi(fields[0])
		if err != nil || pid <= 1 || fields[1] == "1" {
			continue // its program has ended; the number may be a stranger's
		}
		// A pane's program leads a session of its own. Its start time is read
		// while tmux holds it as a child, so the number is still its own.
		start, err := proc.StartTime(pid)
		if err != nil {
			continue
		}
		tree := proc.Tree{PID: pid, Start: start}
		tree.Also, _ = proc.Members(tree) // empty where the system has no process table
		trees = append(trees, tree)
	}
	if _, err := s.run(ctx, command{"kill-session", "-t", pane}); err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, ErrNoServer) {
		return fmt.Errorf("stop pane %s: %w", pane, err)
	}
	var left []error
	for _, tree := range trees {
		if _, err := proc.EndTree(tree, killGrace); err != nil {
			left = append(left, fmt.Errorf("stop pane %s: %w", pane, err))
		}
	}
	return errors.Join(left...)
}

// validPane accepts pane IDs alone: whatever else -t takes may match by prefix.
func validPane(pane string) error {
	digits, ok := strings.CutPrefix(pane, "%")
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return fmt.Errorf("%q is no pane ID", pane)
	}
	return nil
}
