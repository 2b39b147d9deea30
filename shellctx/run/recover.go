package run

import (
	"context"
	"fmt"
	"os"
	"time"

	"cellmux/cell/proc"
	"cellmux/shellctx/shell"
)

// recoverGrace is what left-over processes get between terminate and kill.
const recoverGrace = 500 * time.Millisecond

// Recovery is what Recover had to do.
type Recovery struct {
	Interrupted []Execution // were running when their cellmux ended
	Ended       int         // processes that they had left
}

// Recover takes care of what a cellmux left that ended without Close: executions
// that it ran are recorded as interrupted, with what they had printed; their
// processes are ended, as far as they are provably its own, by the marker in
// their environment; records that did not reach their conversation are handed
// over; output kept on disk is pruned (Limits). Executions of a cellmux that lives are left alone. It is called once,
// before the first Start; several processes may call it at once.
//
// Processes in a guest are not ended: their engine is asked when it is next up.
func (s *Service) Recover(ctx context.Context) (Recovery, error) {
	var did Recovery
	rows, err := s.store.list(ctx, "WHERE handed = 0 OR leftover > 0 ORDER BY seq")
	if err != nil {
		return did, fmt.Errorf("look for commands that were interrupted: %w", err)
	}
	for _, r := range rows {
		if s.lives(r.owner) {
			continue
		}
		if r.State == Running || r.Leftover > 0 {
			n, err := proc.EndTree(proc.Tree{Marker: r.ID}, recoverGrace)
			did.Ended += n
			if err != nil {
				s.opts.Log.Warn("end what an interrupted command left", "id", r.ID, "error", err)
			} else if r.State != Running {
				if err := s.store.left(ctx, r.seq, 0); err != nil {
					return did, err
				}
			}
		}
		switch {
		case r.State == Running:
			e := s.interrupted(r)
			first, err := s.store.end(ctx, r.seq, e, "")
			if err != nil {
				return did, err
			}
			if !first {
				continue // another process was faster
			}
			did.Interrupted = append(did.Interrupted, e)
			if err := s.hand(ctx, r.seq, e); err != nil {
				return did, err
			}
		case !r.handed:
			if err := s.hand(ctx, r.seq, r.Execution); err != nil {
				return did, err
			}
		}
	}
	if err := s.prune(ctx); err != nil {
		s.opts.Log.Warn("prune kept output", "error", err)
	}
	return did, nil
}

// lives tells whether the process that owns an execution is still there.
func (s *Service) lives(o owner) bool {
	if o == s.store.owner {
		return true
	}
	start, err := proc.StartTime(o.pid)
	return err == nil && start == o.start
}

// interrupted makes the record of an execution of which only the row and what
// was kept on disk are left.
func (s *Service) interrupted(r row) Execution {
	e := r.Execution
	e.State, e.Ended = Interrupted, s.opts.Now()
	e.Record.ExitCode = shell.NotStarted
	e.Record.Error = "interrupted: cellmux ended while it ran"
	e.Leftover = 0
	if e.Spill == "" {
		return e
	}
	kept, err := openSpill(e.Spill, s.opts.Limits.Disk)
	if err != nil {
		if !os.IsNotExist(err) {
			e.Note = join(e.Note, "what it printed cannot be read: "+err.Error())
		}
		e.Spill = "" // it had printed nothing
		return e
	}
	defer kept.close()
	e.Record.Output, e.Record.OutputTruncated = excerpt(kept)
	e.Record.OutputBytes = int(kept.size())
	e.Lines = countLines(kept)
	if err := kept.straighten(); err != nil {
		e.Note = join(e.Note, err.Error())
	}
	return e
}

// countLines counts in what was kept.
func countLines(o output) int {
	head, tail := o.kept()
	lines, last := 0, byte('\n')
	buf := make([]byte, 64<<10)
	for at := int64(0); at < o.size(); {
		if at == head {
			at = tail
		}
		end := o.size()
		if at < head {
			end = head
		}
		n, err := o.ReadAt(buf[:min(int64(len(buf)), end-at)], at)
		for _, b := range buf[:n] {
			if b == '\n' {
				lines++
			}
			last = b
		}
		at += int64(n)
		if err != nil || n == 0 {
			break
		}
	}
	if last != '\n' {
		lines++
	}
	return lines
}
