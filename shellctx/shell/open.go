package shell

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

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
