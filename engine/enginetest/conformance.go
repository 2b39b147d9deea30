//go:build unix

package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"cellmux/cell"
	"cellmux/cell/proc"
	"cellmux/engine"
)

// patience bounds every wait. It is generous: it is reached by failures alone.
const patience = 30 * time.Second

// Subject is an engine under test, with a cell that nobody else uses.
type Subject struct {
	Engine engine.Engine
	// Cell has an existing, empty project directory and workspace home. Guests
	// need sh, env, cat, sleep, setsid, stty and mkfifo on Path.
	Cell engine.Cell
	Path string // PATH inside
	// TextOnly says that the transport carries UTF-8 alone. It must refuse
	// everything else, and never alter it.
	TextOnly bool
}

// Conformance runs the suite. start makes a fresh Subject and arranges for its
// end; it may skip.
func Conformance(t *testing.T, start func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Subject)
	}{
		{"is usable and says who it is", testProbe},
		{"comes up once, and again without effect", testUp},
		{"refuses a project directory that has gone", testUpWithoutProject},
		{"does nothing for a context that has ended", testEndedContext},
		{"hands the environment over pair by pair", testEnvironment},
		{"hands over cell.GuestEnv, the later of two equal names winning", testGuestEnv},
		{"keeps secrets out of every argv", testSecrets},
		{"passes hostile words unchanged", testHostileWords},
		{"carries bytes that are not UTF-8, or refuses them", testBytes},
		{"runs in the project directory or where it was told", testDirectory},
		{"lets files made inside belong to the user outside", testFiles},
		{"passes input, output and the exit status through", testStreams},
		{"gives a terminal when asked, and none when not", testTerminal},
		{"refuses an empty command", testEmptyCommand},
		{"decides a launch purely", testPure},
		{"ends an execution with everything in it, and nothing else", testEnd},
		{"ends what is not there without an error", testEndNothing},
		{"goes down and comes up with the files still there", testDown},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, start(t)) })
	}
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// up makes the cell ready.
func (s Subject) up(t *testing.T) {
	t.Helper()
	if err := s.Engine.Up(deadline(t), s.Cell, nil); err != nil {
		t.Fatalf("Up: %v", err)
	}
}

// launch turns a spec into a process to start.
func (s Subject) launch(t *testing.T, spec engine.Spec) engine.Launch {
	t.Helper()
	spec.Cell = s.Cell
	if !slices.ContainsFunc(spec.Env, func(p string) bool { return strings.HasPrefix(p, "PATH=") }) {
		spec.Env = append([]string{"PATH=" + s.Path}, spec.Env...)
	}
	l, err := s.Engine.Launch(spec)
	if err != nil {
		t.Fatalf("Launch %q: %v", spec.Argv, err)
	}
	return l
}

// run runs a spec to its end, without a terminal.
func (s Subject) run(t *testing.T, spec engine.Spec, stdin io.Reader) proc.Result {
	t.Helper()
	c := s.launch(t, spec).Cmd()
	c.Stdin, c.Timeout = stdin, patience
	result, err := proc.New().Run(context.Background(), c)
	if err != nil {
		t.Fatalf("run %q: %v (%s)", spec.Argv, err, result.Stderr)
	}
	return result
}

// output runs a shell line that must succeed.
func (s Subject) output(t *testing.T, line string, words ...string) string {
	t.Helper()
	result := s.run(t, engine.Spec{Argv: append([]string{"sh", "-c", line, "sh"}, words...)}, nil)
	if result.ExitCode != 0 {
		t.Fatalf("%s: exit %d: %s", line, result.ExitCode, result.Stderr)
	}
	return string(result.Stdout)
}

func testProbe(t *testing.T, s Subject) {
	if a := s.Engine.Probe(deadline(t)); !a.Usable || a.Reason != "" {
		t.Errorf("Probe = %+v, want usable and no reason", a)
	}
	if got := s.Engine.Kind(); got != s.Cell.Kind {
		t.Errorf("Kind = %q, want %q", got, s.Cell.Kind)
	}
	g := s.Engine.Guest(s.Cell)
	for what, path := range map[string]string{"home": g.Home, "project": g.ProjectDir} {
		if !strings.HasPrefix(path, "/") {
			t.Errorf("the guest's %s %q is not an absolute path", what, path)
		}
	}
	if g.Kind == "" || g.Hostname == "" {
		t.Errorf("the guest has no kind or hostname: %+v", g)
	}
}

func testUp(t *testing.T, s Subject) {
	s.up(t)
	if got := s.output(t, "echo first"); got != "first\n" {
		t.Errorf("got %q", got)
	}
	s.up(t)
	if got := s.output(t, "echo second"); got != "second\n" {
		t.Errorf("got %q", got)
	}
}

func testUpWithoutProject(t *testing.T, s Subject) {
	dir := filepath.Join(t.TempDir(), "project")
	broken := s.Cell
	broken.ProjectDir = dir
	refused := func(why string) {
		t.Helper()
		err := s.Engine.Up(deadline(t), broken, nil)
		if err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: Up = %v, want an error that names the directory", why, err)
		}
	}
	refused("gone")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("a file")
}

func testEndedContext(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Engine.Up(ctx, s.Cell, nil); err == nil {
		t.Error("Up did not mind")
	}
	if err := s.Engine.End(ctx, s.Cell, "some-execution"); err == nil {
		t.Error("End did not mind")
	}
}

// hostilePairs are values that a transport may cut, quote, expand or split.
var hostilePairs = []string{
	"EMPTY=", "SPACES= a  b ", "EQUALS=a=b=c", "QUOTE='\"`", "DOLLAR=$HOME ${HOME} $(id)", "BACKSLASH=\\ \\n \\\\",
	"NEWLINE=a\nb\n", "TAB=\t", "CONTROL=\x01\x1b[31m\x7f", "UNICODE=é 😀 \u200d", "DASH=--privileged",
	"HASH=# no comment", "STAR=*", "TILDE=~", "LONG=" + strings.Repeat("x", 100_000),
	"lower_case=1", "_UNDERSCORE=1", "WITH1DIGIT=1",
}

func (s Subject) environment(t *testing.T, env []string) []string {
	t.Helper()
	result := s.run(t, engine.Spec{Argv: []string{"env", "-0"}, Env: env}, nil)
	if result.ExitCode != 0 {
		t.Fatalf("env -0: exit %d: %s", result.ExitCode, result.Stderr)
	}
	return strings.Split(strings.TrimSuffix(string(result.Stdout), "\x00"), "\x00")
}

func testEnvironment(t *testing.T, s Subject) {
	s.up(t)
	got := s.environment(t, hostilePairs)
	for _, pair := range hostilePairs {
		if !slices.Contains(got, pair) {
			t.Errorf("%.60q did not arrive", pair)
		}
	}
}

func testGuestEnv(t *testing.T, s Subject) {
	s.up(t)
	in := cell.EnvInput{
		WorkspaceName: s.Cell.Workspace, CellName: s.Cell.Name + "-0", ProjectDir: s.Engine.Guest(s.Cell).ProjectDir,
		Timezone: "Europe/Prague", Env: map[string]string{"TZ": "UTC", "GREETING": "hello $USER", "NOTHING": ""},
		Mise: map[string]string{"node": "22"},
	}
	pairs := cell.GuestEnv(in)
	if !s.Engine.Guest(s.Cell).Isolated {
		pairs = cell.HostEnv(in)
	}
	got := s.environment(t, pairs)
	for _, pair := range engine.LastWins(pairs) {
		if !slices.Contains(got, pair) {
			t.Errorf("%q did not arrive; the guest has %q", pair, got)
		}
	}
	names := make(map[string]bool)
	for _, pair := range got {
		name, _, _ := strings.Cut(pair, "=")
		if names[name] {
			t.Errorf("%s stands there twice", name)
		}
		names[name] = true
	}
	if slices.Contains(got, "TZ=Europe/Prague") {
		t.Error("the earlier TZ won")
	}
}

func testSecrets(t *testing.T, s Subject) {
	s.up(t)
	const canary = "canary-3f9b1c"
	fifo, done := s.fifo(t, "ready")
	l := s.launch(t, engine.Spec{
		Argv:    []string{"sh", "-c", `exec 9>"$1"; printf %s "$API_TOKEN" >&9; cat`, "sh", fifo},
		Env:     []string{"API_TOKEN=" + canary},
		Secrets: []string{"API_TOKEN"},
	})
	if strings.Contains(strings.Join(l.Argv, "\n"), canary) {
		t.Errorf("the launch's argv holds the secret: %q", l.Argv)
	}
	ctx := deadline(t)
	p, err := proc.New().Start(ctx, l.Cmd())
	if err != nil {
		t.Fatal(err)
	}
	defer p.End()
	go func() { _, _ = io.Copy(io.Discard, p.Stdout()) }()
	if got := done.read(t, len(canary)); got != canary {
		t.Fatalf("inside, API_TOKEN is %q", got)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Skip("no /proc to look through")
	}
	for _, file := range lines {
		if line, _ := os.ReadFile(file); bytes.Contains(line, []byte(canary)) {
			t.Errorf("%s holds the secret: %q", file, line)
		}
	}
}

func testHostileWords(t *testing.T, s Subject) {
	s.up(t)
	words := []string{
		"", " ", "a b", "'", `"`, "$(id)", "`id`", "$HOME", "\\", "\n", "-n", "--", "-e", "*", "?", "~", "é😀",
		"\x1b[31m", ";", "&&", "|", "!", "#", "{a,b}", strings.Repeat("y", 50_000),
	}
	got := s.output(t, `printf '%s\0' "$@"`, words...)
	if want := strings.Join(words, "\x00") + "\x00"; got != want {
		t.Errorf("got %.200q, want %.200q", got, want)
	}
}

func testBytes(t *testing.T, s Subject) {
	s.up(t)
	word := engine.Spec{Cell: s.Cell, Argv: []string{"printf", "%s", "caf\xe9"}}
	variable := engine.Spec{Cell: s.Cell, Argv: []string{"sh", "-c", `printf %s "$RAW"`}, Env: []string{"RAW=caf\xe9"}}
	for _, spec := range []engine.Spec{word, variable} {
		if s.TextOnly {
			if l, err := s.Engine.Launch(spec); err == nil {
				t.Errorf("Launch %q with %q = %q, want a refusal", spec.Argv, spec.Env, l)
			}
			continue
		}
		if got := string(s.run(t, spec, nil).Stdout); got != "caf\xe9" {
			t.Errorf("%q became %q", "caf\xe9", got)
		}
	}
}

func testDirectory(t *testing.T, s Subject) {
	s.up(t)
	project := s.Engine.Guest(s.Cell).ProjectDir
	if got := s.output(t, "pwd -P"); got != project+"\n" && !sameDirectory(strings.TrimSpace(got), project) {
		t.Errorf("runs in %q, want %q", got, project)
	}
	result := s.run(t, engine.Spec{Argv: []string{"sh", "-c", "pwd"}, Dir: "/tmp"}, nil)
	if got := string(result.Stdout); got != "/tmp\n" {
		t.Errorf("told /tmp, it runs in %q (%s)", got, result.Stderr)
	}
}

// sameDirectory holds where a path of the host itself runs through a link.
func sameDirectory(a, b string) bool {
	real, err := filepath.EvalSymlinks(b)
	return err == nil && real == a
}

func testFiles(t *testing.T, s Subject) {
	s.up(t)
	s.output(t, `mkdir sub && echo content > sub/file && echo home > "$1"/from-inside`, s.Engine.Guest(s.Cell).Home)
	for _, file := range []string{filepath.Join(s.Cell.ProjectDir, "sub/file"), filepath.Join(s.homeOutside(), "from-inside")} {
		info, err := os.Stat(file)
		if err != nil {
			t.Errorf("a file made inside is not outside: %v", err)
			continue
		}
		if uid := owner(info); uid >= 0 && uid != os.Getuid() {
			t.Errorf("%s belongs to uid %d outside, want %d", file, uid, os.Getuid())
		}
	}
	if err := os.WriteFile(filepath.Join(s.Cell.ProjectDir, "outside"), []byte("from outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.output(t, "cat outside"); got != "from outside" {
		t.Errorf("inside, a file made outside holds %q", got)
	}
}

func (s Subject) homeOutside() string {
	if s.Engine.Guest(s.Cell).Isolated {
		return s.Cell.WorkspaceHome
	}
	return s.Engine.Guest(s.Cell).Home
}

func testStreams(t *testing.T, s Subject) {
	s.up(t)
	input := strings.Repeat("line with \x00 and \xff\n", 10_000)
	result := s.run(t, engine.Spec{Argv: []string{"sh", "-c", "cat; echo talk >&2; exit 42"}}, strings.NewReader(input))
	if string(result.Stdout) != input {
		t.Errorf("%d bytes came back of %d", len(result.Stdout), len(input))
	}
	if string(result.Stderr) != "talk\n" {
		t.Errorf("standard error is %q", result.Stderr)
	}
	if result.ExitCode != 42 {
		t.Errorf("exit %d, want 42", result.ExitCode)
	}
}

func testTerminal(t *testing.T, s Subject) {
	s.up(t)
	const ask = `test -t 0 && test -t 1 && echo "terminal $(stty size) $TERM" || echo none`
	result := s.run(t, engine.Spec{Argv: []string{"sh", "-c", ask}}, nil)
	if got := string(result.Stdout); got != "none\n" {
		t.Errorf("without a terminal it says %q (%s)", got, result.Stderr)
	}

	// An engine's client may tell the size a moment after the start.
	const askSized = `n=0; while [ "$(stty size)" = "0 0" ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done; ` + ask
	l := s.launch(t, engine.Spec{Argv: []string{"sh", "-c", askSized}, TTY: true})
	// As the hand-off does: the terminal's own name joins the environment.
	terminal := proc.Foreground(proc.Cmd{Argv: l.Argv, Dir: l.Dir, Env: append(l.Env, "TERM=screen-256color")})
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := pty.Setsize(master, &pty.Winsize{Rows: 33, Cols: 101}); err != nil {
		t.Fatal(err)
	}
	terminal.SetStdin(slave)
	terminal.SetStdout(slave)
	terminal.SetStderr(slave)
	ran := make(chan error, 1)
	go func() {
		ran <- terminal.Run()
		_ = slave.Close()
	}()
	said := readUntil(t, master, "\n")
	if err := <-ran; err != nil {
		t.Errorf("%v (it said %q)", err, said)
	}
	if got := strings.TrimSpace(said); got != "terminal 33 101 screen-256color" {
		t.Errorf("with a terminal it says %q", got)
	}
}

func readUntil(t *testing.T, r *os.File, end string) string {
	t.Helper()
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var said []byte
	buffer := make([]byte, 1024)
	for !bytes.Contains(said, []byte(end)) {
		n, err := r.Read(buffer)
		said = append(said, buffer[:n]...)
		if err != nil {
			t.Fatalf("%v after %q", err, said)
		}
	}
	return string(said)
}

func testEmptyCommand(t *testing.T, s Subject) {
	for _, argv := range [][]string{nil, {}, {""}} {
		if l, err := s.Engine.Launch(engine.Spec{Cell: s.Cell, Argv: argv}); err == nil {
			t.Errorf("Launch %q = %q", argv, l)
		}
	}
}

func testPure(t *testing.T, s Subject) {
	spec := engine.Spec{Cell: s.Cell, Argv: []string{"a", "b"}, Env: []string{"A=1", "A=2"}, Execution: "e", TTY: true}
	argv, env := slices.Clone(spec.Argv), slices.Clone(spec.Env)
	first, err := s.Engine.Launch(spec)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Engine.Launch(spec)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("two launches of one spec differ:\n%q\n%q", first, second)
	}
	if !slices.Equal(spec.Argv, argv) || !slices.Equal(spec.Env, env) {
		t.Errorf("the spec was changed to %q %q", spec.Argv, spec.Env)
	}
}

// family is a shell line that opens the fifo $1, says $2 into it, and leaves
// processes of every kind that escape: background children, a session of their
// own, with SIGTERM ignored, an orphan. All hold the fifo open.
const family = `exec 9>"$1"
sleep 1000 &
setsid sleep 1000 &
(trap '' TERM; setsid sh -c 'trap "" TERM; sleep 1000; sleep 1000' &)
(setsid sh -c 'sleep 1000 & exec sleep 1000' &)
printf %s "$2" >&9
wait; sleep 1000`

func testEnd(t *testing.T, s Subject) {
	s.up(t)
	ctx := deadline(t)
	start := func(name, execution string) *tail {
		inside, outside := s.fifo(t, name)
		l := s.launch(t, engine.Spec{Argv: []string{"sh", "-c", family, "sh", inside, name}, Execution: execution})
		p, err := proc.New().Start(ctx, l.Cmd())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.End)
		go func() { _, _ = io.Copy(io.Discard, p.Stdout()) }()
		if got := outside.read(t, len(name)); got != name {
			t.Fatalf("%s said %q", name, got)
		}
		return outside
	}
	// One name begins with the other; both are this run's own.
	name := uuid.NewString()
	doomed := start("doomed", name)
	other := start("other", name+"-other")
	if err := s.Engine.End(ctx, s.Cell, name); err != nil {
		t.Fatalf("End: %v", err)
	}
	doomed.waitForEnd(t)
	if other.ended() {
		t.Error("another execution was ended, too")
	}
	if err := s.Engine.End(ctx, s.Cell, name); err != nil {
		t.Errorf("End again: %v", err)
	}
	if err := s.Engine.End(ctx, s.Cell, name+"-other"); err != nil {
		t.Errorf("End of the other: %v", err)
	}
	other.waitForEnd(t)
}

func testEndNothing(t *testing.T, s Subject) {
	s.up(t)
	if err := s.Engine.End(deadline(t), s.Cell, "never-started"); err != nil {
		t.Errorf("End: %v", err)
	}
}

func testDown(t *testing.T, s Subject) {
	ctx := deadline(t)
	s.up(t)
	s.output(t, "echo kept > kept")
	if s.Engine.Guest(s.Cell).Isolated && !s.listed(t, ctx) {
		t.Error("a running cell is not among the instances")
	}
	if err := s.Engine.Down(ctx, s.Cell); err != nil {
		t.Fatalf("Down: %v", err)
	}
	if s.listed(t, ctx) {
		t.Error("a cell that is down is listed as running")
	}
	if err := s.Engine.Down(ctx, s.Cell); err != nil {
		t.Errorf("Down again: %v", err)
	}
	s.up(t)
	if got := s.output(t, "cat kept"); got != "kept\n" {
		t.Errorf("after down and up the file holds %q", got)
	}
}

func (s Subject) listed(t *testing.T, ctx context.Context) bool {
	t.Helper()
	all, err := s.Engine.Instances(ctx)
	if err != nil {
		t.Fatalf("Instances: %v", err)
	}
	return slices.ContainsFunc(all, func(i engine.Instance) bool { return i.Cell == s.Cell.Name && i.Running })
}

// fifo makes a named pipe in the project directory. Its end of file tells when
// the last process that holds it open has gone, wherever that process runs.
func (s Subject) fifo(t *testing.T, name string) (inside string, outside *tail) {
	t.Helper()
	path := filepath.Join(s.Cell.ProjectDir, name+".fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Opened without waiting for a writer; its reads then wait, with deadlines.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return s.Engine.Guest(s.Cell).ProjectDir + "/" + name + ".fifo", &tail{f}
}

// tail reads a named pipe.
type tail struct{ f *os.File }

func (p *tail) read(t *testing.T, n int) string {
	t.Helper()
	var got []byte
	buffer := make([]byte, 1024)
	for end := time.Now().Add(patience); len(got) < n; {
		if err := p.f.SetReadDeadline(end); err != nil {
			t.Fatal(err)
		}
		read, err := p.f.Read(buffer)
		got = append(got, buffer[:read]...)
		if err == io.EOF && time.Now().Before(end) {
			waitForWriter(p.f) // nobody has opened it yet
			continue
		}
		if err != nil {
			t.Fatalf("read what was said inside: %v after %q", err, got)
		}
	}
	return string(got)
}

// waitForWriter blocks until the pipe has bytes, for a moment at most.
func waitForWriter(f *os.File) { poll(f, 50) }

// poll asks the kernel about the pipe without taking its descriptor away from
// the deadlines of package os.
func poll(f *os.File, milliseconds int) (revents int16) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(events, milliseconds); err == nil && n > 0 {
			revents = events[0].Revents
		}
	})
	return revents
}

// waitForEnd fails unless the last writer goes away in time.
func (p *tail) waitForEnd(t *testing.T) {
	t.Helper()
	if err := p.f.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := p.f.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("processes of an ended execution are still there: read %d, %v", n, err)
	}
}

// ended tells whether the last writer has gone.
func (p *tail) ended() bool { return poll(p.f, 0)&unix.POLLHUP != 0 }
