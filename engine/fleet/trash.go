package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cellmux/cell/state"
	"cellmux/engine"
	"cellmux/engine/docker"
)

// EmptyTrash removes for good what was moved to the trash before a time: the
// guests, the conversations, from the index too, the shell logs, and then the
// slots and cells themselves, whose names stay taken. It returns how many slots went. In
// this order an attempt that ends midway leaves nothing that a second does not
// find. Project directories and the agents' own files are not touched.
func (f *Fleet) EmptyTrash(ctx context.Context, before time.Time) (int, error) {
	n, err := f.emptyTrash(ctx, before)
	return n, f.did("empty the trash", err)
}

func (f *Fleet) emptyTrash(ctx context.Context, before time.Time) (int, error) {
	slots, err := f.o.Store.Expired(ctx, before)
	if err != nil {
		return 0, err
	}
	cells, err := f.o.Store.ExpiredCells(ctx, before)
	if err != nil {
		return 0, err
	}
	for _, c := range cells {
		if err := f.removeGuest(ctx, c); err != nil {
			return 0, fmt.Errorf("empty the trash: %w", err)
		}
	}
	for _, s := range slots {
		if f.o.Conversations != nil {
			if err := f.o.Conversations.Forget(ctx, s.SessionID); err != nil {
				return 0, fmt.Errorf("empty the trash: %w", err)
			}
		}
		if err := f.forgetShell(ctx, s.Cell, s.Number); err != nil {
			return 0, err
		}
	}
	for _, c := range cells {
		if err := f.forgetShell(ctx, c.Name, WholeCell); err != nil {
			return 0, err
		}
	}
	gone, err := f.o.Store.Purge(ctx, before)
	return len(gone), err
}

// removeGuest removes what carried a cell. Where the engine's program is gone from
// this machine nobody can be asked, and nobody waited for: it is left.
func (f *Fleet) removeGuest(ctx context.Context, c state.Cell) error {
	for _, e := range f.o.Engines {
		remover, can := e.(engine.Remover)
		if !can || string(e.Kind()) != c.Engine {
			continue
		}
		err := remover.Remove(ctx, f.engineCell(ctx, c))
		if errors.Is(err, docker.ErrNotInstalled) {
			f.o.Log.Warn("a guest was not removed", "cell", c.Name, "error", err.Error())
			continue
		}
		if err != nil {
			return fmt.Errorf("remove the guest of %s: %w", c.Name, err)
		}
	}
	return nil
}

func (f *Fleet) forgetShell(ctx context.Context, cell string, slot int) error {
	if f.o.ForgetShell == nil {
		return nil
	}
	return f.o.ForgetShell(ctx, cell, slot)
}
