package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cellmux/cell"
	"cellmux/cell/cfg"
	"cellmux/shellctx/shell"
)

// ProjectFiles reads the devcell.toml files: the user's own and each project's.
// It executes nothing and gives a project's file no effect that the user has
// not approved. It is safe for concurrent use.
type ProjectFiles struct {
	Global    string // path of the user's own file
	Home      string
	Getenv    func(string) string
	Approvals *cfg.ApprovalStore
	// Environ is the host's environment, for the references in what an engine
	// makes a cell of: volumes, ports, limits. nil leaves them unexpanded.
	Environ []string

	mu     sync.Mutex
	loaded map[string]loadedProject
}

// loadedProject remembers an answer until one of its files changes. Where there
// is a project's file it is looked at again after a moment, too: another cellmux
// may have approved it, or taken the approval back.
type loadedProject struct {
	effective       *cfg.Effective
	err             error
	global, project stamp
	at              time.Time
}

// stamp tells one content of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(file string) stamp {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size()}
}

// verdictFor is how long a project's file counts as approved, or not, without
// another look. A launch always looks.
const verdictFor = time.Second

var _ Projects = (*ProjectFiles)(nil)

func (p *ProjectFiles) load(dir string) (*cfg.Effective, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	global, project := stampOf(p.Global), stampOf(filepath.Join(dir, cfg.ProjectFileName))
	if known, has := p.loaded[dir]; has && known.global == global && known.project == project {
		settled := known.err == nil && known.effective.ProjectFile == ""
		if settled || time.Since(known.at) < verdictFor {
			return known.effective, known.err
		}
	}
	effective, err := cfg.Load(cfg.Sources{
		GlobalFile: p.Global, ProjectDir: dir, Home: p.Home, Getenv: p.Getenv, Approvals: p.Approvals,
	})
	if p.loaded == nil {
		p.loaded = map[string]loadedProject{}
	}
	p.loaded[dir] = loadedProject{effective, err, global, project, time.Now()}
	return effective, err
}

func (p *ProjectFiles) forget(dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.loaded, dir)
}

// Load implements Projects. A bad file gives the defaults and the problem.
func (p *ProjectFiles) Load(ctx context.Context, dir string) (config cfg.CellConfig, problem, approval string) {
	effective, err := p.load(dir)
	if err != nil {
		return cfg.CellConfig{}, strings.ReplaceAll(err.Error(), "\n", "; "), ""
	}
	if effective.Pending != nil && len(effective.Pending.Waiting) > 0 {
		approval = effective.Pending.Summary()
	}
	return p.expanded(ctx, effective), "", approval
}

// expanded expands what needs no command and no secret, and leaves the rest.
func (p *ProjectFiles) expanded(ctx context.Context, effective *cfg.Effective) cfg.CellConfig {
	if p.Environ == nil {
		return effective.Config()
	}
	resolved, err := cell.Resolve(ctx, cell.ResolveInput{
		Effective: effective, Dir: effective.BaseDir, Environ: p.Environ, Expand: shell.ExpandValue, Show: true,
	})
	if err != nil {
		return effective.Config()
	}
	return resolved.Config
}

// Check loads the files anew and returns every fault of them.
func (p *ProjectFiles) Check(dir string) error {
	p.forget(dir)
	_, err := p.load(dir)
	return err
}

// Approval implements Projects.
func (p *ProjectFiles) Approval(_ context.Context, name, dir string) (Approval, error) {
	p.forget(dir)
	effective, err := p.load(dir)
	if err != nil {
		return Approval{}, err
	}
	out := Approval{Cell: name, File: effective.ProjectFile}
	if effective.Pending == nil {
		return out, nil
	}
	out.File, out.Hash = effective.Pending.Path, effective.Pending.Hash
	for _, w := range effective.Pending.Waiting {
		line := w.Key + " = " + w.Text
		if w.Acts != "" {
			line += "  (" + w.Acts + ")"
		}
		out.Acts = append(out.Acts, line)
	}
	return out, nil
}

// ErrChanged says that a file is not the one that was shown.
var ErrChanged = errors.New("the file has changed since it was shown; look at it again")

// Approve implements Projects: it approves the content with that hash, and
// refuses when the file holds another by now.
func (p *ProjectFiles) Approve(_ context.Context, dir, hash string) error {
	p.forget(dir)
	effective, err := p.load(dir)
	if err != nil {
		return err
	}
	if effective.Pending == nil {
		return nil // it is approved, or there is none
	}
	if effective.Pending.Hash != hash {
		return fmt.Errorf("approve %s: %w", effective.Pending.Path, ErrChanged)
	}
	defer p.forget(dir)
	return p.Approvals.Approve(effective.Pending.Path, hash)
}

// Revoke implements Projects.
func (p *ProjectFiles) Revoke(_ context.Context, dir string) error {
	p.forget(dir)
	effective, err := p.load(dir)
	if err != nil {
		return err
	}
	if effective.ProjectFile == "" {
		return fmt.Errorf("%s has no project file: %w", dir, ErrNotFound)
	}
	defer p.forget(dir)
	return p.Approvals.Revoke(effective.ProjectFile)
}

// ApproveFile implements Projects.
func (p *ProjectFiles) ApproveFile(path, hash string) error {
	return p.Approvals.Approve(path, hash)
}
