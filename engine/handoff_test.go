package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// TestMain lets the test binary stand in for "cellmux __pane FILE".
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == engine.HandoffArgument {
		err := engine.RunHandoff(os.Args[2], os.Getenv)
		fmt.Fprintln(os.Stderr, "cellmux:", err)
		os.Exit(err.Code)
	}
	os.Exit(m.Run())
}

// pane runs the hand-off file as tmux would: with the tmux server's environment.
func pane(t *testing.T, file string) proc.Result {
	t.Helper()
	result, err := proc.New().Run(context.Background(), proc.Cmd{
		Argv: engine.HandoffCommand(testBinary(t), file),
		Dir:  "/",
		Env:  []string{"TERM=tmux-256color", "TMUX=/tmp/s,1,0", "TMUX_PANE=%7", "FROM_THE_SERVER=1", "PATH=/nowhere"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func testBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func privateDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, l engine.Launch) string {
	t.Helper()
	file, err := engine.WriteHandoff(privateDir(t), l)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func pathEnv() string { return "PATH=/usr/local/bin:/usr/bin:/bin" }

// The tmux server's environment never reaches the program; the terminal's own
// three variables do, over values that the launch may hold.
func TestHandoffGivesExactlyTheLaunchAndTheTerminal(t *testing.T) {
	file := write(t, engine.Launch{
		Argv: []string{"env", "-0"}, Dir: "/",
		Env: []string{pathEnv(), "TOKEN=s3cret\nline", "EMPTY=", "TERM=dumb"},
	})
	result := pane(t, file)
	got := strings.Split(strings.TrimSuffix(string(result.Stdout), "\x00"), "\x00")
	want := []string{pathEnv(), "TOKEN=s3cret\nline", "EMPTY=", "TERM=tmux-256color", "TMUX=/tmp/s,1,0", "TMUX_PANE=%7"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q (stderr %s)", got, want, result.Stderr)
	}
}

func TestHandoffPassesHostileWordsAndTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a dir\nwith a newline")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	words := []string{"", " ", "a b", "'", `"`, "$(id)", "`id`", "\\", "\n", "-n", "*", "é😀", "\x1b[31m"}
	argv := append([]string{"sh", "-c", `pwd; printf '%s\0' "$@"`, "sh"}, words...)
	result := pane(t, write(t, engine.Launch{Argv: argv, Dir: dir, Env: []string{pathEnv()}}))
	want := dir + "\n" + strings.Join(words, "\x00") + "\x00"
	if string(result.Stdout) != want {
		t.Errorf("got %q, want %q", result.Stdout, want)
	}
}

func TestHandoffPassesBytesThatAreNotUTF8(t *testing.T) {
	result := pane(t, write(t, engine.Launch{
		Argv: []string{"sh", "-c", `printf '%s %s' "$1" "$RAW"`, "sh", "\xff\xfe"}, Dir: "/",
		Env: []string{pathEnv(), "RAW=caf\xe9"},
	}))
	if got, want := string(result.Stdout), "\xff\xfe caf\xe9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHandoffFileIsPrivateAndReadOnce(t *testing.T) {
	file := write(t, engine.Launch{Argv: []string{"true"}, Dir: "/", Env: []string{pathEnv()}})
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %04o, want 0600", info.Mode().Perm())
	}
	if result := pane(t, file); result.ExitCode != 0 {
		t.Fatalf("exit %d: %s", result.ExitCode, result.Stderr)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if result := pane(t, file); result.ExitCode != 126 || !strings.Contains(string(result.Stderr), "restart the slot") {
		t.Errorf("second use: exit %d, %q", result.ExitCode, result.Stderr)
	}
}

func TestHandoffRefuses(t *testing.T) {
	const secret = "s3cret-value"
	good := engine.Launch{Argv: []string{"true"}, Dir: "/", Env: []string{pathEnv(), "TOKEN=" + secret}}
	cases := []struct {
		name  string
		spoil func(t *testing.T, file string) string
		code  int
		says  string
	}{
		{"a file that others can read", func(t *testing.T, file string) string {
			must(t, os.Chmod(file, 0o644))
			return file
		}, 126, "others may use it"},
		{"a symbolic link", func(t *testing.T, file string) string {
			link := file + ".link"
			must(t, os.Symlink(file, link))
			return link
		}, 126, "open the launch file"},
		{"another user's file", func(t *testing.T, file string) string {
			if os.Geteuid() != 0 {
				t.Skip("needs root, to give a file to another user")
			}
			must(t, os.Chown(file, 12345, 12345))
			return file
		}, 126, "belongs to user 12345"},
		{"a directory", func(t *testing.T, file string) string { return filepath.Dir(file) }, 126, "not a launch file"},
		{"a damaged file", func(t *testing.T, file string) string {
			must(t, os.WriteFile(file, []byte(`{"version":1,"argv":["dHJ1ZQ=="],"env":["TOKEN=`+secret), 0o600))
			return file
		}, 126, "damaged"},
		{"another version", func(t *testing.T, file string) string {
			must(t, os.WriteFile(file, []byte(`{"version":2,"argv":["dHJ1ZQ=="]}`), 0o600))
			return file
		}, 126, "another cellmux"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			result := pane(t, c.spoil(t, write(t, good)))
			if result.ExitCode != c.code || !strings.Contains(string(result.Stderr), c.says) {
				t.Errorf("exit %d, %q; want exit %d and %q", result.ExitCode, result.Stderr, c.code, c.says)
			}
			if strings.Contains(string(result.Stderr), secret) {
				t.Errorf("the message holds the secret: %q", result.Stderr)
			}
		})
	}
}

func TestHandoffExitCodesAreThoseOfAShell(t *testing.T) {
	notExecutable := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(notExecutable, []byte("not a program"), 0o755))
	cases := []struct {
		name   string
		launch engine.Launch
		code   int
		says   string
	}{
		{"a missing program", engine.Launch{Argv: []string{"no-such-agent"}, Dir: "/", Env: []string{pathEnv()}}, 127, "no-such-agent"},
		{"the PATH is the launch's", engine.Launch{Argv: []string{"true"}, Dir: "/", Env: []string{"PATH=/nowhere"}}, 127, "true"},
		{"a file that is no program", engine.Launch{Argv: []string{notExecutable}, Dir: "/", Env: []string{pathEnv()}}, 126, notExecutable},
		{"a vanished directory", engine.Launch{Argv: []string{"true"}, Dir: "/no/such/dir", Env: []string{pathEnv()}}, 126, "/no/such/dir"},
		{"the program's own", engine.Launch{Argv: []string{"sh", "-c", "exit 42"}, Dir: "/", Env: []string{pathEnv()}}, 42, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			result := pane(t, write(t, c.launch))
			if result.ExitCode != c.code || !strings.Contains(string(result.Stderr), c.says) {
				t.Errorf("exit %d, %q; want exit %d and %q", result.ExitCode, result.Stderr, c.code, c.says)
			}
		})
	}
}

func TestWriteHandoffRefusesWhatNoProgramCanReceive(t *testing.T) {
	dir := privateDir(t)
	for _, l := range []engine.Launch{
		{},
		{Argv: []string{"a\x00b"}},
		{Argv: []string{"true"}, Env: []string{"A=\x00"}},
	} {
		if _, err := engine.WriteHandoff(dir, l); err == nil {
			t.Errorf("wrote %q", l)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left %v behind", entries)
	}
}

func TestCleanHandoffsRemovesOnlyWhatNobodyWaitsFor(t *testing.T) {
	dir := privateDir(t)
	now := time.Now()
	age := func(name string, age time.Duration) {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		must(t, os.Chtimes(filepath.Join(dir, name), now, now.Add(-age)))
	}
	age("fresh.launch", engine.HandoffMaxAge-time.Second)
	age("old.launch", engine.HandoffMaxAge+time.Second)
	age("old.launch.tmp", engine.HandoffMaxAge+time.Second)
	age("tmux.sock", 24*time.Hour)
	must(t, engine.CleanHandoffs(dir, now))
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"fresh.launch", "tmux.sock"}) {
		t.Errorf("left %q", names)
	}
}

func TestRuntimeDir(t *testing.T) {
	in := func(values map[string]string) func(string) string {
		return func(name string) string { return values[name] }
	}
	xdg := t.TempDir()
	got, err := engine.RuntimeDir(in(map[string]string{"XDG_RUNTIME_DIR": xdg}))
	must(t, err)
	if want := filepath.Join(xdg, "cellmux"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if info, _ := os.Stat(got); info.Mode().Perm() != 0o700 {
		t.Errorf("mode %04o, want 0700", info.Mode().Perm())
	}
	must(t, os.Chmod(got, 0o755))
	if _, err := engine.RuntimeDir(in(map[string]string{"XDG_RUNTIME_DIR": xdg})); err == nil {
		t.Error("took a directory that others may enter")
	}
	must(t, os.Remove(got))
	must(t, os.Symlink(t.TempDir(), got))
	if _, err := engine.RuntimeDir(in(map[string]string{"XDG_RUNTIME_DIR": xdg})); err == nil {
		t.Error("took a symbolic link")
	}

	t.Setenv("TMPDIR", t.TempDir())
	for _, none := range []string{"", "relative", "/no/such/dir"} {
		got, err := engine.RuntimeDir(in(map[string]string{"XDG_RUNTIME_DIR": none}))
		must(t, err)
		if filepath.Dir(got) != os.TempDir() {
			t.Errorf("XDG_RUNTIME_DIR=%q gives %s, want it below %s", none, got, os.TempDir())
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
