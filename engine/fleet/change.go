package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"cellmux/cell/state"
)

// undoLimit is how far back an action can be undone.
const undoLimit = 10 * time.Minute

// Stop ends a slot's program; its conversation stays. It is undoable.
func (f *Fleet) Stop(ctx context.Context, r Ref) error {
	return f.did("stop "+r.String(), f.stop(ctx, r))
}

func (f *Fleet) stop(ctx context.Context, r Ref) error {
	if _, _, err := f.cellAndSlot(ctx, r); err != nil {
		return err
	}
	// The row is changed after the pane has gone: a slot that could not be
	// stopped must not be called stopped.
	if err := f.endPanes(ctx, r); err != nil {
		return err
	}
	f.restQuietly(ctx, r.Cell)
	return f.o.Store.SetStopped(ctx, r.Cell, r.Slot, true)
}

// Delete moves a slot, or with Slot WholeCell its cell, to the trash, and ends
// what runs there. It is undoable; the project directory is not touched.
func (f *Fleet) Delete(ctx context.Context, r Ref) error {
	return f.did("delete "+r.String(), f.delete(ctx, r))
}

func (f *Fleet) delete(ctx context.Context, r Ref) error {
	if r.Slot == WholeCell {
		c, err := f.cell(ctx, r.Cell)
		if err != nil {
			return err
		}
		if err := f.endPanes(ctx, r); err != nil {
			return err
		}
		if err := f.down(ctx, c); err != nil {
			return err
		}
		return f.o.Store.DeleteCell(ctx, r.Cell)
	}
	if _, _, err := f.cellAndSlot(ctx, r); err != nil {
		return err
	}
	if err := f.endPanes(ctx, r); err != nil {
		return err
	}
	f.restQuietly(ctx, r.Cell)
	return f.o.Store.DeleteSlot(ctx, r.Cell, r.Slot)
}

// down stops a cell's guest; a host cell has none.
func (f *Fleet) down(ctx context.Context, c state.Cell) error {
	for _, e := range f.o.Engines {
		if string(e.Kind()) == c.Engine {
			if err := e.Down(ctx, f.engineCell(ctx, c)); err != nil {
				return fmt.Errorf("stop the guest of %s: %w", c.Name, err)
			}
		}
	}
	return nil
}

// Undo takes the newest undoable action back and says which. Undoing a stop
// starts the slot again, in its conversation.
func (f *Fleet) Undo(ctx context.Context) (string, error) {
	action, err := f.o.Store.Undo(ctx, f.o.Now().Add(-undoLimit))
	if errors.Is(err, state.ErrNothingToUndo) {
		return "", fmt.Errorf("nothing of the last %d minutes can be undone", int(undoLimit.Minutes()))
	}
	if err != nil {
		return "", f.did("undo", err)
	}
	ref := Ref{Cell: action.Cell, Slot: action.Slot}
	said := fmt.Sprintf("undid: %s %s", action.Kind, ref)
	if action.Kind == state.Stop {
		if err := f.restart(ctx, ref); err != nil {
			return "", f.did(said, fmt.Errorf("%s is no longer called stopped, but it could not be started: %w", ref, err))
		}
	}
	return said, f.did(said, nil)
}

// Restore takes a slot or a cell out of the trash.
func (f *Fleet) Restore(ctx context.Context, r Ref) error {
	err := f.o.Store.Restore(ctx, r.Cell, r.Slot)
	if errors.Is(err, state.ErrNoCell) || errors.Is(err, state.ErrNoSlot) {
		err = fmt.Errorf("%s is not in the trash: %w", r, ErrNotFound)
	}
	return f.did("restore "+r.String(), err)
}

// Trash lists what can be restored, newest first.
func (f *Fleet) Trash(ctx context.Context) ([]Trashed, error) {
	rows, err := f.o.Store.Trash(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Trashed, len(rows))
	for i, row := range rows {
		out[i] = Trashed{Ref: Ref{Cell: row.Cell, Slot: row.Slot}, Title: row.Title, Deleted: row.Deleted}
	}
	return out, nil
}

// Rename changes a title; names are fixed.
func (f *Fleet) Rename(ctx context.Context, r Ref, title string) error {
	var err error
	if r.Slot == WholeCell {
		err = f.o.Store.RenameCell(ctx, r.Cell, title)
	} else {
		err = f.o.Store.RenameSlot(ctx, r.Cell, r.Slot, title)
	}
	return f.did("rename "+r.String(), missing(r, err))
}

// Pin pins or unpins a cell.
func (f *Fleet) Pin(ctx context.Context, cell string, pinned bool) error {
	return f.did("pin "+cell, missing(Ref{cell, WholeCell}, f.o.Store.PinCell(ctx, cell, pinned)))
}

// Archive puts a cell or slot away, or takes it back. What runs there runs on.
func (f *Fleet) Archive(ctx context.Context, r Ref, archived bool) error {
	var err error
	if r.Slot == WholeCell {
		err = f.o.Store.ArchiveCell(ctx, r.Cell, archived)
	} else {
		err = f.o.Store.ArchiveSlot(ctx, r.Cell, r.Slot, archived)
	}
	return f.did("archive "+r.String(), missing(r, err))
}

func missing(r Ref, err error) error {
	if errors.Is(err, state.ErrNoCell) || errors.Is(err, state.ErrNoSlot) {
		return fmt.Errorf("%s: %w", r, ErrNotFound)
	}
	return err
}

// Interrupt stops a running turn and nothing else, with the agent's own keys. A
// question that is open they reject, in all agents that were verified.
func (f *Fleet) Interrupt(ctx context.Context, r Ref) error {
	return f.did("interrupt "+r.String(), f.interrupt(ctx, r))
}

func (f *Fleet) interrupt(ctx context.Context, r Ref) error {
	_, s, err := f.cellAndSlot(ctx, r)
	if err != nil {
		return err
	}
	a, known := f.o.Agents.Lookup(s.Agent)
	if !known {
		return fmt.Errorf("interrupt %s: no agent is called %q", r, s.Agent)
	}
	list := f.o.Server.Refresh(ctx)
	if !list.Known {
		return fmt.Errorf("interrupt %s: tmux is %w (%s)", r, ErrUnavailable, list.Err)
	}
	pane, has := panesBySlot(list)[r]
	if !has || pane.Dead {
		return fmt.Errorf("interrupt %s: no program runs there", r)
	}
	return a.Interrupt(ctx, func(ctx context.Context, key string) error {
		return f.o.Server.Keys(ctx, pane.ID, key)
	})
}

// CancelWork ends long work by its ID.
func (f *Fleet) CancelWork(_ context.Context, id string) error {
	return f.work.cancel(id)
}

// Approval says what of a cell's project file waits for the user.
func (f *Fleet) Approval(ctx context.Context, cell string) (Approval, error) {
	dir, err := f.projectDir(ctx, cell)
	if err != nil {
		return Approval{}, err
	}
	return f.o.Projects.Approval(ctx, cell, dir)
}

// Trust approves a cell's project file as Approval showed it: a file that has
// changed since is refused.
func (f *Fleet) Trust(ctx context.Context, cell, hash string) error {
	dir, err := f.projectDir(ctx, cell)
	if err != nil {
		return err
	}
	return f.did("approve the project file of "+cell, f.o.Projects.Approve(ctx, dir, hash))
}

// Revoke takes an approval back.
func (f *Fleet) Revoke(ctx context.Context, cell string) error {
	dir, err := f.projectDir(ctx, cell)
	if err != nil {
		return err
	}
	return f.did("revoke the project file of "+cell, f.o.Projects.Revoke(ctx, dir))
}

// projectDir is a cell's, or the offered cell's, or the directory itself that is
// named in place of a cell by its absolute path.
func (f *Fleet) projectDir(ctx context.Context, cell string) (string, error) {
	if filepath.IsAbs(cell) {
		return realDir(cell)
	}
	c, err := f.cell(ctx, cell)
	if err == nil {
		return c.ProjectDir, nil
	}
	if cells, listErr := f.o.Store.Cells(ctx); listErr == nil {
		if offer := f.offered(ctx, cells); offer != nil && offer.Name == cell {
			return offer.ProjectDir, nil
		}
	}
	return "", err
}
