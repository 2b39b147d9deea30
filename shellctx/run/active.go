package run

import (
	"context"
	"fmt"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// Active is an execution of which something runs: its foreground (State is
// Running), or what it left in the background (Leftover).
type Active struct {
	Execution
	Elsewhere bool // in another cellmux on this database
	guest     bool
}

// Active lists what runs, of every living process that shares the database, the
// oldest first. What another process left in the background is counted as of its
// return.
func (s *Service) Active(ctx context.Context) ([]Active, error) {
	rows, err := s.store.list(ctx, "WHERE handed = 0 OR leftover > 0 ORDER BY seq")
	if err != nil {
		return nil, fmt.Errorf("list the commands that run: %w", err)
	}
	var list []Active
	for _, r := range rows {
		if r.State != Running && r.Leftover == 0 || !s.lives(r.owner) {
			continue
		}
		a := Active{Execution: r.Execution, Elsewhere: r.owner != s.store.owner, guest: r.guest}
		if !a.Elsewhere {
			s.mu.Lock()
			x, left := s.running[a.ID], s.jobs[a.ID]
			s.mu.Unlock()
			switch {
			case x != nil:
				a.Execution = x.Execution()
			case left != nil:
				a.Leftover = left.count()
			}
			if a.State != Running && a.Leftover == 0 {
				continue // it has ended meanwhile
			}
		}
		list = append(list, a)
	}
	return list, nil
}

// End ends an active execution with all that it started, and returns when its
// processes have ended, after at most a few seconds. One of another process is
// ended by its processes alone: that process records what became of it. cell
// finds the cell of an execution in a guest. An ID that nothing runs for is an
// error.
func (s *Service) End(ctx context.Context, id string, cell func(name string) (engine.Cell, error)) error {
	s.mu.Lock()
	x, left := s.running[id], s.jobs[id]
	s.mu.Unlock()
	switch {
	case x != nil:
		x.Cancel()
		ctx, cancel := context.WithTimeout(ctx, endTimeout)
		defer cancel()
		if _, err := x.Wait(ctx); ctx.Err() != nil {
			return fmt.Errorf("end the command %q: %w", id, err)
		}
		return nil
	case left != nil:
		return s.KillJob(id)
	}
	list, err := s.Active(ctx)
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.ID != id {
			continue
		}
		if a.guest {
			c, err := cell(a.Cell)
			if err != nil {
				return err
			}
			eng, err := s.engine(c)
			if err != nil {
				return err
			}
			return eng.End(ctx, c, id)
		}
		if _, err := proc.EndTree(proc.Tree{Marker: id}, recoverGrace); err != nil {
			return fmt.Errorf("end the processes of %q: %w", id, err)
		}
		return nil
	}
	return fmt.Errorf("nothing runs for %q; :jobs and cellmux jobs list what does", id)
}
