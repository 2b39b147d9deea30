//go:build unix

package shell

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellmux/cell/proc"
)

// TestACancelledCommandReturnsWhateverItStarted starts what is known to hold a
// shell up, waits until it is there, cancels, and looks for what is left.
func TestACancelledCommandReturnsWhateverItStarted(t *testing.T) {
	for name, source := range map[string]string{
		"sleep":                       "echo up; sleep 100",
		"sleep after builtin loop":    "echo up; while :; do :; done",
		"pipeline":                    "echo up; sleep 100 | sleep 100 | cat",
		"wait":                        "sleep 100 & echo up; wait",
		"setsid":                      "echo up; setsid sleep 100",
		"setsid --wait":               "echo up; setsid --wait sleep 100",
		"setsid holds the pipe":       "sh -c 'setsid sleep 100 & echo up; wait'",
		"nohup":                       "echo up; nohup sleep 100",
		"nohup in the background":     "sh -c 'nohup sleep 100 & echo up; sleep 100'",
		"double fork":                 "sh -c '(sh -c \"setsid sleep 100 & exit\" &) ; echo up; sleep 100'",
		"stopped child":               "sh -c 'echo up; kill -STOP $$; sleep 100'",
		"stopped grandchild":          "sh -c 'sh -c \"kill -STOP \\$\\$\" & echo up; wait; sleep 100'",
		"traps everything":            "sh -c 'trap \"\" INT TERM HUP QUIT PIPE USR1; echo up; while :; do sleep 100; done'",
		"traps everything in setsid":  "setsid sh -c 'trap \"\" INT TERM HUP QUIT; echo up; while :; do sleep 100; done'",
		"sheds its environment":       "echo up; env -i sleep 100",
		"sheds environment and group": "echo up; env -i setsid --wait sleep 100",
		"forks on being interrupted":  "sh -c 'trap \"sleep 100 & sleep 100\" INT TERM; echo up; sleep 100; sleep 100'",
		"reads a named pipe":          "mkfifo p; echo up; cat <p",
		"opens a named pipe":          "mkfifo p; echo up; read x <p",
		"writes a named pipe":         "mkfifo p; echo up; echo x >p",
		"process substitution":        "echo up; cat <(sleep 100)",
		"command substitution":        "echo up; x=$(sleep 100; sleep 100)",
		"substitution with orphan":    "echo up; x=$(sh -c 'setsid sleep 100 & echo hi')",
		"here-document to sleep":      "echo up; sleep 100 <<E\nx\nE",
		"many":                        "for i in 1 2 3 4 5 6 7 8; do sleep 100 & done; echo up; wait",
		"reads nothing":               "echo up; sleep 100 | { read x; sleep 100; }",
		"yes":                         "echo up; yes >/dev/null",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var up atomic.Bool
			marker := "test-" + strings.ReplaceAll(name, " ", "-") + "-" + time.Now().Format(time.StampNano)
			returned := make(chan error, 1)
			go func() {
				returned <- Run(ctx, RunOptions{
					Command: source, Cwd: t.TempDir(), Env: os.Environ(), Marker: marker,
					Stdout: writerFunc(func(p []byte) {
						if strings.Contains(string(p), "up") {
							up.Store(true)
						}
					}),
				})
			}()
			waitUntil(t, up.Load)
			begin := time.Now()
			cancel()
			select {
			case err := <-returned:
				if took := time.Since(begin); took > promise {
					t.Errorf("%s: took %v", name, took)
				}
				if strings.HasPrefix(source, "echo up; setsid sleep") || strings.HasPrefix(source, "setsid sh") {
					// setsid forks and ends: the command was done, and the cancel
					// took what it had left.
					break
				}
				if !IsInterrupt(err) || ExitCode(err) != 130 {
					t.Errorf("error %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("never returned")
			}
			left, err := proc.Members(proc.Tree{Marker: marker})
			if err != nil || len(left) != 0 {
				t.Errorf("%s: left running: %v %v", name, left, err)
			}
		})
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// TestAnAlreadyCancelledCommandRunsNothing is the case of a quit that comes first.
func TestAnAlreadyCancelledCommandRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	err := Run(ctx, RunOptions{Command: "touch ran", Cwd: dir, Env: os.Environ()})
	if ExitCode(err) != 130 {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("it ran")
	}
}

// TestADeadlineEndsACommand: a timeout is a cancel too.
func TestADeadlineEndsACommand(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := Run(ctx, RunOptions{Command: "sleep 100", Cwd: t.TempDir(), Env: os.Environ()})
	if !IsInterrupt(err) || ExitCode(err) != 130 {
		t.Errorf("error %v", err)
	}
}
