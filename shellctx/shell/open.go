package shell

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"
)

// openFile opens what a redirection names. The paths that stand for the
// command's own streams would, opened by this process, be cellmux's; and its
// terminal is none of a command's business.
func openFile(ctx context.Context, dir, path string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	hc := interp.HandlerCtx(ctx)
	switch strings.Replace(path, "/proc/self/fd/", "/dev/fd/", 1) {
	case "/dev/tty":
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.ENXIO}
	case "/dev/stdout", "/dev/fd/1":
		return &tap{under: hc.Stdout, close: func() {}}, nil
	case "/dev/stderr", "/dev/fd/2":
		return &tap{under: hc.Stderr, close: func() {}}, nil
	case "/dev/stdin", "/dev/fd/0":
		if f, ok := hc.Stdin.(*os.File); ok && f != nil {
			return duplicate(f)
		}
		path = os.DevNull
	case "/dev/null":
		path = os.DevNull
		if runtime.GOOS == "windows" {
			flag &^= os.O_TRUNC
		}
	}
	if path != os.DevNull && path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return os.OpenFile(path, flag, perm)
	}
	// Opening a named pipe blocks until somebody opens its other end.
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.OpenFile(path, flag, perm)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		return o.file, nil
	case <-ctx.Done():
		releaseFIFO(path)
		if o := <-done; o.err == nil {
			_ = o.file.Close()
		}
		return nil, ctx.Err()
	}
}

// fifoPrefix begins the names of the pipes that the interpreter makes for
// process substitution.
const fifoPrefix = "sh-interp-"

// noteFIFOs remembers the pipes that a command was given.
func (x *execution) noteFIFOs(args []string) {
	for _, arg := range args {
		if strings.Contains(arg, fifoPrefix) && strings.HasPrefix(filepath.Base(arg), fifoPrefix) {
			x.mu.Lock()
			x.fifos = append(x.fifos, arg)
			x.mu.Unlock()
		}
	}
}

// fifoGrace bounds the wait for a substitution that nobody read.
const fifoGrace = 200 * time.Millisecond

// releaseFIFOs ends process substitutions whose pipe the command never opened:
// their goroutine waits for its other end, which bash would close with the
// command. The interpreter removes each pipe when its substitution has ended.
func (x *execution) releaseFIFOs() {
	x.mu.Lock()
	fifos := x.fifos
	x.fifos = nil
	x.mu.Unlock()
	limit := time.Now().Add(fifoGrace)
	for _, path := range fifos {
		for time.Now().Before(limit) {
			info, err := os.Lstat(path)
			if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
				break
			}
			releaseFIFO(path)
			time.Sleep(time.Millisecond)
		}
	}
}
