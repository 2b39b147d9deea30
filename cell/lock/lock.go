// Package lock holds advisory locks on files, across the processes of this
// host.
//
// The rule it keeps: a lock lives as long as its file descriptor. The kernel
// gives it back when the holder dies, however it dies, so no lock is ever
// stale; the file itself stays, because removing it would let two processes
// hold "the same" lock on two files.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ErrHeld is returned by Try when somebody else holds the lock.
var ErrHeld = errors.New("the lock is held")

// File is a held lock. It is not safe for concurrent use.
type File struct{ file *os.File }

// Try takes the lock of the file at path, creating it (0600) and its directory
// (0700) where they are missing. It never waits; it returns ErrHeld when
// another process, or another File of this one, holds the lock.
func Try(path string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of lock %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	held, err := lockFile(file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !held {
		file.Close()
		return nil, ErrHeld
	}
	return &File{file: file}, nil
}

// Wait takes the lock as Try does, and waits until it is free or ctx ends.
func Wait(ctx context.Context, path string) (*File, error) {
	// File locks have no wake-up that a context could interrupt, so waiting is
	// polling; it backs off to the ceiling within half a second.
	const ceiling = 100 * time.Millisecond
	pause := 2 * time.Millisecond
	for {
		held, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return held, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("wait for lock %s: %w", path, ctx.Err())
		case <-timer.C:
		}
		pause = min(2*pause, ceiling)
	}
}

// Release gives the lock back. A second call does nothing.
func (f *File) Release() {
	if f == nil || f.file == nil {
		return
	}
	f.file.Close()
	f.file = nil
}
