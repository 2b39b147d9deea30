package fleet

import (
	"context"
	"fmt"
	"time"
)

// EmptyTrash removes for good what was moved to the trash before a time: the
// conversations, from the index too, the shell logs, and then the slots and
// cells themselves, whose names stay taken. It returns how many slots went. In
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
	trash, err := f.o.Store.Trash(ctx)
	if err != nil {
		return 0, err
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
	for _, t := range trash {
		if t.Slot != WholeCell || !t.Deleted.Before(before) {
			continue
		}
		if err := f.forgetShell(ctx, t.Cell, WholeCell); err != nil {
			return 0, err
		}
	}
	gone, err := f.o.Store.Purge(ctx, before)
	return len(gone), err
}

func (f *Fleet) forgetShell(ctx context.Context, cell string, slot int) error {
	if f.o.ForgetShell == nil {
		return nil
	}
	return f.o.ForgetShell(ctx, cell, slot)
}
