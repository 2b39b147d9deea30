package fleet

import (
	"context"
	"fmt"
	"time"

	"cellmux/cell/state"
	"cellmux/engine"
)

// Repository reads a cell's git state (cell/git, hardened). nil where there is
// none; every method obeys its context's deadline.
type Repository interface {
	// Short is the state of a working tree in a few characters: "clean",
	// "+48-12 ^2"; "" where it is no repository.
	Short(ctx context.Context, dir string) (string, error)
	// Diff is the uncommitted work as a unified diff without escapes.
	Diff(ctx context.Context, dir string) (string, error)
}

// gitDeadline bounds one look at a repository: a huge one, or one on a network,
// must not hold anything up.
const gitDeadline = 5 * time.Second

// Selected tells which row the user looks at, so that its cell's git state is
// read; it is never read on a timer. The answer arrives with a later list.
func (f *Fleet) Selected(ctx context.Context, r Ref) error {
	return f.readGit(ctx, r.Cell)
}

// turnEnded reads the git state of a cell whose agent has finished, in a
// goroutine that its deadline ends: the list must not wait for git.
func (f *Fleet) turnEnded(cell string) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), gitDeadline)
		defer cancel()
		if err := f.readGit(ctx, cell); err != nil {
			f.o.Log.Warn("git state", "cell", cell, "error", err.Error())
		}
	}()
}

func (f *Fleet) readGit(ctx context.Context, name string) error {
	if f.o.Git == nil {
		return nil
	}
	c, err := f.cell(ctx, name)
	if err != nil || !onHost(c) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, gitDeadline)
	defer cancel()
	short, err := f.o.Git.Short(ctx, c.ProjectDir)
	if err != nil {
		short = "" // unknown, never "clean"
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
	if !onHost(c) {
		return "", fmt.Errorf("the diff of %s is read inside its guest, with git diff there", cell)
	}
	ctx, cancel := context.WithTimeout(ctx, gitDeadline)
	defer cancel()
	return f.o.Git.Diff(ctx, c.ProjectDir)
}

// onHost tells that git may run on the host: a repository that a guest can write
// is hostile to it (DESIGN.md section 8).
func onHost(c state.Cell) bool { return c.Engine == string(engine.Host) }
