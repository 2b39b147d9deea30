//go:build unix

package tmux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
)

func TestOpenTagsThePaneAtItsRealSize(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		p.SetSize(133, 47)
		id := p.openShell("api-auth", 3, "exec sleep 1000")
		p.Refresh(t.Context())
		got, ok := p.pane(id)
		if !ok {
			t.Fatalf("not in the list: %+v", p.List())
		}
		p.eventually("the program", func() bool { p.Refresh(t.Context()); got, _ = p.pane(id); return got.Command == "sleep" })
		if got.Cell != "api-auth" || got.Slot != 3 || got.Agent != "shell" || got.Session != "api-auth-3" ||
			got.Width != 133 || got.Height != 46 || got.Dead || got.PID <= 1 || got.Path != p.dir || got.Attached != 0 {
			t.Errorf("got %+v", got)
		}
		if l := p.List(); !l.Known || l.ServerPID != p.serverPID() || l.Version == "" || len(l.Panes) != 1 {
			t.Errorf("got %+v", l)
		}
	})
}

func TestLivePaneIsNotReplacedAndDeadOneIsInPlace(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		id := p.openShell("api", 0, "read x; echo last words; exit 7")
		_, err := p.Open(t.Context(), engine.PaneSpec{Cell: "api", Slot: 0, Dir: p.dir, Argv: []string{"sleep", "1000"}})
		if !errors.Is(err, ErrLive) {
			t.Fatalf("a live pane was replaced: %v", err)
		}
		if err := p.Keys(t.Context(), id, "Enter"); err != nil {
			t.Fatal(err)
		}
		p.eventually("its death", func() bool { p.Refresh(t.Context()); pane, _ := p.pane(id); return pane.Dead && pane.ExitStatus == 7 })
		p.shows(id, "last words")
		again, err := p.Open(t.Context(), engine.PaneSpec{Cell: "api", Slot: 0, Agent: "two", Dir: p.dir, Argv: []string{"sh", "-c", "echo second life; exec sleep 1000"}})
		if err != nil || again != id {
			t.Fatalf("got %q, %v", again, err)
		}
		p.shows(id, "second life")
		p.Refresh(t.Context())
		if pane, _ := p.pane(id); pane.Dead || pane.Agent != "two" || pane.Cell != "api" {
			t.Errorf("got %+v", pane)
		}
	})
}

// A slot whose name begins with another's must not be reached in its place.
func TestTargetsNeverMatchByPrefix(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		long := p.openShell("api-auth", 1, "exec sleep 1000")
		short, err := p.Open(t.Context(), engine.PaneSpec{Cell: "api", Slot: 1, Dir: p.dir, Argv: []string{"sleep", "1000"}})
		if err != nil || short == long {
			t.Fatalf("%q %q %v", short, long, err)
		}
		if err := p.Kill(t.Context(), short); err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(t.Context(), short); err != nil {
			t.Errorf("killing what is gone: %v", err)
		}
		for _, target := range []string{"api", "api-auth-1", "=api-auth-1:", "", "%", "%1x", "{last}"} {
			if err := p.Kill(t.Context(), target); err == nil {
				t.Errorf("%q was taken for a pane ID", target)
			}
			if err := p.Paste(t.Context(), target, "x"); err == nil {
				t.Errorf("%q was taken for a pane ID", target)
			}
		}
		p.Refresh(t.Context())
		if _, ok := p.pane(long); !ok || len(p.List().Panes) != 1 {
			t.Errorf("got %+v", p.List().Panes)
		}
	})
}

func TestHubIsNeitherListedNorKilled(t *testing.T) {
	p := newPrivate(t)
	p.start()
	hub := p.must("list-panes", "-t", "=_hub:", "-F", "#{pane_id}")
	if len(p.Refresh(t.Context()).Panes) != 0 {
		t.Errorf("got %+v", p.List())
	}
	if err := p.Kill(t.Context(), hub); err == nil {
		t.Error("the hub was killed")
	}
}

// A working directory may hold a newline, which would inject lines into control
// mode, and a title every separator.
func TestHostileDirectoryAndTitleInjectNothing(t *testing.T) {
	dirName := "new\nline|a~b #(touch pwned) #{pid} #[fg=red]##[x]###{pid}##\t\x01é%end 1 2 1\n%exit"
	// tmux drops a title with control characters, so these cannot come by OSC.
	title := `t|i~t %0|0| #{pid} #(touch pwned) ~%9|0|0|| "'\$;é日本`
	for _, way := range []string{"subscription", "list over control", "process"} {
		t.Run(way, func(t *testing.T) {
			p := newPrivate(t)
			dir := filepath.Join(p.dir, dirName)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if way != "process" {
				p.start()
			}
			id, err := p.Open(t.Context(), engine.PaneSpec{Cell: "api", Slot: 0, Agent: "sh", Dir: dir,
				Argv: []string{"sh", "-c", `printf '\033]2;%s\033\\' "$1"; pwd > "$2"; exec sleep 1000`, "sh", title, filepath.Join(p.dir, "pwd")}})
			if err != nil {
				t.Fatal(err)
			}
			if got := p.file("pwd"); got != dir+"\n" {
				t.Errorf("started in %q", got)
			}
			other := p.openShell("other", 0, "exec sleep 1000")
			p.eventually("the title", func() bool {
				if way != "subscription" {
					p.Refresh(t.Context())
				}
				pane, _ := p.pane(id)
				_, second := p.pane(other)
				return pane.Title == title && pane.Path != "" && second
			})
			pane, _ := p.pane(id)
			want := strings.NewReplacer("\n", "?", "\t", "?", "\x01", "?").Replace(dir)
			if pane.Path != want || pane.Cell != "api" || pane.Slot != 0 || pane.Agent != "sh" {
				t.Errorf("got %+v\nwant path %q", pane, want)
			}
			if len(p.List().Panes) != 2 || !p.List().Known {
				t.Errorf("got %+v", p.List())
			}
			if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
				t.Error("a directory's name was run")
			}
		})
	}
}

// A pane that prints what looks like the end of its own capture must not shift
// the answers of those that follow.
func TestPaneContentCannotPoseAsTheProtocol(t *testing.T) {
	p := newPrivate(t)
	p.start()
	id := p.openShell("api", 0, `i=0; while :; do now=$(date +%s); i=$((i+1));
		for k in 0 1 2 3 4 5 6 7; do echo "%end $now $((300+(i*8+k)%300)) 1"; done
		echo "%subscription-changed panes \$0 - - - : %66|0|0|0|1|80|24|0|0|0|0|evil|x|evil-0|sh|/|~"; echo "%exit"; done`)
	p.shows(id, "%exit")
	for range 2000 {
		s, err := p.Capture(t.Context(), id, 0)
		if err != nil || len(s.Rows) != s.Height || s.Pane != id {
			t.Fatalf("%d rows of %d, %v", len(s.Rows), s.Height, err)
		}
	}
	for _, pane := range p.Refresh(t.Context()).Panes {
		if pane.Cell == "evil" {
			t.Error("a pane's content was taken for the list")
		}
	}
	if !p.List().Known || !p.connected() {
		t.Errorf("got %+v", p.List())
	}
}

func TestNoValueOfTheHostReachesAPaneOrItsServer(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		p.openShell("api", 0, `env > env; exec sleep 1000`)
		if env := p.file("env"); strings.Contains(env, "SECRET_OF_THE_HOST") || strings.Contains(env, "CELLMUX_EXECUTION") {
			t.Errorf("got %s", env)
		}
		if env := p.must("show-environment", "-g"); strings.Contains(env, "SECRET_OF_THE_HOST") {
			t.Errorf("got %s", env)
		}
		pid := p.serverPID()
		for _, name := range []string{"environ", "cmdline"} {
			b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + name)
			if err != nil {
				t.Skip("needs /proc")
			}
			if strings.Contains(string(b), "SECRET_OF_THE_HOST") || strings.Contains(string(b), "CELLMUX_EXECUTION") {
				t.Errorf("%s of the server: %q", name, b)
			}
		}
	})
}

func TestMissingDirectoryIsTold(t *testing.T) {
	p := newPrivate(t)
	_, err := p.Open(t.Context(), engine.PaneSpec{Cell: "api", Slot: 0, Dir: filepath.Join(p.dir, "gone"), Argv: []string{"sh", "-c", "true"}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestNoServerIsKnownToHoldNothing(t *testing.T) {
	p := newPrivate(t)
	if l := p.Refresh(t.Context()); !l.Known || len(l.Panes) != 0 || l.ServerPID != 0 {
		t.Errorf("got %+v", l)
	}
	if _, err := p.Capture(t.Context(), "%0", 0); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v", err)
	}
	if err := p.Paste(t.Context(), "%0", "x"); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v", err)
	}
}

func TestKillEndsTheWholeTree(t *testing.T) {
	both(t, func(t *testing.T, p *private) {
		id := p.openShell("api", 0, `setsid sh -c 'trap "" HUP TERM; echo $$ > escaped; while :; do sleep 1; done' & while [ ! -s escaped ]; do sleep 0.01; done; echo $$ > leader; exec sleep 1000`)
		leader, _ := strconv.Atoi(strings.TrimSpace(p.file("leader")))
		escaped, _ := strconv.Atoi(strings.TrimSpace(p.file("escaped")))
		if !alive(leader) || !alive(escaped) {
			t.Fatal("not started")
		}
		if err := p.Kill(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if alive(leader) || alive(escaped) {
			t.Errorf("leader lives: %v, escaped lives: %v", alive(leader), alive(escaped))
		}
		if len(p.Refresh(t.Context()).Panes) != 0 {
			t.Errorf("got %+v", p.List())
		}
	})
}

func TestChangesArePushed(t *testing.T) {
	p := newPrivate(t)
	p.start()
	id := p.openShell("api", 0, `read x; printf '\033]2;asks\007'; read y; exit 3`)
	p.eventually("the pane, by notification", func() bool { _, ok := p.pane(id); return ok })
	await := func(what string, cond func(Pane) bool) {
		t.Helper()
		begin := time.Now()
		p.eventually(what, func() bool { pane, _ := p.pane(id); return cond(pane) })
		// A tick of the subscription is a second; the machine may be busy.
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("%s took %v", what, took)
		}
	}
	press := func() {
		if err := p.Keys(t.Context(), id, "Enter"); err != nil {
			t.Fatal(err)
		}
	}
	press()
	await("the title", func(pane Pane) bool { return pane.Title == "asks" })
	press()
	await("the exit status", func(pane Pane) bool { return pane.Dead && pane.ExitStatus == 3 })
	p.must("kill-session", "-t", "=api-0")
	begin := time.Now()
	p.eventually("its disappearance", func() bool { _, ok := p.pane(id); return !ok })
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestSignalledProgramShowsAsShellsDo(t *testing.T) {
	p := newPrivate(t)
	p.start()
	id := p.openShell("api", 0, "kill -KILL $$")
	p.eventually("its death", func() bool { pane, _ := p.pane(id); return pane.Dead && pane.ExitKnown })
	if pane, _ := p.pane(id); pane.ExitStatus != 137 {
		t.Errorf("got %d", pane.ExitStatus)
	}
}

// tmux 3.3a misses the end of about one child in a hundred: the program stays
// defunct and its pane has no exit status.
func TestMissedEndOfAProgramIsAskedFor(t *testing.T) {
	p := newPrivate(t)
	p.start()
	for i := range 30 {
		id := p.openShell("api", i, "read y; exit 3")
		if err := p.Keys(t.Context(), id, "Enter"); err != nil {
			t.Fatal(err)
		}
		p.eventually("the exit status", func() bool {
			p.Refresh(t.Context())
			pane, _ := p.pane(id)
			return pane.Dead && pane.ExitKnown && pane.ExitStatus == 3
		})
	}
}

// A server that is stopped answers nothing: that is unknown, not dead, and all
// comes back by itself.
func TestStoppedServerIsUnknownAndRecovers(t *testing.T) {
	p := newPrivate(t, func(o *Options) { o.Timeout = 500 * time.Millisecond })
	p.start()
	id := p.openShell("api", 0, "exec sleep 1000")
	p.eventually("the pane", func() bool { _, ok := p.pane(id); return ok })
	pid := p.serverPID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	p.eventually("unknown", func() bool { return !p.List().Known })
	if l := p.List(); len(l.Panes) != 1 || l.Err == "" {
		t.Errorf("got %+v", l)
	}
	begin := time.Now()
	if _, err := p.Capture(t.Context(), id, 0); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
	if err := p.Kill(t.Context(), id); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("calls blocked for %v", took)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.eventually("recovery", func() bool { l := p.List(); _, ok := p.pane(id); return l.Known && ok && l.ServerPID == pid })
	if _, err := p.Capture(t.Context(), id, 0); err != nil {
		t.Error(err)
	}
}

func TestStoppedServerIsUnknownToAProcessToo(t *testing.T) {
	p := newPrivate(t, func(o *Options) { o.Timeout = 300 * time.Millisecond })
	p.openShell("api", 0, "exec sleep 1000")
	if l := p.Refresh(t.Context()); !l.Known || len(l.Panes) != 1 {
		t.Fatalf("got %+v", l)
	}
	pid := p.serverPID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	if l := p.Refresh(t.Context()); l.Known || len(l.Panes) != 1 {
		t.Errorf("got %+v", l)
	}
}

func TestKilledServerLeavesAKnownEmptyListAndANewHub(t *testing.T) {
	p := newPrivate(t)
	p.start()
	id := p.openShell("api", 0, "exec sleep 1000")
	p.eventually("the pane", func() bool { _, ok := p.pane(id); return ok })
	old := p.List().ServerPID
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.eventually("a new server", func() bool {
		l := p.List()
		return l.Known && l.ServerPID != old && l.ServerPID != 0 && len(l.Panes) == 0 && p.connected()
	})
	p.openShell("api", 0, "echo again; exec sleep 1000")
}

func TestKilledControlClientIsReplaced(t *testing.T) {
	p := newPrivate(t)
	p.start()
	id := p.openShell("api", 0, "exec sleep 1000")
	p.eventually("the pane", func() bool { _, ok := p.pane(id); return ok })
	server := p.List().ServerPID
	p.mu.Lock()
	first := p.control
	p.mu.Unlock()
	if err := syscall.Kill(first.process.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.eventually("another control client", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.control != nil && p.control != first
	})
	if l := p.Refresh(t.Context()); !l.Known || l.ServerPID != server || len(l.Panes) != 1 {
		t.Errorf("got %+v", l)
	}
}

// Somebody else ends the server and starts one on the same socket, without our
// configuration.
func TestServerRestartedBySomebodyElseIsAdopted(t *testing.T) {
	p := newPrivate(t)
	p.start()
	p.openShell("api", 0, "exec sleep 1000")
	old := p.List().ServerPID
	p.must("kill-server", ";", "display-message", "-p", "x")
	p.eventually("their start", func() bool { // a server that is just ending refuses
		_, err := p.raw("new-session", "-d", "-s", "theirs", "sleep 1000")
		return err == nil
	})
	p.eventually("their server", func() bool {
		l := p.List()
		return l.Known && l.ServerPID != old && len(l.Panes) == 1 && l.Panes[0].Session == "theirs" && p.connected()
	})
	if pane := p.List().Panes[0]; pane.Cell != "" || pane.Slot != -1 {
		t.Errorf("a stranger's pane is taken for ours: %+v", pane)
	}
	p.eventually("our configuration", func() bool {
		out, _ := p.raw("show-options", "-g", "-v", "remain-on-exit")
		return out == "on"
	})
}

func TestRunningServerIsToldOfANewConfiguration(t *testing.T) {
	p := newPrivate(t)
	stop := p.start()
	p.openShell("api", 0, "exec sleep 1000") // keeps the server
	stop()
	if keys := p.must("list-keys", "-T", "root", "F12"); !strings.Contains(keys, "detach-client") {
		t.Errorf("got %q", keys)
	}
	o := p.opts
	o.Prefs = Prefs{DetachKeys: []string{"F9", "'"}, HistoryLimit: 77, Mouse: true}
	p.Server = New(o)
	p.start()
	if keys := p.must("list-keys", "-T", "root", "F9"); !strings.Contains(keys, "detach-client") {
		t.Errorf("got %q", keys)
	}
	if got, err := p.raw("list-keys", "-T", "root", "F12"); err == nil && strings.Contains(got, "detach-client") {
		t.Errorf("F12 still detaches: %q", got)
	}
	if got := p.must("show-options", "-g", "-v", "history-limit"); got != "77" {
		t.Errorf("got %q", got)
	}
}

func TestUnchangedConfigurationIsNotReadAgain(t *testing.T) {
	p := newPrivate(t)
	stop := p.start()
	p.openShell("api", 0, "exec sleep 1000")
	stop()
	p.must("set-option", "-g", "history-limit", "1234") // the user's own doing
	p.start()
	if got := p.must("show-options", "-g", "-v", "history-limit"); got != "1234" {
		t.Errorf("got %q", got)
	}
}

func TestLastCellmuxLeavesNoServerBehind(t *testing.T) {
	p := newPrivate(t)
	stop := p.start()
	pid := p.serverPID()
	stop()
	p.eventually("the server's end", func() bool { return !alive(pid) })

	p = newPrivate(t)
	stop = p.start()
	id := p.openShell("api", 0, "exec sleep 1000")
	pid = p.serverPID()
	stop()
	if !alive(pid) {
		t.Fatal("panes were taken away")
	}
	if l := p.Refresh(t.Context()); !l.Known || len(l.Panes) != 1 || l.Panes[0].ID != id {
		t.Errorf("got %+v", l)
	}
}

func TestMissingTmuxIsASentence(t *testing.T) {
	s := New(Options{Runner: newPrivate(t).opts.Runner, RuntimeDir: t.TempDir(), Env: []string{"PATH=" + t.TempDir()}})
	if l := s.Refresh(t.Context()); l.Known || !strings.Contains(l.Err, "install") {
		t.Errorf("got %+v", l)
	}
	if _, err := s.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "install") {
		t.Errorf("got %v", err)
	}
}

// The subscription tells of the first second, too. Whether tmux reads what is sent
// before or after it has attached the client is a matter of luck: many try.
func TestDeathRightAfterTheClientHasComeIsTold(t *testing.T) {
	for i := range 12 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			p := newPrivate(t)
			id := p.openShell("api", 0, "read line; exit 7")
			p.start()
			p.must("send-keys", "-t", id, "Enter")
			began := time.Now()
			p.eventually("its death", func() bool { pane, found := p.pane(id); return found && pane.Dead })
			if took := time.Since(began); took > reconcile/2 {
				t.Errorf("it was told after %v, by the list that is asked for now and then", took)
			}
		})
	}
}

// holding is a runner whose next process that lists the panes, once it is armed,
// comes back when it is let go, with what tmux said before.
type holding struct {
	proc.Runner
	armed      atomic.Bool
	said, gone chan struct{}
}

func (h *holding) Run(ctx context.Context, c proc.Cmd) (proc.Result, error) {
	result, err := h.Runner.Run(ctx, c)
	if strings.Contains(strings.Join(c.Argv, " "), "#{pane_dead}") && h.armed.CompareAndSwap(true, false) {
		close(h.said)
		<-h.gone
	}
	return result, err
}

// A process that was asked before a pane died, and answers after the subscription
// has told of the death, does not bring the pane back: nothing would tell again.
func TestSlowAnswerDoesNotBringADeadPaneBack(t *testing.T) {
	held := &holding{Runner: proc.New(), said: make(chan struct{}), gone: make(chan struct{})}
	p := newPrivate(t, func(o *Options) { o.Runner = held })
	id := p.openShell("api", 0, "read line; exit 7")
	held.armed.Store(true)
	answered := make(chan List, 1)
	go func() { answered <- p.Refresh(t.Context()) }()
	<-held.said
	p.start()
	p.must("send-keys", "-t", id, "Enter")
	p.eventually("its death", func() bool { pane, found := p.pane(id); return found && pane.Dead })
	close(held.gone)
	list := <-answered
	if len(list.Panes) != 1 || !list.Panes[0].Dead {
		t.Errorf("the slow answer is %+v", list.Panes)
	}
	if pane, _ := p.pane(id); !pane.Dead {
		t.Errorf("the list is %+v", p.List().Panes)
	}
}
