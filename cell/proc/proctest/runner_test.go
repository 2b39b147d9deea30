package proctest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"cellmux/cell/proc"
	"cellmux/cell/proc/proctest"
)

// spy is a test that records its failures.
type spy struct {
	failed  []string
	cleanup []func()
}

func (s *spy) Helper()                      {}
func (s *spy) Errorf(f string, args ...any) { s.failed = append(s.failed, fmt.Sprintf(f, args...)) }
func (s *spy) Cleanup(f func())             { s.cleanup = append(s.cleanup, f) }
func (s *spy) end() {
	for _, f := range s.cleanup {
		f()
	}
}
func run(r *proctest.Runner, argv ...string) (proc.Result, error) {
	return r.Run(context.Background(), proc.Cmd{Argv: argv, Dir: "/d", Env: []string{"A=1"}})
}

func TestUnexpectedCallFails(t *testing.T) {
	s := &spy{}
	r := proctest.New(s)
	r.Expect("git", "status").InDir("/d").WithEnv("A=1").Prints("ok")
	if _, err := run(r, "git", "status", "-s"); err == nil || len(s.failed) != 1 {
		t.Errorf("%v %v", err, s.failed)
	}
	if res, err := run(r, "git", "status"); err != nil || string(res.Stdout) != "ok" || len(s.failed) != 1 {
		t.Errorf("%v %v", err, s.failed)
	}
	if _, err := run(r, "git", "status"); err == nil || len(s.failed) != 2 {
		t.Error("a call was answered twice")
	}
	s.end()
	if len(s.failed) != 2 {
		t.Errorf("%v", s.failed)
	}
}

func TestUnusedExpectationFails(t *testing.T) {
	s := &spy{}
	r := proctest.New(s)
	r.Expect("docker", "ps")
	r.Allow("docker", "version")
	s.end()
	if len(s.failed) != 1 || !strings.Contains(s.failed[0], `"docker" "ps"`) {
		t.Errorf("%v", s.failed)
	}
}

func TestWrongDirectoryOrEnvironmentFails(t *testing.T) {
	s := &spy{}
	r := proctest.New(s)
	r.Expect("a").InDir("/other")
	r.Expect("b").WithEnv("B=2")
	_, _ = run(r, "a")
	_, _ = run(r, "b")
	if len(s.failed) != 2 {
		t.Errorf("%v", s.failed)
	}
}

func TestHangEndsWithItsContext(t *testing.T) {
	r := proctest.New(t)
	r.Expect("wedged").Hangs()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Run(ctx, proc.Cmd{Argv: []string{"wedged"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestScriptedProcessTalksAndEnds(t *testing.T) {
	r := proctest.New(t)
	r.ExpectStart("echo-server").Talks(func(in io.Reader, out io.Writer) proc.Result {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			_, _ = fmt.Fprintln(out, "got", lines.Text())
		}
		return proc.Result{ExitCode: 3}
	})
	p, err := r.Start(t.Context(), proc.Cmd{Argv: []string{"echo-server"}})
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(p.Stdout())
	_, _ = io.WriteString(p.Stdin(), "one\n")
	if line, err := out.ReadString('\n'); err != nil || line != "got one\n" {
		t.Errorf("%q, %v", line, err)
	}
	_ = p.Stdin().Close()
	if res, err := p.Wait(); err != nil || res.ExitCode != 3 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestScriptedProcessEndsWithItsContext(t *testing.T) {
	r := proctest.New(t)
	r.ExpectStart("cat").Talks(func(in io.Reader, out io.Writer) proc.Result {
		_, _ = io.Copy(out, in)
		return proc.Result{}
	})
	ctx, cancel := context.WithCancel(context.Background())
	p, err := r.Start(ctx, proc.Cmd{Argv: []string{"cat"}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := p.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
