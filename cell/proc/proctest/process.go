package proctest

import (
	"context"
	"io"
	"sync"

	"cellmux/cell/proc"
)

// process is a scripted proc.Process: a goroutine in place of a child.
type process struct {
	stdinR  *io.PipeReader
	stdinW  *io.PipeWriter
	stdoutR *io.PipeReader
	stdoutW *io.PipeWriter
	done    chan struct{}
	mu      sync.Mutex
	result  proc.Result
	err     error
}

func startTalk(ctx context.Context, talk func(io.Reader, io.Writer) proc.Result) *process {
	p := &process{done: make(chan struct{})}
	p.stdinR, p.stdinW = io.Pipe()
	p.stdoutR, p.stdoutW = io.Pipe()
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		p.err = context.Cause(ctx)
		p.mu.Unlock()
		p.kill()
	})
	go func() {
		defer close(p.done)
		defer stop()
		var res proc.Result
		if talk != nil {
			res = talk(p.stdinR, p.stdoutW)
		}
		p.mu.Lock()
		p.result = res
		p.mu.Unlock()
		_ = p.stdoutW.Close()
		_ = p.stdinR.Close()
	}()
	return p
}

func (p *process) kill() {
	_ = p.stdinR.CloseWithError(io.EOF)
	_ = p.stdoutW.CloseWithError(io.EOF)
}

func (p *process) PID() int              { return 0 }
func (p *process) Stdin() io.WriteCloser { return p.stdinW }
func (p *process) Stdout() io.Reader     { return p.stdoutR }

func (p *process) Wait() (proc.Result, error) {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result, p.err
}

func (p *process) End() {
	p.kill()
	<-p.done
}
