package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cellmux/cell/git"
)

// Repository reads a cell's git state without running anything of the
// repository's (git.Reader); every method obeys its context's deadline.
type Repository interface {
	State(ctx context.Context, dir string) (git.State, error)
	// Diff is the uncommitted work as a unified diff without escapes.
	Diff(ctx context.Context, dir string) (string, error)
}

// gitDeadline bounds one look at a repository: a huge one, or one on a network,
// must not hold anything up.
const gitDeadline = 5 * time.Second

// Selected tells which row the user looks at, so that its cell's git state is
// read; it is never read on a timer. The answer arrives with a later list.
func (f *Fleet) Selected(ctx context.Context, r Ref) error {
	f.carriers.ask()
	return f.readGit(ctx, r.Cell)
}

// readGitLater reads the git state of cells while Run runs, one after the other
// and without holding up the list.
func (f *Fleet) readGitLater(cells ...string) {
	f.background.start(func(ctx context.Context) {
		for _, cell := range cells {
			if err := f.readGit(ctx, cell); err != nil && ctx.Err() == nil {
				f.o.Log.Warn("git state", "cell", cell, "error", err.Error())
			}
		}
	})
}

func (f *Fleet) readGit(ctx context.Context, name string) error {
	if f.o.Git == nil {
		return nil
	}
	c, err := f.cell(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, gitDeadline)
	defer cancel()
	short := "" // unknown, never "clean"
	state, err := f.o.Git.State(ctx, c.ProjectDir)
	switch {
	case err == nil:
		short = state.String()
	case errors.Is(err, git.ErrNoRepository):
		err = nil
	}
	f.mu.Lock()
	changed := f.git[name] != short
	f.git[name] = short
	f.mu.Unlock()
	if changed {
		f.poke()
	}
	if err != nil {
		return fmt.Errorf("read the git state of %s: %w", name, err)
	}
	return nil
}

// Diff is the uncommitted work of a cell as a unified diff without escapes.
func (f *Fleet) Diff(ctx context.Context, cell string) (string, error) {
	c, err := f.cell(ctx, cell)
	if err != nil || f.o.Git == nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, gitDeadline)
	defer cancel()
	return f.o.Git.Diff(ctx, c.ProjectDir)
}
