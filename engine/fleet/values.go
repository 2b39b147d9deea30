package fleet

import (
	"context"

	"cellmux/cell"
	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/shellctx/shell"
)

// values gives the values of a cell's approved configuration to the opener.
type values struct {
	files   *ProjectFiles
	runner  proc.Runner
	environ []string
	show    bool
}

// Configs are the values for launches: references are expanded and secrets
// fetched, by the commands that an approved file names.
func (p *ProjectFiles) Configs(runner proc.Runner, environ []string) engine.Configs {
	return values{files: p, runner: runner, environ: environ}
}

// Shown are the values for a person to look at: nothing is executed, and secrets
// are masked.
func (p *ProjectFiles) Shown(environ []string) engine.Configs {
	return values{files: p, environ: environ, show: true}
}

// Values implements engine.Configs.
func (v values) Values(ctx context.Context, c engine.Cell) (engine.Values, error) {
	v.files.forget(c.ProjectDir) // what was approved a moment ago may be another file by now
	effective, err := v.files.load(c.ProjectDir)
	if err != nil {
		return engine.Values{}, err
	}
	resolved, err := cell.Resolve(ctx, cell.ResolveInput{
		Effective: effective, Runner: v.runner, Dir: c.ProjectDir, Environ: v.environ, Expand: shell.ExpandValue, Show: v.show,
	})
	if err != nil {
		return engine.Values{}, err
	}
	notes := resolved.Notes
	for _, notice := range effective.Notices {
		notes = append(notes, notice.String())
	}
	if effective.Pending != nil && len(effective.Pending.Waiting) > 0 {
		notes = append(notes, effective.Pending.Summary())
	}
	return engine.Values{
		Config: resolved.Config, BaseDir: effective.BaseDir, Env: resolved.Config.Env,
		Secrets: resolved.Secrets.Pairs(), Mask: resolved.Masked, Notes: notes,
	}, nil
}
