package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Limits of a BackgroundShellManager.
const (
	// MaxBackgroundJobs is how many jobs of one manager may run at a time.
	MaxBackgroundJobs = 50
	// CompletedJobRetentionMinutes is how long a finished job is kept before
	// Cleanup drops it: eight hours.
	CompletedJobRetentionMinutes = 8 * 60
)

// maxJobOutput is how much of each stream of a job is kept in memory: half of it
// the beginning, half the end.
const maxJobOutput = 1 << 20

// killWait bounds how long Kill waits for a job to end.
const killWait = 2500 * time.Millisecond

// BackgroundShell is a command that runs in the background. Its fields are fixed
// when it starts; its methods are safe for concurrent use.
type BackgroundShell struct {
	ID          string
	Command     string
	Description string
	Shell       *Shell // the job's own
	WorkingDir  string

	started        time.Time
	cancel         context.CancelFunc
	stdout, stderr *headTail
	done           chan struct{}

	mu    sync.Mutex
	ended time.Time
	err   error
}

// GetOutput returns what the job has printed so far. Of a stream beyond 1 MiB it
// is the beginning and the end, with a line between them that counts the bytes
// that are missing. err is the command's, once done is true.
func (bs *BackgroundShell) GetOutput() (stdout, stderr string, done bool, err error) {
	// Asked first, so that the output of a job that is done is all of it.
	done = bs.IsDone()
	stdout, stderr = bs.stdout.String(), bs.stderr.String()
	if !done {
		return stdout, stderr, false, nil
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return stdout, stderr, true, bs.err
}

// IsDone tells whether the command has ended.
func (bs *BackgroundShell) IsDone() bool {
	select {
	case <-bs.done:
		return true
	default:
		return false
	}
}

// Wait blocks until the command has ended.
func (bs *BackgroundShell) Wait() { <-bs.done }

// WaitContext blocks until the command has ended or ctx does, and tells whether
// the command has ended.
func (bs *BackgroundShell) WaitContext(ctx context.Context) bool {
	select {
	case <-bs.done:
		return true
	case <-ctx.Done():
		return bs.IsDone()
	}
}

// BackgroundShellInfo describes a job.
type BackgroundShellInfo struct {
	ID          string
	Command     string
	Description string
	WorkingDir  string
	Started     time.Time
	Ended       time.Time // zero while it runs
	ExitCode    int       // once it has ended
}

// Info describes the job as of now.
func (bs *BackgroundShell) Info() BackgroundShellInfo {
	info := BackgroundShellInfo{
		ID: bs.ID, Command: bs.Command, Description: bs.Description, WorkingDir: bs.WorkingDir, Started: bs.started,
	}
	if bs.IsDone() {
		bs.mu.Lock()
		defer bs.mu.Unlock()
		info.Ended, info.ExitCode = bs.ended, ExitCode(bs.err)
	}
	return info
}

// BackgroundShellManager runs commands in the background. It is a value that its
// owner creates, and ends with KillAll. It is safe for concurrent use.
type BackgroundShellManager struct {
	now func() time.Time

	mu   sync.Mutex
	next int
	jobs map[string]*BackgroundShell
}

// NewBackgroundShellManager returns a manager without jobs.
func NewBackgroundShellManager() *BackgroundShellManager {
	return &BackgroundShellManager{now: time.Now, jobs: make(map[string]*BackgroundShell)}
}

// ErrTooManyJobs is wrapped by Start when MaxBackgroundJobs run already.
var ErrTooManyJobs = errors.New("too many background jobs")

// ErrNoJob is wrapped by methods that are given an ID that no job has.
var ErrNoJob = errors.New("background shell not found")

// Start runs a command in the background, in a Shell of its own with the
// environment of this process. It returns at once. The job ends with ctx; its
// IDs (001, 002, … in hexadecimal) are never given out again. When
// MaxBackgroundJobs run, nothing is started.
func (m *BackgroundShellManager) Start(ctx context.Context, workingDir string, blockFuncs []BlockFunc, command, description string) (*BackgroundShell, error) {
	sh := NewShell(&Options{WorkingDir: workingDir, BlockFuncs: blockFuncs})
	ctx, cancel := context.WithCancel(ctx)

	m.mu.Lock()
	running := 0
	for _, job := range m.jobs {
		if !job.IsDone() {
			running++
		}
	}
	if running >= MaxBackgroundJobs {
		m.mu.Unlock()
		cancel()
		return nil, fmt.Errorf("%w: %d run; end or wait for some of them", ErrTooManyJobs, running)
	}
	m.next++
	bs := &BackgroundShell{
		ID: fmt.Sprintf("%03X", m.next), Command: command, Description: description,
		Shell: sh, WorkingDir: sh.GetWorkingDir(),
		started: m.now(), cancel: cancel, done: make(chan struct{}),
		stdout: &headTail{half: maxJobOutput / 2}, stderr: &headTail{half: maxJobOutput / 2},
	}
	m.jobs[bs.ID] = bs
	m.mu.Unlock()

	go func() {
		defer close(bs.done)
		defer cancel() // what the command left running belongs to the job
		err := sh.ExecStream(ctx, command, bs.stdout, bs.stderr)
		bs.mu.Lock()
		bs.err, bs.ended = err, m.now()
		bs.mu.Unlock()
	}()
	return bs, nil
}

// Get finds a job, running or finished.
func (m *BackgroundShellManager) Get(id string) (*BackgroundShell, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bs, ok := m.jobs[id]
	return bs, ok
}

// List returns the IDs of all jobs, in the order in which they were started.
func (m *BackgroundShellManager) List() []string {
	jobs := m.ordered()
	ids := make([]string, len(jobs))
	for i, bs := range jobs {
		ids[i] = bs.ID
	}
	return ids
}

// Infos describes all jobs, in the order in which they were started.
func (m *BackgroundShellManager) Infos() []BackgroundShellInfo {
	jobs := m.ordered()
	infos := make([]BackgroundShellInfo, len(jobs))
	for i, bs := range jobs {
		infos[i] = bs.Info()
	}
	return infos
}

func (m *BackgroundShellManager) ordered() []*BackgroundShell {
	m.mu.Lock()
	jobs := slices.Collect(maps.Values(m.jobs))
	m.mu.Unlock()
	// Longer IDs are later ones: 1000 comes after FFF.
	slices.SortFunc(jobs, func(a, b *BackgroundShell) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return jobs
}

// Remove forgets a job. One that runs is not ended: it lives as long as the
// context that it was started with.
func (m *BackgroundShellManager) Remove(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.jobs[id]; !ok {
		return fmt.Errorf("%w: %s", ErrNoJob, id)
	}
	delete(m.jobs, id)
	return nil
}

// Kill ends a job with all that it started, and forgets it. It blocks for at
// most 2.5 seconds; a job that has not ended by then is an error, and stays.
func (m *BackgroundShellManager) Kill(id string) error {
	bs, ok := m.Get(id)
	if !ok {
		return fmt.Errorf("%w: %s", ErrNoJob, id)
	}
	ctx, stop := context.WithTimeout(context.Background(), killWait)
	defer stop()
	return m.end(ctx, bs)
}

func (m *BackgroundShellManager) end(ctx context.Context, bs *BackgroundShell) error {
	bs.cancel()
	if !bs.WaitContext(ctx) {
		return fmt.Errorf("background shell %s does not end: %s", bs.ID, bs.Command)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs[bs.ID] == bs {
		delete(m.jobs, bs.ID)
	}
	return nil
}

// KillAll ends all jobs at the same time and forgets them. It blocks until they
// have ended, ctx ends, or 2.5 seconds have passed; those that run on even then
// stay in the list.
func (m *BackgroundShellManager) KillAll(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, killWait)
	defer stop()
	var wg sync.WaitGroup
	for _, bs := range m.ordered() {
		wg.Go(func() { _ = m.end(ctx, bs) })
	}
	wg.Wait()
}

// Cleanup forgets the jobs that ended CompletedJobRetentionMinutes ago or
// longer, and returns how many those were.
func (m *BackgroundShellManager) Cleanup() int {
	limit := m.now().Add(-CompletedJobRetentionMinutes * time.Minute)
	n := 0
	for _, bs := range m.ordered() {
		if info := bs.Info(); !info.Ended.IsZero() && !info.Ended.After(limit) && m.Remove(bs.ID) == nil {
			n++
		}
	}
	return n
}

// headTail keeps the beginning and the end of what is written to it.
type headTail struct {
	half int

	mu      sync.Mutex
	head    []byte
	tail    []byte // a ring once it is full
	at      int    // where the ring's oldest byte is
	missing int64
}

func (h *headTail) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(p)
	if room := min(h.half-len(h.head), len(p)); room > 0 {
		h.head = append(h.head, p[:room]...)
		p = p[room:]
	}
	if over := len(p) - h.half; over > 0 {
		h.missing += int64(over)
		p = p[over:]
	}
	if room := min(h.half-len(h.tail), len(p)); room > 0 {
		h.tail = append(h.tail, p[:room]...)
		p = p[room:]
	}
	h.missing += int64(len(p))
	for len(p) > 0 {
		took := copy(h.tail[h.at:], p)
		p = p[took:]
		h.at = (h.at + took) % len(h.tail)
	}
	return n, nil
}

// String joins the halves; a line between them counts what is missing.
func (h *headTail) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	tail := string(h.tail[h.at:]) + string(h.tail[:h.at])
	if h.missing == 0 {
		return string(h.head) + tail
	}
	return fmt.Sprintf("%s\n[… %d bytes of output not kept …]\n%s", h.head, h.missing, tail)
}
