package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// System is the Runner that starts real processes.
type System struct{}

// New returns a Runner over the operating system.
func New() *System { return &System{} }

var _ Runner = (*System)(nil)

// Run implements Runner.
func (s *System) Run(ctx context.Context, c Cmd) (Result, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, ErrTimeout)
		defer cancel()
	}
	limit := c.MaxOutput
	if limit == 0 {
		limit = DefaultMaxOutput
	}

	var pipes pipeSet
	stdout, stderr := &head{limit: limit}, &head{limit: limit}
	stdin, err := pipes.input(c.Stdin)
	if err != nil {
		return Result{}, startError(c, err)
	}
	outW, err := pipes.output(stdout)
	if err != nil {
		pipes.abandon()
		return Result{}, startError(c, err)
	}
	errW, err := pipes.output(stderr)
	if err != nil {
		pipes.abandon()
		return Result{}, startError(c, err)
	}

	child, err := s.start(ctx, c, stdin, outW, errW)
	pipes.closeChildEnds()
	if err != nil {
		pipes.abandon()
		return Result{}, err
	}
	pipes.run()
	<-child.done
	// Nobody of the tree holds the pipes now. What slipped out of it altogether
	// (its environment emptied, its parent gone) must not hold this call.
	pipes.drain(child.grace)

	res := child.result
	res.Stdout, res.Stderr = stdout.kept, stderr.kept
	res.Dropped = stdout.dropped + stderr.dropped
	return res, child.err
}

// Start implements Runner.
func (s *System) Start(ctx context.Context, c Cmd) (Process, error) {
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, startError(c, err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(startError(c, err), inR.Close(), inW.Close())
	}
	child, err := s.start(ctx, c, inR, outW, outW)
	_ = inR.Close()
	_ = outW.Close()
	if err != nil {
		_ = inW.Close()
		_ = outR.Close()
		return nil, err
	}
	return &process{child: child, stdin: inW, stdout: &untilEOF{file: outR}}, nil
}

// child is a started process whose goroutine ends and reaps it.
type child struct {
	cmd    *exec.Cmd
	tree   Tree
	grace  time.Duration
	end    chan struct{} // closed: end it now
	endOne sync.Once
	done   chan struct{} // closed when reaped and its tree gone; result and err are set
	result Result
	err    error
}

func (s *System) start(ctx context.Context, c Cmd, stdin, stdout, stderr *os.File) (*child, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if len(c.Argv) == 0 {
		return nil, errors.New("start a program: the command is empty")
	}
	path, err := resolve(c)
	if err != nil {
		return nil, err
	}
	marker := c.Marker
	if marker == "" {
		marker = uuid.NewString()
	}
	env := slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool {
		return strings.HasPrefix(kv, MarkerVariable+"=")
	})
	if c.LeavesDaemon {
		marker = ""
	} else {
		env = append(env, MarkerVariable+"="+marker)
	}
	if env == nil {
		env = []string{} // nil would mean cellmux's own environment to os/exec
	}
	cmd := &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, Env: env, SysProcAttr: ownSession()}
	if stdin != nil {
		cmd.Stdin = stdin
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		return nil, startError(c, err)
	}
	ch := &child{
		cmd:   cmd,
		grace: c.Grace,
		end:   make(chan struct{}),
		done:  make(chan struct{}),
		tree:  Tree{PID: cmd.Process.Pid, Marker: marker},
	}
	if ch.grace == 0 {
		ch.grace = DefaultGrace
	}
	// Unreaped, the PID is still ours, so this cannot be somebody else's time.
	ch.tree.Start, _ = StartTime(cmd.Process.Pid)
	go ch.watch(ctx)
	return ch, nil
}

// watch owns the child: it ends the tree when asked to, when ctx ends or when
// the child has exited, and reaps the child last. Until then the child's PID
// cannot be given to another process, so its group and session are certain.
func (ch *child) watch(ctx context.Context) {
	defer close(ch.done)
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		waitUnreaped(ch.cmd)
	}()
	select {
	case <-exited:
	case <-ch.end:
	case <-ctx.Done():
		select {
		case <-exited: // in time after all
		default:
			ch.err = context.Cause(ctx)
		}
	}
	// An error here is a process in an uninterruptible sleep; it has its signal.
	_, _ = EndTree(ch.tree, ch.grace)
	<-exited
	_ = ch.cmd.Wait()
	ch.result.ExitCode, ch.result.Signaled = exitStatus(ch.cmd.ProcessState)
}

// process is a Process over a child.
type process struct {
	*child
	stdin  *os.File
	stdout *untilEOF
}

func (p *process) PID() int              { return p.cmd.Process.Pid }
func (p *process) Stdin() io.WriteCloser { return p.stdin }
func (p *process) Stdout() io.Reader     { return p.stdout }

func (p *process) Wait() (Result, error) {
	<-p.done
	return p.result, p.err
}

func (p *process) End() {
	p.endOne.Do(func() { close(p.end) })
	<-p.done
}

// untilEOF closes its file at the end of the stream, so that a reader that
// follows it to the end leaks no descriptor.
type untilEOF struct{ file *os.File }

func (u *untilEOF) Read(b []byte) (int, error) {
	n, err := u.file.Read(b)
	if err != nil {
		_ = u.file.Close()
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
	}
	return n, err
}

// resolve checks the directory before the program: the kernel reports a missing
// directory with the same error as a missing program.
func resolve(c Cmd) (string, error) {
	if !filepath.IsAbs(c.Dir) {
		return "", fmt.Errorf("start %s: directory %q is not absolute", c.Argv[0], c.Dir)
	}
	switch info, err := os.Stat(c.Dir); {
	case err != nil:
		return "", fmt.Errorf("start %s: its directory: %w", c.Argv[0], err)
	case !info.IsDir():
		return "", fmt.Errorf("start %s: %s is not a directory", c.Argv[0], c.Dir)
	}
	name := c.Argv[0]
	if hasSeparator(name) && !filepath.IsAbs(name) {
		name = filepath.Join(c.Dir, name)
	}
	return LookPath(name, c.Env)
}

func startError(c Cmd, err error) error {
	name := ""
	if len(c.Argv) > 0 {
		name = c.Argv[0]
	}
	return fmt.Errorf("start %s: %w", name, err)
}
