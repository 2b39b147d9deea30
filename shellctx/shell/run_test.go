package shell

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"
)

// promise is the time in which a cancelled command returns (issue D).
const promise = 2500 * time.Millisecond

// result is what a test sees of one command.
type result struct {
	stdout, stderr string
	err            error
	left           *Leftover
}

func runHere(t *testing.T, source string, change ...func(*RunOptions)) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	var out, errs bytes.Buffer
	var r result
	opts := RunOptions{
		Command: source, Cwd: t.TempDir(), Env: os.Environ(), Stdout: &out, Stderr: &errs,
		OnLeftover: func(l *Leftover) { r.left = l; t.Cleanup(l.End) },
	}
	for _, c := range change {
		c(&opts)
	}
	r.err = Run(ctx, opts)
	r.stdout, r.stderr = out.String(), errs.String()
	return r
}

func TestExitCodesTellTheTruth(t *testing.T) {
	for source, want := range map[string]int{
		"true":                0,
		"exit 3":              3,
		"false":               1,
		"grep x /dev/null":    1,
		"no-such-command-xyz": 127,
		"./no-such-file":      127,
		"/etc/passwd":         126,
		"/etc":                126,
		"sh -c 'kill -9 $$'":  137,
		"sh -c 'kill -15 $$'": 143,
		"if":                  2,
		"echo $(":             2,
		"sh -c 'exit 255'":    255,
		"false || exit 4":     4,
		"no-such-xyz || true": 0,
	} {
		if got := ExitCode(runHere(t, source).err); got != want {
			t.Errorf("%s: exit code %d, want %d", source, got, want)
		}
	}
	if got := ExitCode(Run(t.Context(), RunOptions{Command: "true", Cwd: "/no/such/dir"})); got != NotStarted {
		t.Errorf("missing directory: exit code %d, want %d", got, NotStarted)
	}
	if err := Run(t.Context(), RunOptions{Command: "true"}); ExitCode(err) != NotStarted {
		t.Errorf("no directory: %v", err)
	}
}

func TestBackgroundStatements(t *testing.T) {
	for source, want := range map[string]string{
		"(sleep .1; echo late) & echo first":                                 "first\nlate\n",
		"sleep 0.05 & echo hi; wait; echo done":                              "hi\ndone\n",
		"sleep 100 & kill $!; wait $!; echo $?":                              "143\n",
		"while :; do sleep 0.02; done & kill $!; wait $!; echo $?":           "143\n",
		"x=$(sleep .05; echo x & echo y); echo $x":                           "x y\n",
		"{ { sleep .1; echo a; } & echo b; } | cat":                          "b\na\n",
		"x=$(sleep 100 >/dev/null & echo $!); kill $x && echo killed":        "killed\n",
		"for i in 1 2 3; do sleep .05 & p=\"$p $!\"; done; wait $p; echo $?": "0\n",
		"(exit 7) & wait $!; echo $?":                                        "7\n",
		"echo x | { cat & wait; }":                                           "x\n",
	} {
		if got := runHere(t, source); got.stdout != want {
			t.Errorf("%s: printed %q (stderr %q), want %q", source, got.stdout, got.stderr, want)
		}
	}
}

func TestWhatIsLeftRunningIsCounted(t *testing.T) {
	for _, source := range []string{
		"sleep 100 & echo hi",
		"sh -c 'sleep 100 & echo hi'",
		"setsid sleep 100 >/dev/null 2>&1 & echo hi",
		"sh -c '(setsid nohup sleep 100 >/dev/null 2>&1 &)'; echo hi",
	} {
		start := time.Now()
		r := runHere(t, source)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s: returned after %v", source, took)
		}
		if r.stdout != "hi\n" || r.left == nil || r.left.Count() != 1 {
			t.Errorf("%s: printed %q, left %v", source, r.stdout, r.left)
			continue
		}
		r.left.End()
		select {
		case <-r.left.Done():
		case <-time.After(3 * time.Second):
			t.Errorf("%s: still runs: %v", source, r.left.List())
		}
	}
}
