//go:build unix

package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/host"
	"cellmux/shellctx/shell"
)

// guestEngine is a guest without walls: the host engine under another name, with
// the workspace's home as its own.
type guestEngine struct {
	*host.Host
	home  string
	upErr error
}

func (g guestEngine) Kind() engine.Kind { return engine.Docker }

func (g guestEngine) Guest(c engine.Cell) cfg.Guest {
	return cfg.Guest{Isolated: true, Kind: "test guest", Home: g.home, ProjectDir: c.ProjectDir}
}

func (g guestEngine) Up(ctx context.Context, c engine.Cell, p func(engine.Progress)) error {
	if g.upErr != nil {
		return g.upErr
	}
	return g.Host.Up(ctx, c, p)
}

func newGuestSubject(t *testing.T, upErr error, change ...func(*Options)) *subject {
	t.Helper()
	home := t.TempDir()
	b := newSubject(t, append([]func(*Options){func(o *Options) {
		o.Engines = func(engine.Kind) (engine.Engine, error) {
			return guestEngine{Host: host.New(host.Options{}), home: home, upErr: upErr}, nil
		}
		o.Env = func(context.Context, engine.Cell, int, bool) ([]string, error) {
			return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "WHERE=guest"}, nil
		}
	}}, change...)...)
	b.cell.Kind, b.cell.WorkspaceHome = engine.Docker, home
	return b
}

func TestGuestRunsTheWholeLineAndKeepsItsDirectory(t *testing.T) {
	b := newGuestSubject(t, nil)
	root := b.cell.ProjectDir
	if err := os.MkdirAll(filepath.Join(root, "sub dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"echo $WHERE $AGENT; pwd":      "guest cellmux\n" + root + "\n",
		"echo a; echo b >&2; exit 3":   "a\nb\n",
		"cat <<E\nx\nE":                "x\n",
		"echo x # a comment":           "x\n",
		"echo $# $1":                   "0\n",
		"set -e; false; echo not":      "",
		"cat":                          "",
		"echo 'it'\\''s' \"$WHERE\"":   "it's guest\n",
		"exec echo replaced":           "replaced\n",
		"trap 'echo mine' EXIT; :":     "mine\n",
		"sh -c 'kill -9 $$'; echo $?":  "Killed\n137\n",
		"exec >/dev/null; echo hidden": "",
	} {
		e := b.run(line)
		if e.Record.Output != want && !strings.Contains(line, "kill") {
			t.Errorf("%s: %+v", line, e.Record)
		}
	}
	if e := b.run("exit 3"); e.Record.ExitCode != 3 || e.Record.Error != "" || e.State != Exited {
		t.Errorf("%+v", e)
	}
	if e := b.run("if"); e.Record.ExitCode != 2 {
		t.Errorf("%+v", e)
	}
	for _, line := range []string{"cd 'sub dir'", "cd 'sub dir'; exit 3", "cd 'sub dir' # x", "set -e; cd 'sub dir'; false", "cd 'sub dir'; exec >/dev/null"} {
		b.run("cd '" + root + "'")
		b.run(line)
		e := b.run("pwd")
		if want := filepath.Join(root, "sub dir"); e.Record.Output != want+"\n" || e.Record.CWD != want {
			t.Errorf("after %q: %+v", line, e.Record)
		}
	}
	// A directory that vanished: the nearest above it.
	if err := os.RemoveAll(filepath.Join(root, "sub dir")); err != nil {
		t.Fatal(err)
	}
	if e := b.run("pwd"); e.Record.Output != root+"\n" {
		t.Errorf("after it vanished: %+v", e.Record)
	}
	if files, _ := os.ReadDir(filepath.Join(b.cell.WorkspaceHome, cwdDir)); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestGuestCancelEndsTheSessionInside(t *testing.T) {
	b := newGuestSubject(t, nil)
	for _, line := range []string{
		"echo up; sleep 600",
		"setsid sleep 600 & echo up; wait",
		"trap '' INT TERM HUP; echo up; while :; do sleep 600; done",
	} {
		h := b.start(line, Context)
		waitForOutput(t, h, "up")
		begin := time.Now()
		h.Cancel()
		e := b.wait(h)
		if took := time.Since(begin); took > 2500*time.Millisecond {
			t.Errorf("%s: took %v", line, took)
		}
		if e.State != Cancelled || e.Record.ExitCode != 130 || e.Record.Output != "up\n" {
			t.Errorf("%s: %+v", line, e)
		}
		waitUntil(t, func() bool {
			left, err := proc.Members(proc.Tree{Marker: e.ID})
			return err == nil && len(left) == 0
		})
	}
}

func TestGuestThatCannotStartIsARecord(t *testing.T) {
	b := newGuestSubject(t, errors.New("docker does not answer; start it with systemctl start docker"))
	e := b.run("true")
	if e.State != NeverStarted || e.Record.ExitCode != -1 || !strings.Contains(e.Record.Error, "docker does not answer") {
		t.Errorf("%+v", e)
	}
	if len(b.handed()) != 1 {
		t.Error("not handed over")
	}
}

func TestGuestCellsHaveASideOnTheHost(t *testing.T) {
	b := newGuestSubject(t, nil)
	h, err := b.Start(t.Context(), Request{Cell: b.cell, Line: "cd /; pwd", OnHost: true})
	if err != nil {
		t.Fatal(err)
	}
	if e := b.wait(h); e.Record.Output != "/\n" || !e.OnHost {
		t.Errorf("%+v", e)
	}
	if e := b.run("pwd"); e.Record.Output != b.cell.ProjectDir+"\n" {
		t.Errorf("the guest's side moved too: %+v", e.Record)
	}
}

func TestWhatAGuestSaysItsDirectoryIsIsHostile(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	home, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = home.Close() }()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("/etc"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(string) error{
		"link":     func(p string) error { return os.Symlink(secret, p) },
		"relative": func(p string) error { return os.WriteFile(p, []byte("etc"), 0o600) },
		"escape":   func(p string) error { return os.WriteFile(p, []byte("/a\x1b[2J"), 0o600) },
		"newline":  func(p string) error { return os.WriteFile(p, []byte("/a\n/b"), 0o600) },
		"long":     func(p string) error { return os.WriteFile(p, []byte("/"+strings.Repeat("x", maxPath)), 0o600) },
		"fifo":     func(p string) error { return mkfifo(p) },
		"missing":  func(string) error { return nil },
	} {
		path := filepath.Join(dir, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if got := readCwd(home, name); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	good := filepath.Join(dir, "good")
	if err := os.WriteFile(good, []byte("/src/a b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readCwd(home, "good"); got != "/src/a b" {
		t.Errorf("%q", got)
	}
}

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }

func TestTheBlockListReachesGuests(t *testing.T) {
	blocks := func(o *Options) {
		o.Blocks = []shell.BlockFunc{shell.ArgumentsBlocker("git", []string{"push"}, nil)}
		o.BlockNames = []string{"git push"}
	}
	b := newGuestSubject(t, nil, blocks)
	for _, line := range []string{"git push", "cd /; env git -C . push origin", "if false; then sh -c 'git push'; fi"} {
		if e := b.run(line); e.State != NeverStarted || e.Record.Error != `"git" is not allowed by "git push" of the block list` {
			t.Errorf("%s: %s %+v", line, e.State, e.Record)
		}
	}
	if e := b.run("echo git push"); e.Record.Output != "git push\n" {
		t.Errorf("%+v", e.Record)
	}
}
