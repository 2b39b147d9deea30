package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"cellmux/shellctx/shell"
)

// leftovers are the background processes that a command left running. Their
// output is read on, so that a broken pipe does not end them, and kept apart
// from the record.
type leftovers struct {
	*shell.Leftover
	execution Execution
	mask      *masker
}

func (l *leftovers) count() int { return l.Count() }

// follow keeps leftovers until they end, or the Service closes and ends them.
func (s *Service) follow(x *execution, l *leftovers) {
	l.execution, l.mask = x.Execution(), x.rec.mask
	s.mu.Lock()
	s.jobs[l.execution.ID] = l
	s.mu.Unlock()
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		<-l.Done()
		x.cancel(nil)
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		defer cancel()
		if err := s.store.left(ctx, x.seq, 0); err != nil {
			s.opts.Log.Error("note the end of background processes", "id", l.execution.ID, "error", err)
		}
		s.mu.Lock()
		delete(s.jobs, l.execution.ID)
		s.mu.Unlock()
	}()
}

// Job is what one execution left running in the background.
type Job struct {
	ID        string // the execution's
	Cell      string
	Slot      int
	Command   string
	Started   time.Time
	Processes []shell.Process
	Output    string // what it printed since the command returned: head and tail, cleaned
}

// Jobs lists what commands of this process left running, the oldest first. It
// reads the system's process table.
func (s *Service) Jobs() []Job {
	s.mu.Lock()
	all := make([]*leftovers, 0, len(s.jobs))
	for _, l := range s.jobs {
		all = append(all, l)
	}
	s.mu.Unlock()
	var list []Job
	for _, l := range all {
		processes := l.List()
		if len(processes) == 0 {
			continue
		}
		e := l.execution
		list = append(list, Job{
			ID: e.ID, Cell: e.Cell, Slot: e.Slot, Command: e.Record.Command, Started: e.Started,
			Processes: processes, Output: Clean(l.mask.replace([]byte(l.Output()))),
		})
	}
	slices.SortFunc(list, func(a, b Job) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) })
	return list
}

// KillJob ends what an execution left running. It blocks for at most 2.5
// seconds. An ID that has nothing running is an error.
func (s *Service) KillJob(id string) error {
	s.mu.Lock()
	l := s.jobs[id]
	s.mu.Unlock()
	if l == nil {
		return fmt.Errorf("no background process belongs to %q; :jobs lists those that run", id)
	}
	l.End()
	if n := l.Count(); n > 0 {
		return fmt.Errorf("end the background processes of %q: %s", id, shell.LeftoverText(n))
	}
	return nil
}
