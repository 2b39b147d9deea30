package fleet

import (
	"context"
	"os"
	"path/filepath"

	"cellmux/cell/git"
	"cellmux/cell/state"
	"cellmux/engine"
)

// offered is the directory in which cellmux was started, as a cell that does
// not exist yet; nil when it is one already, or cannot be one.
func (f *Fleet) offered(ctx context.Context, cells []state.Cell) *Cell {
	dir := f.o.Offer
	if dir == "" || engine.CheckProjectDir(dir) != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	taken := make(map[string]bool, len(cells))
	for _, c := range cells {
		if c.ProjectDir == dir {
			return nil
		}
		taken[c.Name] = true
	}
	found := f.lookAt(ctx, state.Cell{Engine: string(engine.Host), ProjectDir: dir})
	config := found.config
	kind, reason := string(engine.Host), "the default"
	if asked := config.Cell.Engine; asked != "" {
		kind, reason = asked, "asked for by [cell] engine"
	}
	name := state.BaseName(dir)
	if taken[name] {
		// Which number it gets is decided when it is made; until then the offer
		// must not be taken for the cell that has the name.
		name += "-new"
	}
	return &Cell{
		Name: name, Title: filepath.Base(dir), Workspace: DefaultWorkspace, ProjectDir: dir,
		Engine: kind, EngineReason: reason, Offered: true,
		Problem: found.problem, Approval: found.approval,
	}
}

// lookAt says what is wrong with a cell's project directory and its file, and
// what the file makes of the cell. It executes nothing.
func (f *Fleet) lookAt(ctx context.Context, c state.Cell) project {
	var found project
	found.config, found.problem, found.approval = f.o.Projects.Load(ctx, c.ProjectDir)
	err := engine.CheckProjectDir(c.ProjectDir)
	if err == nil {
		err = git.Redirected(c.ProjectDir)
	}
	if err != nil {
		found.problem, found.approval = err.Error(), ""
	}
	return found
}

// realDir is a project directory, absolute and without symbolic links, so that
// one directory is one cell whichever way it was reached.
func realDir(dir string) (string, error) {
	if err := engine.CheckProjectDir(dir); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", &os.PathError{Op: "resolve", Path: dir, Err: err}
	}
	return real, nil
}
