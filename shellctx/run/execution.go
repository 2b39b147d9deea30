package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"cellmux/shellctx/shell"
)

// Why an execution was ended.
var (
	errCancelled = errors.New("cancelled")
	errTooMuch   = errors.New("ended: it printed too much")
	errNoScreen  = errors.New("ended: it needs a terminal; ctrl-t runs it in a new pane")
)

// execution is the Handle of one that runs.
type execution struct {
	seq     int64 // of its row
	request Request
	key     key
	ctx     context.Context
	cancel  context.CancelCauseFunc
	rec     *recorder
	exited  chan struct{} // closed when the exit code is known
	done    chan struct{} // closed when the record is stored

	mu  sync.Mutex
	e   Execution
	err error
}

var _ Handle = (*execution)(nil)

func (s *Service) newExecution(e Execution, seq int64, r Request, k key) *execution {
	x := &execution{seq: seq, request: r, key: k, e: e, exited: make(chan struct{}), done: make(chan struct{})}
	x.ctx, x.cancel = context.WithCancelCause(s.ctx)
	var open func() (*spill, error)
	if s.opts.SpillDir != "" {
		open = func() (*spill, error) { return newSpill(s.opts.SpillDir, e.ID, s.opts.Limits.Disk) }
	}
	x.rec = newRecorder(s.opts.Limits.Produced, open, func() { x.cancel(errTooMuch) })
	x.rec.fullScreen = newScreenWatch(func() { x.cancel(errNoScreen) })
	return x
}

// hide asks for the secrets of an execution. It comes after its environment was
// asked for, which may be what resolves them, and before anything is printed.
func (s *Service) hide(x *execution) {
	if s.opts.Secrets != nil {
		x.rec.hide(s.opts.Secrets(x.request.Cell, x.request.Slot))
	}
}

// Execution implements Handle.
func (x *execution) Execution() Execution {
	x.mu.Lock()
	e := x.e
	x.mu.Unlock()
	if e.State == Running {
		e.Record.OutputBytes, e.Lines = x.rec.count()
	}
	return e
}

// Chunks implements Handle.
func (x *execution) Chunks() <-chan Chunk { return x.rec.screen.chunks }

// Cancel implements Handle.
func (x *execution) Cancel() { x.cancel(errCancelled) }

// knowsExit is called once, as soon as there is an exit code.
func (x *execution) knowsExit(code int) {
	x.mu.Lock()
	x.e.Record.ExitCode = code
	x.mu.Unlock()
	close(x.exited)
	// Who waits for it goes first: storing the record takes longer than the
	// command may have.
	runtime.Gosched()
}

// Exited is closed once the exit code is known, a moment before the output is
// complete and the record stored.
func (x *execution) Exited() <-chan struct{} { return x.exited }

// Wait implements Handle.
func (x *execution) Wait(ctx context.Context) (Execution, error) {
	select {
	case <-x.done:
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.e, x.err
	case <-ctx.Done():
		return x.Execution(), ctx.Err()
	}
}

// ending is how the program or the line itself ended.
type ending struct {
	code      int
	started   bool
	cancelled bool
	problem   string // a sentence for the record; "" for an ordinary end
	note      string
	directory string // where the shell stands now; "" unchanged or unknown
	left      *leftovers
}

// finish makes the record of an execution that has ended, and stores it.
func (s *Service) finish(x *execution, end ending) {
	select {
	case <-x.exited:
	default:
		x.knowsExit(end.code)
	}
	res := x.rec.finish()

	x.mu.Lock()
	e := &x.e
	e.Ended = s.opts.Now()
	e.Lines = res.lines
	e.Spill = res.spill
	e.Record.Output, e.Record.OutputTruncated = res.text, res.cut
	e.Record.OutputBytes = int(res.produced)
	e.Record.ExitCode = end.code
	e.Record.Error = end.problem
	e.Note = join(e.Note, end.note)
	switch {
	case !end.started:
		e.State = NeverStarted
	case end.cancelled:
		e.State = Cancelled
		switch cause := context.Cause(x.ctx); {
		case errors.Is(cause, errTooMuch):
			e.Record.Error = fmt.Sprintf("ended after %s of output", size(s.opts.Limits.Produced))
		case errors.Is(cause, errNoScreen):
			e.Record.Error = errNoScreen.Error()
		default:
			e.Record.Error = errCancelled.Error()
		}
	default:
		e.State = Exited
		if res.screen {
			e.Note = join(e.Note, "it draws a full screen: ctrl-t runs it in a new pane, where there is a terminal")
		}
	}
	if end.left != nil {
		e.Leftover = end.left.count()
	}
	if res.diskError != nil {
		e.Note = join(e.Note, "not all output could be kept on disk: "+res.diskError.Error())
	}
	stored := *e
	x.mu.Unlock()

	err := s.record(x.seq, stored, end.directory)
	if end.left != nil {
		s.follow(x, end.left)
	}
	x.mu.Lock()
	x.err = err
	x.mu.Unlock()
	if end.left == nil {
		x.cancel(nil) // what was left running lives on the same context
	}
	close(x.done)
	if res.disk != nil {
		if res.diskError == nil {
			if err := res.disk.straighten(); err != nil {
				s.opts.Log.Error("keep output", "id", stored.ID, "error", err)
			}
		}
		res.disk.close()
	}
}

// recordTimeout bounds the storing of a record; another process may hold the
// database for as long as its own transaction takes.
const recordTimeout = 30 * time.Second

// record stores the end of an execution and hands it over. It does not hang on
// the execution's context: what was cancelled is recorded too.
func (s *Service) record(seq int64, e Execution, directory string) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	first, err := s.store.end(ctx, seq, e, directory)
	if err != nil {
		s.opts.Log.Error("record execution", "id", e.ID, "error", err)
		return err
	}
	if !first {
		return nil
	}
	return s.hand(ctx, seq, e)
}

// hand gives a stored record to its conversation, and notes that it did.
func (s *Service) hand(ctx context.Context, seq int64, e Execution) error {
	if e.Mode == Private {
		return nil
	}
	if s.opts.OnRecord != nil {
		if err := s.opts.OnRecord(ctx, e); err != nil {
			s.opts.Log.Error("hand record to conversation", "id", e.ID, "error", err)
			return fmt.Errorf("the command is recorded, but not in the conversation: %w", err)
		}
	}
	return s.store.handed(ctx, seq)
}

func join(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a + "; " + b
}

func size(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// outcome reads a shell's error.
func outcome(err error) ending {
	end := ending{code: shell.ExitCode(err), started: true}
	switch {
	case err == nil:
	case end.code == shell.NotStarted:
		end.started, end.problem = false, err.Error()
	case shell.IsInterrupt(err):
		end.cancelled = true
	case shell.IsSyntax(err):
		end.problem = err.Error()
	}
	return end
}
