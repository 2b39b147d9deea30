package run

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/shellctx"
	"cellmux/shellctx/shell"
)

// Limits bound what one execution may cost.
type Limits struct {
	Disk     int64 // bytes of output kept on disk, half of it the head, half the tail; 0: 64 MiB
	Produced int64 // bytes of output at which the execution is ended; 0: 1 GiB, negative: none
	// What is kept on disk of all executions together, and for how long: Recover
	// removes the oldest beyond that. 0: 1 GiB and 30 days.
	KeepBytes int64
	KeepFor   time.Duration
}

// Options configures a Service. DB is required, and Engines and Runner for
// cells that are not on the host.
type Options struct {
	DB       *sql.DB
	Runner   proc.Runner
	Engines  func(engine.Kind) (engine.Engine, error)
	SpillDir string // absolute; "" keeps no more than the record
	// Env is the environment for a slot's commands, KEY=VALUE: the host's for
	// host cells and for onHost, else the guest's. It is asked once per slot and
	// side for the host, whose shell keeps it, and for each command of a guest.
	Env func(ctx context.Context, c engine.Cell, slot int, onHost bool) ([]string, error)
	// Secrets are values that must not appear in stored or shown output. Values
	// shorter than four bytes are not masked. It is asked before each command.
	Secrets func(c engine.Cell, slot int) []string
	// OnRecord takes a finished record into its conversation. It is called once
	// for each execution that is not private, and again, by Recover, when it
	// failed or cellmux ended before it returned: an execution's ID tells the
	// second time from the first. It must not call the Service.
	OnRecord func(ctx context.Context, e Execution) error
	Limits   Limits
	// Blocks refuse commands: in the interpreter call by call, in a guest and in
	// Program the whole line, when it spells out such a call.
	Blocks     []shell.BlockFunc
	BlockNames []string // of the rules, by position, for messages
	// Program is the user's own shell for commands on the host, a name or a
	// path; "" is the interpreter.
	Program string
	Now     func() time.Time
	Log     *slog.Logger
}

// Service runs executions. It is safe for concurrent use.
type Service struct {
	opts  Options
	store *store
	ctx   context.Context // ends the executions
	stop  context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running map[string]*execution
	jobs    map[string]*leftovers
	hosts   map[key]*hostShell
	guests  map[key]string // working directory
	program program
	wg      sync.WaitGroup // executions and what follows their leftovers
}

// key names a shell: that of a slot, on one side.
type key struct {
	cell   string
	slot   int
	onHost bool
}

// New returns a Service. Close must be called at the end.
func New(opts Options) *Service {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	opts.Limits.Disk = cmp.Or(opts.Limits.Disk, 64<<20)
	opts.Limits.Produced = cmp.Or(opts.Limits.Produced, 1<<30)
	opts.Limits.KeepBytes = cmp.Or(opts.Limits.KeepBytes, 1<<30)
	opts.Limits.KeepFor = cmp.Or(opts.Limits.KeepFor, 30*24*time.Hour)
	self := owner{pid: os.Getpid()}
	self.start, _ = proc.StartTime(self.pid)
	s := &Service{
		opts:    opts,
		store:   &store{db: opts.DB, owner: self},
		running: make(map[string]*execution),
		jobs:    make(map[string]*leftovers),
		hosts:   make(map[key]*hostShell),
		guests:  make(map[key]string),
		program: program{name: opts.Program},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// ErrClosed is returned by Start after Close.
var ErrClosed = errors.New("cellmux is quitting; no command is started any more")

// Start stores an execution and starts it. It returns as soon as the row is
// stored; ctx bounds that alone, and the execution lives until it ends, is
// cancelled, or the Service closes. Any number may run at once. An error means
// that nothing was recorded and nothing runs; whatever goes wrong later is a
// record.
func (s *Service) Start(ctx context.Context, r Request) (Handle, error) {
	id, err := uuid.NewV7() // sorts by time
	if err != nil {
		return nil, fmt.Errorf("name the execution: %w", err)
	}
	k, guest := s.key(r)
	dir, note := s.directory(ctx, r)
	e := Execution{
		ID: id.String(), Cell: r.Cell.Name, Slot: r.Slot, Mode: r.Mode, OnHost: k.onHost,
		State: Running, Started: s.opts.Now(), Note: note,
		Record: shellctx.Record{Command: r.Line, CWD: dir, TriggerAgent: r.Mode == Ask},
	}
	if s.opts.SpillDir != "" {
		e.Spill = filepath.Join(s.opts.SpillDir, e.ID+".out")
	}

	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	s.wg.Add(1)
	s.mu.Unlock()
	seq, err := s.store.begin(ctx, e, guest)
	if err != nil {
		s.wg.Done()
		return nil, err
	}

	x := s.newExecution(e, seq, r, k)
	s.mu.Lock()
	s.running[e.ID] = x
	ready := s.hosts[k] != nil && s.opts.Program == ""
	s.mu.Unlock()
	finish := func(end ending) {
		defer s.wg.Done()
		s.finish(x, end)
		s.mu.Lock()
		delete(s.running, e.ID)
		s.mu.Unlock()
	}
	switch {
	case guest:
		go func() { finish(s.runGuest(x)) }()
	case ready && shell.Brief(r.Line):
		// To wake another thread for it would take longer than it does.
		s.runHost(x, func(end ending) { go finish(end) })
	default:
		go s.runHost(x, finish)
	}
	return x, nil
}

// key tells which shell a request is for, and whether it is in a guest. The
// host side of a host cell is its only one.
func (s *Service) key(r Request) (key, bool) {
	onHost := r.OnHost || isHost(r.Cell)
	return key{r.Cell.Name, r.Slot, onHost && !isHost(r.Cell)}, !onHost
}

func isHost(c engine.Cell) bool { return c.Kind == engine.Host || c.Kind == "" }

// Directory tells where the slot's next command will run: a path of the host
// for the host side, else one of the guest. note is a sentence when that is not
// where its last command left off.
func (s *Service) Directory(ctx context.Context, c engine.Cell, slot int, onHost bool) (dir, note string) {
	return s.directory(ctx, Request{Cell: c, Slot: slot, OnHost: onHost})
}

func (s *Service) directory(ctx context.Context, r Request) (dir, note string) {
	k, guest := s.key(r)
	s.mu.Lock()
	known := s.guests[k]
	if h := s.hosts[k]; h != nil {
		known = h.shell.GetWorkingDir()
	}
	s.mu.Unlock()
	if known == "" {
		stored, err := s.store.directory(ctx, k)
		if err != nil {
			s.opts.Log.Warn("read the shell's directory", "cell", k.cell, "slot", k.slot, "error", err)
		}
		known = stored
	}
	if guest {
		if known == "" {
			if eng, err := s.engine(r.Cell); err == nil {
				known = eng.Guest(r.Cell).ProjectDir
			}
		}
		return known, ""
	}
	if known == "" {
		known = r.Cell.ProjectDir
	}
	return nearest(known)
}

// nearest returns a directory that exists: dir, or the first above it that does.
func nearest(dir string) (found, note string) {
	for at := dir; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.IsDir() {
			if at != dir {
				note = fmt.Sprintf("%s is gone; the shell is in %s now", dir, at)
			}
			return at, note
		}
		if at == filepath.Dir(at) {
			return dir, ""
		}
	}
}

func (s *Service) engine(c engine.Cell) (engine.Engine, error) {
	if s.opts.Engines == nil {
		return nil, fmt.Errorf("no engine carries %s: this service runs host cells alone", c.Name)
	}
	return s.opts.Engines(c.Kind)
}

// Running lists the executions that run now, in no order.
func (s *Service) Running() []Handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Handle, 0, len(s.running))
	for _, x := range s.running {
		list = append(list, x)
	}
	return list
}

// Log returns the last n executions of a slot, of all processes that share the
// database, the oldest first. Those that run in this process are as of now.
func (s *Service) Log(ctx context.Context, cell string, slot, n int) ([]Execution, error) {
	list, err := s.store.log(ctx, cell, slot, n)
	if err != nil {
		return nil, err
	}
	for i, e := range list {
		s.mu.Lock()
		x := s.running[e.ID]
		s.mu.Unlock()
		if x != nil {
			list[i] = x.Execution()
		}
	}
	return list, nil
}

// Close cancels what runs, ends what commands left behind, and waits until all
// of it is recorded, or ctx ends. It takes at most a few seconds.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.store.close()
		return nil
	case <-ctx.Done():
		return fmt.Errorf("commands were still being ended: %w", ctx.Err())
	}
}
