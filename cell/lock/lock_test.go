package lock_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"cellmux/cell/lock"
)

func TestTwoHoldersExcludeEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks", "pane")
	first, err := lock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Try(path); !errors.Is(err, lock.ErrHeld) {
		t.Fatalf("second Try: got %v, want ErrHeld", err)
	}
	first.Release()
	first.Release()
	second, err := lock.Try(path)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	second.Release()
}

func TestWaitEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pane")
	held, err := lock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := lock.Wait(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the context's error", err)
	}
}

func TestWaitGetsTheLockOnceItIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pane")
	held, err := lock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		second, err := lock.Wait(t.Context(), path)
		second.Release()
		got <- err
	}()
	held.Release()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}
