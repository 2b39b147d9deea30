package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	loaded map[string]*loadedProject // by directory; "" is every one without a file
}

// loadedProject remembers an answer until one of its files changes. Where there
// is a project's file it is looked at again after a moment, too: another cellmux
// may have approved it, or taken the approval back.
type loadedProject struct {
	effective *cfg.Effective
	err       error
	stamps    []stamp // of the user's file, then of the project's
	at        time.Time
	shown     func() projectAnswer
}

// projectAnswer is what Load gives.
type projectAnswer struct {
	config            cfg.CellConfig
	problem, approval string
}

// stamp tells one content of a file from another; nil is no file.
type stamp struct{ os.FileInfo }

// stampOf follows a symbolic link; missing says that there is not even that.
func stampOf(file string) (_ stamp, missing bool) {
	info, err := os.Lstat(file)
	if err != nil {
		return stamp{}, errors.Is(err, os.ErrNotExist)
	}
	if info.Mode()&os.ModeSymlink != 0 {
		info, _ = os.Stat(file)
	}
	return stamp{info}, false
}

func (s stamp) same(o stamp) bool {
	if s.FileInfo == nil || o.FileInfo == nil {
		return s.FileInfo == o.FileInfo
	}
	return s.Size() == o.Size() && s.ModTime().Equal(o.ModTime()) && os.SameFile(s.FileInfo, o.FileInfo)
}

// verdictFor is how long a project's file counts as approved, or not, without
// another look. A launch always looks.
const verdictFor = time.Second

var _ Projects = (*ProjectFiles)(nil)

func (p *ProjectFiles) load(dir string) (*cfg.Effective, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.look(dir)
	if known.err != nil || known.effective.BaseDir == dir {
		return known.effective, known.err
	}
	return known.effective.In(dir), nil
}

// look returns what is known of a directory, read anew where it must be. Those
// without a file of their own share one answer. p.mu is held.
func (p *ProjectFiles) look(dir string) *loadedProject {
	global, _ := stampOf(p.Global)
	stamps := []stamp{global}
	if dir != "" {
		alone := true
		for _, name := range cfg.ProjectFileNames() {
			s, missing := stampOf(filepath.Join(dir, name))
			stamps = append(stamps, s)
			alone = alone && missing
		}
		if alone {
			dir, stamps = "", stamps[:1]
		}
	}
	if known := p.loaded[dir]; known != nil && slices.EqualFunc(known.stamps, stamps, stamp.same) {
		settled := known.err == nil && known.effective.ProjectFile == ""
		if settled || time.Since(known.at) < verdictFor {
			return known
		}
	}
	found := &loadedProject{stamps: stamps, at: time.Now()}
	found.effective, found.err = cfg.Load(cfg.Sources{
		GlobalFile: p.Global, ProjectDir: dir, Home: p.Home, Getenv: p.Getenv, Approvals: p.Approvals,
	})
	found.shown = sync.OnceValue(func() projectAnswer { return p.answer(found.effective, found.err) })
	if p.loaded == nil {
		p.loaded = map[string]*loadedProject{}
	}
	p.loaded[dir] = found
	return found
}

// forget makes the next look read everything.
func (p *ProjectFiles) forget(dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.loaded, dir)
	delete(p.loaded, "")
}

// Load implements Projects. A bad file gives the defaults and the problem.
func (p *ProjectFiles) Load(_ context.Context, dir string) (config cfg.CellConfig, problem, approval string) {
	p.mu.Lock()
	known := p.look(dir)
	p.mu.Unlock()
	a := known.shown()
	return a.config, a.problem, a.approval
}

func (p *ProjectFiles) answer(effective *cfg.Effective, err error) projectAnswer {
	if err != nil {
		return projectAnswer{problem: strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	// Nothing of it is executed, so that nothing needs to end it.
	a := projectAnswer{config: p.expanded(context.Background(), effective)}
	if effective.Pending != nil && len(effective.Pending.Waiting) > 0 {
		a.approval = effective.Pending.Summary()
	}
	return a
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
