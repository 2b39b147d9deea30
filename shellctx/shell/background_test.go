package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func newManager(t *testing.T) *BackgroundShellManager {
	m := NewBackgroundShellManager()
	t.Cleanup(func() { m.KillAll(context.Background()) })
	return m
}

func startJob(t *testing.T, m *BackgroundShellManager, command string) *BackgroundShell {
	t.Helper()
	bs, err := m.Start(context.Background(), t.TempDir(), nil, command, "a test")
	if err != nil {
		t.Fatal(err)
	}
	return bs
}

func TestBackgroundShellEndsWithItsOutputAndError(t *testing.T) {
	m := newManager(t)
	bs := startJob(t, m, "echo out; echo err >&2; exit 3")
	bs.Wait()
	stdout, stderr, done, err := bs.GetOutput()
	if stdout != "out\n" || stderr != "err\n" || !done || ExitCode(err) != 3 {
		t.Errorf("%q %q %v %v", stdout, stderr, done, err)
	}
	if info := bs.Info(); info.ExitCode != 3 || info.Ended.IsZero() || info.ID != "001" || info.Description != "a test" {
		t.Errorf("%+v", info)
	}
}

func TestBackgroundLimitCountsRunningJobsAtomically(t *testing.T) {
	m := newManager(t)
	for range 60 { // finished jobs do not count
		startJob(t, m, "true").Wait()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	started, refused := 0, 0
	for range MaxBackgroundJobs + 20 {
		wg.Go(func() {
			_, err := m.Start(context.Background(), t.TempDir(), nil, "sleep 100", "")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				started++
			case errors.Is(err, ErrTooManyJobs):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if started != MaxBackgroundJobs || refused != 20 {
		t.Errorf("%d started, %d refused", started, refused)
	}
	begin := time.Now()
	m.KillAll(t.Context())
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("KillAll took %v", took)
	}
	if left := m.List(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	startJob(t, m, "true").Wait()
}

func TestBackgroundListIsOrderedAndIDsAreNotReused(t *testing.T) {
	m := newManager(t)
	var want []string
	for i := range 12 {
		bs := startJob(t, m, "true")
		bs.Wait()
		if i == 3 {
			if err := m.Remove(bs.ID); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want = append(want, fmt.Sprintf("%03X", i+1))
	}
	if got := m.List(); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v, want %v", got, want)
	}
	for _, err := range []error{m.Remove("XXX"), m.Kill("XXX")} {
		if !errors.Is(err, ErrNoJob) || !strings.Contains(err.Error(), "background shell not found: XXX") {
			t.Errorf("unknown ID: %v", err)
		}
	}
}

func TestBackgroundKillIsBoundedWhateverTheJobStarted(t *testing.T) {
	m := newManager(t)
	bs := startJob(t, m, "sh -c 'trap \"\" INT TERM HUP; echo up; setsid sleep 100 & while :; do sleep 1; done'")
	waitUntil(t, func() bool { out, _, _, _ := bs.GetOutput(); return strings.Contains(out, "up") })
	begin := time.Now()
	if err := m.Kill(bs.ID); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 2500*time.Millisecond {
		t.Errorf("took %v", took)
	}
	if _, ok := m.Get(bs.ID); ok {
		t.Error("still listed")
	}
	if _, _, done, err := bs.GetOutput(); !done || !IsInterrupt(err) {
		t.Errorf("done %v, %v", done, err)
	}
}

func TestBackgroundOutputKeepsHeadAndTail(t *testing.T) {
	m := newManager(t)
	bs := startJob(t, m, "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
	bs.Wait()
	out, _, _, _ := bs.GetOutput()
	if !strings.HasPrefix(out, "first\n") || !strings.HasSuffix(out, "last\n") || !strings.Contains(out, "bytes of output not kept") {
		t.Errorf("%d bytes: %q…%q", len(out), out[:40], out[len(out)-40:])
	}
	if len(out) > maxJobOutput+100 {
		t.Errorf("%d bytes are kept", len(out))
	}
}

func TestBackgroundCleanupDropsWhatEndedLongAgo(t *testing.T) {
	m := newManager(t)
	var offset atomic.Int64
	begin := time.Now()
	m.now = func() time.Time { return begin.Add(time.Duration(offset.Load())) }
	startJob(t, m, "true").Wait()
	running := startJob(t, m, "sleep 100")
	offset.Store(int64(CompletedJobRetentionMinutes*time.Minute - time.Second))
	if n := m.Cleanup(); n != 0 {
		t.Errorf("%d dropped too early", n)
	}
	offset.Add(int64(time.Second))
	if n := m.Cleanup(); n != 1 {
		t.Errorf("%d dropped, want 1", n)
	}
	if got := m.List(); len(got) != 1 || got[0] != running.ID {
		t.Errorf("left: %v", got)
	}
}

func TestBackgroundWaitContext(t *testing.T) {
	m := newManager(t)
	bs := startJob(t, m, "sleep 100")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if bs.WaitContext(ctx) {
		t.Error("said to have ended")
	}
}

// waitUntil asks until a condition holds, for at most 20 seconds.
func waitUntil(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("waited too long")
		}
	}
}
