package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"cellmux/engine"
	"cellmux/shellctx/run"
)

// ShellEnv is the environment of `!` commands, and the secret values in it that
// must not come back in stored output. It is safe for concurrent use.
type ShellEnv struct {
	Opener Opener

	mu      sync.Mutex
	secrets map[string][]string // by cell, as of the last Env
}

// Env gives the environment of a slot's commands: the cell's, or with onHost the
// host's.
func (s *ShellEnv) Env(ctx context.Context, c engine.Cell, slot int, onHost bool) ([]string, error) {
	if onHost {
		c.Kind = engine.Host
	}
	// The cell's own shell (slot -1) sees the names of slot 0: it has no
	// conversation, but a cell name without a slot is no app name.
	env, err := s.Opener.Environment(ctx, engine.OpenRequest{Cell: c, Slot: max(slot, 0)})
	if err != nil {
		return nil, err
	}
	var values []string
	for _, v := range env.Why() {
		if v.Kept && v.Secret && v.Value != "" {
			values = append(values, v.Value)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secrets == nil {
		s.secrets = map[string][]string{}
	}
	s.secrets[c.Name] = values
	return engine.LastWins(env.Pairs()), nil
}

// Secrets are the secret values of the last Env of a cell.
func (s *ShellEnv) Secrets(c engine.Cell, _ int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secrets[c.Name]
}

// Shell runs `!` lines in cells. It is safe for concurrent use.
type Shell struct {
	fleet     *Fleet
	service   *run.Service
	recovered sync.Once
}

// NewShell returns the shell of a fleet's cells.
func NewShell(f *Fleet, service *run.Service) *Shell { return &Shell{fleet: f, service: service} }

// Start records and starts a line. On a whole cell it belongs to the cell's one
// agent slot; where there are none or several, to no conversation.
func (s *Shell) Start(ctx context.Context, r Ref, line string, mode run.Mode, onHost bool) (run.Handle, error) {
	request, err := s.request(ctx, r, onHost)
	if err != nil {
		return nil, err
	}
	s.recovered.Do(func() { // before the first start, what an earlier cellmux left
		if _, err := s.service.Recover(ctx); err != nil {
			s.fleet.o.Log.Warn("interrupted commands", "error", err.Error())
		}
	})
	request.Line, request.Mode = line, mode
	if request.Slot < 0 {
		request.Mode = run.Private
	}
	handle, err := s.service.Start(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("run in %s: %w", r, err)
	}
	return handle, nil
}

// request says where a line runs and whose it is.
func (s *Shell) request(ctx context.Context, r Ref, onHost bool) (run.Request, error) {
	c, err := s.fleet.cell(ctx, r.Cell)
	if err != nil {
		return run.Request{}, err
	}
	if r.Slot != WholeCell {
		if _, _, err := s.fleet.cellAndSlot(ctx, r); err != nil {
			return run.Request{}, err
		}
	} else if slots, err := s.fleet.o.Store.Slots(ctx); err != nil {
		return run.Request{}, err
	} else {
		talking := 0
		for _, slot := range slots {
			if a, known := s.fleet.o.Agents.Lookup(slot.Agent); slot.Cell == c.Name && !slot.Archived && known && a.TakesMessages() {
				talking++
				r.Slot = slot.Number
			}
		}
		if talking != 1 {
			r.Slot = WholeCell
		}
	}
	return run.Request{Cell: s.fleet.engineCell(ctx, c), Slot: r.Slot, OnHost: onHost}, nil
}

// Where is the prompt's text: "host ~/src/api", "docker:api-auth /src".
func (s *Shell) Where(ctx context.Context, r Ref, onHost bool) (string, error) {
	request, err := s.request(ctx, r, onHost)
	if err != nil {
		return "", err
	}
	dir, note := s.service.Directory(ctx, request.Cell, request.Slot, onHost)
	where := s.fleet.tilde(dir)
	if kind := request.Cell.Kind; kind == engine.Host || onHost {
		where = "host " + where
	} else {
		where = string(kind) + ":" + request.Cell.Name + " " + where
	}
	if note != "" {
		where += " (" + note + ")"
	}
	return where, nil
}

// tilde shortens the user's own home.
func (f *Fleet) tilde(dir string) string {
	if f.o.Home == "" {
		return dir
	}
	if dir == f.o.Home {
		return "~"
	}
	if rest, below := strings.CutPrefix(dir, f.o.Home+"/"); below {
		return "~/" + rest
	}
	return dir
}

// Log returns the last n executions of a slot, or of a cell's own shell, the
// oldest first.
func (s *Shell) Log(ctx context.Context, r Ref, n int) ([]run.Execution, error) {
	return s.service.Log(ctx, r.Cell, r.Slot, n)
}

// Jobs lists the `!` commands that run, and those that left something running,
// of every cellmux of this user, the oldest first.
func (s *Shell) Jobs(ctx context.Context) ([]Job, error) {
	active, err := s.service.Active(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Job, 0, len(active))
	for _, a := range active {
		out = append(out, Job{
			ID: a.ID, Ref: Ref{a.Cell, a.Slot}, Command: a.Record.Command, Started: a.Started,
			Running: a.State == run.Running, Background: a.Leftover, Elsewhere: a.Elsewhere,
		})
	}
	return out, nil
}

// KillJob ends a command, or what it left running.
func (s *Shell) KillJob(ctx context.Context, id string) error {
	return s.service.End(ctx, id, func(name string) (engine.Cell, error) {
		c, err := s.fleet.cell(ctx, name)
		if err != nil {
			return engine.Cell{}, err
		}
		return s.fleet.engineCell(ctx, c), nil
	})
}
