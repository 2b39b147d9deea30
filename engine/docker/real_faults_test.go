//go:build linux

package docker_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/docker"
)

func TestRealContainerThatWasRemovedByHandComesBack(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(nil)
	l.up(c)
	l.output(c, "echo kept > file")
	l.docker("rm", "--force", l.container(c)["Id"].(string))
	all, err := l.engine.Instances(l.ctx())
	if err != nil || len(all) != 0 {
		t.Errorf("Instances = %v, %v", all, err)
	}
	if err := l.engine.End(l.ctx(), c, "x"); err != nil {
		t.Errorf("End: %v", err)
	}
	if err := l.engine.Down(l.ctx(), c); err != nil {
		t.Errorf("Down: %v", err)
	}
	result := l.sh(c, "true")
	if result.ExitCode == 0 {
		t.Error("a program ran in a container that is gone")
	}
	l.up(c)
	if got := l.output(c, "cat file"); got != "kept" {
		t.Errorf("the file holds %q", got)
	}
}

// A container that was renamed by hand is its new owner's: it is neither listed
// nor touched, and the cell gets another.
func TestRealContainerThatWasRenamedByHandIsLeftAlone(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(nil)
	l.up(c)
	id := l.container(c)["Id"].(string)
	l.docker("rename", id, "kept-by-hand-"+id[:12])
	t.Cleanup(func() { l.docker("rm", "--force", id) })
	if all, err := l.engine.Instances(l.ctx()); err != nil || len(all) != 0 {
		t.Errorf("Instances = %+v, %v", all, err)
	}
	l.up(c)
	if all, err := l.engine.Instances(l.ctx()); err != nil || len(all) != 1 || all[0].ID == id || !all[0].Running {
		t.Errorf("Instances after Up = %+v, %v", all, err)
	}
	if err := l.engine.Remove(l.ctx(), c); err != nil {
		t.Error(err)
	}
	if got := l.docker("container", "inspect", "--format", "{{.State.Status}}", id); got != "running" {
		t.Errorf("the renamed container is %s", got)
	}
}

func TestRealContainerThatWasPausedGoesOn(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(nil)
	l.up(c)
	l.docker("pause", l.container(c)["Id"].(string))
	l.up(c)
	if got := l.output(c, "echo on"); got != "on" {
		t.Errorf("got %q", got)
	}
}

func TestRealNetworkThatWasRemovedByHandComesBack(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(nil)
	l.up(c)
	name := l.networkOf(c)
	if err := l.engine.Down(l.ctx(), c); err != nil {
		t.Fatal(err)
	}
	l.docker("network", "rm", name)
	l.up(c)
	if got := l.output(c, "echo on"); got != "on" {
		t.Errorf("got %q", got)
	}
}

// A container that exists needs its image no more; one that is to be made does,
// and nobody can be asked for it here.
func TestRealImageThatIsGone(t *testing.T) {
	l := newLab(t, nil)
	l.docker("tag", testImage, "cellmux-test:passing")
	c := l.cell(func(c *engine.Cell) { c.Config.Cell.Image = "cellmux-test:passing" })
	l.up(c)
	l.docker("rmi", "--force", "cellmux-test:passing")
	l.up(c)
	if err := l.engine.Remove(l.ctx(), c); err != nil {
		t.Fatal(err)
	}
	c.Config.Cell.Image = "localhost:1/nobody/has-this:1"
	err := l.engine.Up(l.ctx(), c, nil)
	if err == nil || !strings.Contains(err.Error(), "pull the image localhost:1/nobody/has-this:1") {
		t.Errorf("Up = %v", err)
	}
}

// pane starts a launch on a terminal, as a pane does, and waits until it has said
// its first word.
func (l *lab) pane(c engine.Cell, line, execution string) (client *exec.Cmd) {
	l.t.Helper()
	launch, err := l.engine.Launch(engine.Spec{Cell: c, Argv: []string{"sh", "-c", line}, TTY: true, Execution: execution})
	if err != nil {
		l.t.Fatal(err)
	}
	path, err := proc.LookPath(launch.Argv[0], launch.Env)
	if err != nil {
		l.t.Fatal(err)
	}
	client = &exec.Cmd{Path: path, Args: launch.Argv, Dir: "/", Env: append(launch.Env, "TERM=xterm")}
	terminal, err := pty.Start(client)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = client.Process.Kill()
		_ = client.Wait()
		_ = terminal.Close()
	})
	go func() { _, _ = io.Copy(io.Discard, terminal) }()
	return client
}

// A client that dies leaves its program running inside: the next pane of the
// slot ends it before it becomes the slot's program.
func TestRealPaneThatLostItsClientIsTakenOver(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(nil)
	l.up(c)
	const stubborn = `trap '' TERM HUP; echo $$ >first; while :; do sleep 1; done`
	first := l.pane(c, stubborn, engine.PaneExecution("proj", 0))
	waitFor(t, "the first program", func() bool { return l.sh(c, "test -s first").ExitCode == 0 })
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, _ = first.Process.Wait()
	if got := l.sh(c, "kill -0 $(cat first)"); got.ExitCode != 0 {
		t.Fatal("the program went with its client; this test shows nothing then")
	}
	l.pane(c, "kill -0 $(cat first) 2>/dev/null && echo alive >second || echo gone >second; sleep 1000", engine.PaneExecution("proj", 0))
	waitFor(t, "the second program", func() bool { return l.sh(c, "test -s second").ExitCode == 0 })
	if got := l.output(c, "cat second"); got != "gone" {
		t.Errorf("when the second program began, the first was %s", got)
	}
	// And its own name still ends it.
	if err := l.engine.End(l.ctx(), c, engine.PaneExecution("proj", 0)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the second program to end", func() bool {
		down, err := l.engine.DownIfIdle(l.ctx(), c)
		return err == nil && down
	})
}

func TestRealCtrlPReachesTheProgram(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(nil)
	l.up(c)
	launch, err := l.engine.Launch(engine.Spec{Cell: c, Argv: []string{"sh", "-c", "stty raw; echo ready; head -c 1 | od -An -tx1"}, TTY: true})
	if err != nil {
		t.Fatal(err)
	}
	path, err := proc.LookPath(launch.Argv[0], launch.Env)
	if err != nil {
		t.Fatal(err)
	}
	client := &exec.Cmd{Path: path, Args: launch.Argv, Dir: "/", Env: append(launch.Env, "TERM=xterm")}
	terminal, err := pty.Start(client)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if err := terminal.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var heard []byte
	read := func(until string) {
		t.Helper()
		buffer := make([]byte, 256)
		for !strings.Contains(string(heard), until) {
			n, err := terminal.Read(buffer)
			heard = append(heard, buffer[:n]...)
			if err != nil {
				t.Fatalf("%v after %q", err, heard)
			}
		}
	}
	read("ready")
	if _, err := terminal.Write([]byte{0x10}); err != nil {
		t.Fatal(err)
	}
	read("10")
	_ = client.Wait()
}

// ownDaemon is a dockerd that a test may stop, kill and starve.
type ownDaemon struct {
	t      *testing.T
	dir    string
	socket string
	cmd    *exec.Cmd
}

func newOwnDaemon(t *testing.T, data string, args ...string) *ownDaemon {
	t.Helper()
	if os.Getenv(socketVariable) == "" {
		t.Skipf("needs to start a docker daemon: .ci/dockerd run go test ./engine/docker sets %s where it can", socketVariable)
	}
	dir, err := os.MkdirTemp("", "cellmux-daemon") // short: sockets have 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	d := &ownDaemon{t: t, dir: dir, socket: filepath.Join(dir, "docker.sock")}
	if data == "" {
		data = filepath.Join(dir, "data")
	}
	t.Cleanup(func() {
		d.stop()
		_ = os.RemoveAll(dir)
	})
	d.start(data, args...)
	return d
}

func (d *ownDaemon) start(data string, args ...string) {
	d.t.Helper()
	path, err := proc.LookPath("dockerd", []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"})
	if err != nil {
		d.t.Skip("needs dockerd")
	}
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command(path, append([]string{"--host", "unix://" + d.socket, "--data-root", data, "--exec-root", filepath.Join(d.dir, "exec"),
		"--pidfile", filepath.Join(d.dir, "pid"), "--bridge", "none"}, args...)...)
	d.cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=" + d.dir}
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	waitFor(d.t, "dockerd to answer", func() bool { return d.try("info").ExitCode == 0 })
}

func (d *ownDaemon) stop() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGCONT)
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
	d.cmd = nil
}

func (d *ownDaemon) try(args ...string) proc.Result {
	d.t.Helper()
	result, err := proc.New().Run(context.Background(), proc.Cmd{
		Argv: append([]string{"docker", "--host", "unix://" + d.socket}, args...), Dir: "/",
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.dir}, Timeout: time.Minute,
	})
	if err != nil {
		d.t.Fatalf("docker %q: %v", args, err)
	}
	return result
}

// load brings an image of the shared daemon into this one.
func (d *ownDaemon) load(t *testing.T) {
	t.Helper()
	archive := filepath.Join(d.dir, "image.tar")
	for _, args := range [][]string{
		{"--host", "unix://" + os.Getenv(socketVariable), "save", "--output", archive, testImage},
		{"--host", "unix://" + d.socket, "load", "--input", archive},
	} {
		result, err := proc.New().Run(context.Background(), proc.Cmd{
			Argv: append([]string{"docker"}, args...), Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.dir}, Timeout: 2 * time.Minute,
		})
		if err != nil || result.ExitCode != 0 {
			t.Fatalf("docker %q: %v: %s", args, err, result.Stderr)
		}
	}
	_ = os.Remove(archive)
}

func TestRealDaemonThatHangsDiesAndComesBack(t *testing.T) {
	daemon := newOwnDaemon(t, "")
	daemon.load(t)
	l := newLab(t, func(o *docker.Options) {
		o.Deadline = 3 * time.Second
		for i, pair := range o.Environ {
			if strings.HasPrefix(pair, "DOCKER_HOST=") {
				o.Environ[i] = "DOCKER_HOST=unix://" + daemon.socket
			}
		}
	})
	c := l.cell(nil)
	l.up(c)
	l.output(c, "echo kept > file")

	if err := daemon.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if a := l.engine.Probe(l.ctx()); a.Usable || !strings.Contains(a.Reason, "does not answer") {
		t.Errorf("Probe of a daemon that hangs = %+v", a)
	}
	if all, err := l.engine.Instances(l.ctx()); !errors.Is(err, docker.ErrNoAnswer) {
		t.Errorf("Instances = %v, %v; want no list and that it does not answer", all, err)
	}
	if err := l.engine.Up(l.ctx(), c, nil); !errors.Is(err, docker.ErrNoAnswer) {
		t.Errorf("Up = %v", err)
	}
	if err := daemon.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the daemon to answer again", func() bool { return l.engine.Probe(l.ctx()).Usable })
	if got := l.output(c, "cat file"); got != "kept" {
		t.Errorf("after the hang the file holds %q", got)
	}

	data := filepath.Join(daemon.dir, "data")
	daemon.stop()
	if a := l.engine.Probe(l.ctx()); a.Usable || !strings.Contains(a.Reason, "not running") {
		t.Errorf("Probe of a daemon that is gone = %+v", a)
	}
	if err := l.engine.Down(l.ctx(), c); !errors.Is(err, docker.ErrNoDaemon) {
		t.Errorf("Down = %v", err)
	}
	daemon.start(data)
	all, err := l.engine.Instances(l.ctx())
	if err != nil || len(all) != 1 || all[0].Running {
		t.Errorf("Instances after a restart = %+v, %v; want the cell, not running", all, err)
	}
	l.up(c)
	if got := l.output(c, "cat file"); got != "kept" {
		t.Errorf("after the restart the file holds %q", got)
	}
}

func TestRealFullDisk(t *testing.T) {
	if os.Getenv(socketVariable) == "" {
		t.Skipf("needs to start a docker daemon: .ci/dockerd run go test ./engine/docker sets %s where it can", socketVariable)
	}
	small, err := os.MkdirTemp("", "cellmux-small")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=700m"); err != nil {
		_ = os.Remove(small)
		t.Skipf("needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(small, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		_ = os.Remove(small)
	})
	daemon := newOwnDaemon(t, small)
	daemon.load(t)
	l := newLab(t, func(o *docker.Options) {
		for i, pair := range o.Environ {
			if strings.HasPrefix(pair, "DOCKER_HOST=") {
				o.Environ[i] = "DOCKER_HOST=unix://" + daemon.socket
			}
		}
	})
	c := l.cell(nil)
	ballast, err := os.Create(filepath.Join(small, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(ballast, zeroes{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	ballast.Close()
	if err := l.engine.Up(l.ctx(), c, nil); !errors.Is(err, docker.ErrDiskFull) || !strings.Contains(err.Error(), "docker system df") {
		t.Errorf("Up = %v, want that the disk is full, and what to do", err)
	}
	if err := os.Remove(filepath.Join(small, "ballast")); err != nil {
		t.Fatal(err)
	}
	l.up(c)
}

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// The list is one call, however many there are.
func TestRealFiftyContainersAreOneCall(t *testing.T) {
	count := &counter{Runner: proc.New()}
	l := newLab(t, func(o *docker.Options) { o.Runner = count })
	var want []string
	owner := ""
	for i := range 50 {
		name := "many-" + strconv.Itoa(i)
		if owner == "" {
			c := l.cell(nil)
			l.up(c)
			owner = l.docker("container", "inspect", "--format", `{{index .Config.Labels "dev.cellmux.owner"}}`, l.container(c)["Id"].(string))
		}
		id := l.docker("create", "--name", "cellmux-"+name+"-"+owner[:6], "--network", "none", "--label", "dev.cellmux.owner="+owner, "--label", "dev.cellmux.cell="+name, testImage, "true")
		t.Cleanup(func() { l.try("rm", "--force", id) })
		want = append(want, name)
	}
	count.n = 0
	all, err := l.engine.Instances(l.ctx())
	if err != nil || len(all) != 51 {
		t.Fatalf("%d instances, %v", len(all), err)
	}
	if count.n != 1 {
		t.Errorf("it took %d calls", count.n)
	}
	for _, name := range want {
		if !slices.ContainsFunc(all, func(i engine.Instance) bool { return i.Cell == name && !i.Running }) {
			t.Errorf("%s is missing", name)
		}
	}
}

// Opening a pane in a running cell starts no docker command but the pane's own.
func TestRealRunningCellIsFoundWithoutACommand(t *testing.T) {
	count := &counter{Runner: proc.New()}
	l := newLab(t, func(o *docker.Options) { o.Runner = count })
	c := l.cell(nil)
	l.up(c)
	count.n = 0
	l.up(c)
	if count.n != 0 {
		t.Errorf("it took %d calls", count.n)
	}
	// An engine that has not made the container finds the right user, too.
	count.n = 0
	l.engine = docker.New(l.o)
	l.up(c)
	if got := l.output(c, "id -un"); got != "ada" || count.n != 0 {
		t.Errorf("the user is %s, after %d calls", got, count.n)
	}
	if err := l.engine.Down(l.ctx(), c); err != nil {
		t.Fatal(err)
	}
	l.up(c)
	if got := l.output(c, "echo on"); got != "on" {
		t.Errorf("after it was down: %q", got)
	}
}

type counter struct {
	proc.Runner
	n int
}

func (c *counter) Run(ctx context.Context, cmd proc.Cmd) (proc.Result, error) {
	c.n++
	return c.Runner.Run(ctx, cmd)
}
