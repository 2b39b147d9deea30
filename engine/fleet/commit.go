package fleet

import (
	"context"
	"errors"
	"fmt"

	"cellmux/cell"
	"cellmux/cell/cfg"
	"cellmux/cell/git"
	"cellmux/cell/state"
)

// Commits commits the work of guests on the host, without running anything of a
// repository (git.Committer).
type Commits interface {
	Propose(ctx context.Context, dir string) (git.Proposal, error)
	Commit(ctx context.Context, dir string, shown git.Proposal, message string, by git.Identity) (commit string, err error)
	// UserSetting reads the user's own configuration of git, "" where it says nothing.
	UserSetting(ctx context.Context, key string) string
}

// Proposal is what a commit of a cell's work would be. Its diff, branch and notes
// hold names and text of the guest's.
type Proposal = git.Proposal

// commitsOnHost tells whether a cell's own git can read and not write: its work
// is committed here.
func (f *Fleet) commitsOnHost(ctx context.Context, c state.Cell) bool {
	return f.commitsOn(f.configOf(ctx, c))
}

func (f *Fleet) commitsOn(told cfg.Config) bool {
	return f.o.Commits != nil && told.Guest.Git == cfg.GitReadOnly
}

// committed is a cell whose work is committed on the host, else why not.
func (f *Fleet) committed(ctx context.Context, name string) (state.Cell, error) {
	c, err := f.cell(ctx, name)
	switch {
	case err != nil:
		return state.Cell{}, err
	case f.o.Commits == nil:
		return state.Cell{}, fmt.Errorf("commit the work of %s: %w", name, ErrUnavailable)
	case !f.commitsOnHost(ctx, c):
		return state.Cell{}, fmt.Errorf("commit the work of %s: its own git can, if any can: let its agent commit, or use git there; cellmux commits for cells in a linked working tree that is read-only inside", name)
	}
	return c, nil
}

// Proposal shows what Commit would commit for a cell. It changes nothing.
func (f *Fleet) Proposal(ctx context.Context, name string) (Proposal, error) {
	c, err := f.committed(ctx, name)
	if err != nil {
		return Proposal{}, err
	}
	return f.o.Commits.Propose(ctx, c.ProjectDir)
}

// Commit commits a cell's work as Proposal showed it, in the user's name, and
// returns the commit. What has changed since is refused with git.ErrChanged.
func (f *Fleet) Commit(ctx context.Context, name string, shown Proposal, message string) (string, error) {
	c, err := f.committed(ctx, name)
	if err != nil {
		return "", err
	}
	config, _, _ := f.o.Projects.Load(ctx, c.ProjectDir)
	who := cell.ResolveGitIdentity(f.o.Getenv, config.Git, func(key string) string { return f.o.Commits.UserSetting(ctx, key) })
	if who.Source == cell.GitSourceDefault {
		return "", errors.New("git does not know who you are: git config --global user.name and user.email say it")
	}
	commit, err := f.o.Commits.Commit(ctx, c.ProjectDir, shown, message, git.Identity{
		AuthorName: who.AuthorName, AuthorEmail: who.AuthorEmail,
		CommitterName: who.CommitterName, CommitterEmail: who.CommitterEmail,
	})
	f.readGitLater(name)
	return commit, f.did("commit the work of "+name, err)
}
