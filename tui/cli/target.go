package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"cellmux/engine/fleet"
)

// snapshot is the list as of now; a tmux that gives no answer is told once.
func (c *commands) snapshot(ctx context.Context) (*App, fleet.Snapshot, error) {
	app, err := c.app(ctx)
	if err != nil {
		return nil, fleet.Snapshot{}, err
	}
	snap, err := app.Fleet.Refresh(ctx)
	if err != nil {
		return nil, fleet.Snapshot{}, err
	}
	return app, snap, nil
}

// namedCell finds the cell that the only argument names, or that of the current
// directory.
func (c *commands) namedCell(ctx context.Context, given []string) (*App, fleet.Ref, error) {
	app, snap, err := c.snapshot(ctx)
	if err != nil {
		return nil, fleet.Ref{}, err
	}
	ref, err := c.target(snap, first(given))
	return app, ref, err
}

// target finds what an argument names: CELL:SLOT, CELL, a directory, or "" for
// the current directory. The Slot of the answer is WholeCell where the argument
// named no slot.
func (c *commands) target(snap fleet.Snapshot, text string) (fleet.Ref, error) {
	if dir, isDir := c.directory(text); isDir {
		cell, err := cellOf(snap, dir)
		if err != nil {
			return fleet.Ref{}, err
		}
		return fleet.Ref{Cell: cell.Name, Slot: fleet.WholeCell}, nil
	}
	ref, err := fleet.ParseRef(text)
	if err != nil {
		return fleet.Ref{}, exit{code: ExitUsage, err: err}
	}
	cell, found := find(snap, ref.Cell)
	if !found {
		return fleet.Ref{}, fmt.Errorf("cell %q: %w; cellmux ls shows what there is, cellmux new makes one", ref.Cell, fleet.ErrNotFound)
	}
	if ref.Slot == fleet.WholeCell {
		return ref, nil
	}
	for _, s := range cell.Slots {
		if s.Ref == ref {
			return ref, nil
		}
	}
	return fleet.Ref{}, fmt.Errorf("slot %s: %w; cellmux ls %s shows the slots", ref, fleet.ErrNotFound, ref.Cell)
}

// slot is target for commands that act on one slot: CELL alone is enough where
// the cell has exactly one.
func (c *commands) slot(snap fleet.Snapshot, text string) (fleet.Slot, error) {
	ref, err := c.target(snap, text)
	if err != nil {
		return fleet.Slot{}, err
	}
	cell, _ := find(snap, ref.Cell)
	var open []fleet.Slot
	for _, s := range cell.Slots {
		if s.Ref == ref {
			return s, nil
		}
		if !s.Archived {
			open = append(open, s)
		}
	}
	switch len(open) {
	case 1:
		return open[0], nil
	case 0:
		return fleet.Slot{}, fmt.Errorf("cell %q has no slot: %w; cellmux open %s opens one", ref.Cell, fleet.ErrNotFound, ref.Cell)
	}
	names := make([]string, len(open))
	for i, s := range open {
		names[i] = s.Ref.String()
	}
	return fleet.Slot{}, usagef("cell %q has %d slots, name one: %s", ref.Cell, len(open), strings.Join(names, ", "))
}

// directory tells whether an argument is a path: cell names hold no slash and
// no dot.
func (c *commands) directory(text string) (string, bool) {
	switch {
	case text == "":
		return c.Dir, true
	case text == "~" || strings.HasPrefix(text, "~/"):
		return filepath.Join(c.Getenv("HOME"), strings.TrimPrefix(text, "~")), true
	case strings.ContainsAny(text, "/."):
		if filepath.IsAbs(text) {
			return filepath.Clean(text), true
		}
		return filepath.Join(c.Dir, text), true
	}
	return "", false
}

// cellOf finds the cell of a directory: the one whose project holds it most
// closely. Offered cells are not in the database yet and do not count.
func cellOf(snap fleet.Snapshot, dir string) (fleet.Cell, error) {
	if dir == "" {
		return fleet.Cell{}, usagef("the current directory is gone; name a cell")
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	var best fleet.Cell
	for _, cell := range snap.Cells {
		if cell.Offered || cell.Archived || !within(cell.ProjectDir, dir) {
			continue
		}
		if best.Name == "" || len(cell.ProjectDir) > len(best.ProjectDir) {
			best = cell
		}
	}
	if best.Name == "" {
		return fleet.Cell{}, fmt.Errorf("no cell for %s: %w; cellmux new makes one", dir, fleet.ErrNotFound)
	}
	return best, nil
}

func within(parent, dir string) bool {
	rel, err := filepath.Rel(parent, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

func find(snap fleet.Snapshot, name string) (fleet.Cell, bool) {
	for _, cell := range snap.Cells {
		if cell.Name == name && !cell.Offered {
			return cell, true
		}
	}
	return fleet.Cell{}, false
}

func findSlot(snap fleet.Snapshot, ref fleet.Ref) (fleet.Slot, bool) {
	cell, _ := find(snap, ref.Cell)
	for _, s := range cell.Slots {
		if s.Ref == ref {
			return s, true
		}
	}
	return fleet.Slot{}, false
}
