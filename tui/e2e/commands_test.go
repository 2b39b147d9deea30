package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"cellmux/cell"
)

// The commands of the scripts. Where one takes -s NAME it acts on the screen of
// that name in place of "one", for scripts with several screens.

func worldOf(ts *testscript.TestScript) *world {
	return ts.Value(worldKey{}).(*world)
}

// screenName takes a leading "-s NAME" off args.
func screenName(args []string) (string, []string) {
	if len(args) >= 2 && args[0] == "-s" {
		return args[1], args[2:]
	}
	return "one", args
}

// eventually asks again until check is content; it fails with what was last
// seen. Each question is a process start, which paces it.
func eventually(ts *testscript.TestScript, what string, check func() (last string, ok bool)) {
	deadline := time.Now().Add(patience)
	for {
		last, ok := check()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("after %v, %s; last seen:\n%s", patience, what, last)
		}
	}
}

// start [-s NAME] [-size WxH] [ARG...] shows "cellmux ARG..." on a screen.
func start(ts *testscript.TestScript, neg bool, args []string) {
	name, args := screenName(args)
	width, height := "120", "36"
	if len(args) >= 2 && args[0] == "-size" {
		var found bool
		if width, height, found = strings.Cut(args[1], "x"); !found {
			ts.Fatalf("start -size takes WxH")
		}
		args = args[2:]
	}
	w := worldOf(ts)
	// The environment goes in by a file that is read once: an argument of the
	// harness that holds a secret could not be told from one of cellmux's.
	environ := ""
	for _, key := range []string{"HOME", "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "CELLMUX_TMUX_SOCKET", "TERM", "LANG", "GORACE", "NO_COLOR", "ANTHROPIC_API_KEY", "DOCKER_HOST"} {
		if v := ts.Getenv(key); v != "" {
			environ += "export " + key + "=" + cell.ShellQuote(v) + "\n"
		}
	}
	// tmux 3.3a now and then never reaps a pane's program, and then knows no
	// exit status: a shell writes it down.
	exit := exitFile(ts, name)
	if err := os.Remove(exit); err != nil && !os.IsNotExist(err) {
		ts.Fatalf("start: %v", err)
	}
	ts.Check(os.WriteFile(exit+".env", []byte(environ), 0o600))
	command := append([]string{"env", "-i", "/bin/sh", "-c", `. "$0.env"; rm "$0.env"; cellmux "$@"; echo $? >"$0.new"; mv "$0.new" "$0"`, exit}, args...)
	tmux := []string{"new-session", "-d", "-s", name, "-x", width, "-y", height, "-c", ts.MkAbs(".")}
	if out, err := tmuxOutput(w.outer, append(append(tmux, command...), ";", "set-option", "-t", "="+name+":", "remain-on-exit", "on", ";", "set-option", "-g", "status", "off", ";", "set-option", "-s", "exit-empty", "off", ";", "set-option", "-g", "escape-time", "0")...); err != nil {
		ts.Fatalf("start: %v: %s", err, out)
	}
}

func exitFile(ts *testscript.TestScript, name string) string {
	return filepath.Join(ts.Getenv("WORK"), "exit-"+name)
}

func resize(ts *testscript.TestScript, neg bool, args []string) {
	name, args := screenName(args)
	width, height, _ := strings.Cut(args[0], "x")
	if out, err := tmuxOutput(worldOf(ts).outer, "resize-window", "-t", "="+name+":", "-x", width, "-y", height); err != nil {
		ts.Fatalf("resize: %v: %s", err, out)
	}
}

// keys [-s NAME] KEY... sends keys by their tmux names, in one write.
func keys(ts *testscript.TestScript, neg bool, args []string) {
	name, args := screenName(args)
	if out, err := tmuxOutput(worldOf(ts).outer, append([]string{"send-keys", "-t", "=" + name + ":"}, args...)...); err != nil {
		ts.Fatalf("keys: %v: %s", err, out)
	}
}

// type [-s NAME] TEXT sends text as it is.
func typeText(ts *testscript.TestScript, neg bool, args []string) {
	name, args := screenName(args)
	if out, err := tmuxOutput(worldOf(ts).outer, "send-keys", "-t", "="+name+":", "-l", strings.Join(args, " ")); err != nil {
		ts.Fatalf("type: %v: %s", err, out)
	}
}

func capture(ts *testscript.TestScript, name string) string {
	out, err := tmuxOutput(worldOf(ts).outer, "capture-pane", "-p", "-t", "="+name+":")
	if err != nil {
		ts.Fatalf("capture: %v: %s", err, out)
	}
	return out
}

func pattern(ts *testscript.TestScript, s string) *regexp.Regexp {
	re, err := regexp.Compile("(?m)" + s)
	ts.Check(err)
	return re
}

// see [-s NAME] REGEXP... waits until one frame matches all of them.
func see(ts *testscript.TestScript, neg bool, args []string) {
	name, args := screenName(args)
	for _, arg := range args {
		pattern(ts, arg)
	}
	eventually(ts, fmt.Sprintf("the screen does not show %q", args), func() (string, bool) {
		shown := capture(ts, name)
		for _, arg := range args {
			if !pattern(ts, arg).MatchString(shown) {
				return shown, false
			}
		}
		return shown, true
	})
}

// hide [-s NAME] REGEXP waits until no line matches.
func hide(ts *testscript.TestScript, neg bool, args []string) {
	name, args := screenName(args)
	re := pattern(ts, args[0])
	eventually(ts, fmt.Sprintf("the screen still shows %q", args[0]), func() (string, bool) {
		shown := capture(ts, name)
		return shown, !re.MatchString(shown)
	})
}

// ended [-s NAME] waits until the program on the screen has ended with 0; with
// "!", with anything else.
func ended(ts *testscript.TestScript, neg bool, args []string) {
	name, _ := screenName(args)
	eventually(ts, "the program still runs", func() (string, bool) {
		content, err := os.ReadFile(exitFile(ts, name))
		if err != nil {
			return capture(ts, name), false
		}
		if status := strings.TrimSpace(string(content)); (status == "0") == neg {
			ts.Fatalf("the program ended with status %s:\n%s", status, capture(ts, name))
		}
		return "", true
	})
	if out, err := tmuxOutput(worldOf(ts).outer, "kill-session", "-t", "="+name); err != nil && !noServer(out) {
		ts.Fatalf("ended: %v: %s", err, out)
	}
}

// frame [-s NAME] FILE writes what the screen shows to FILE.
func frame(ts *testscript.TestScript, neg bool, args []string) {
	name, args := screenName(args)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(capture(ts, name)), 0o600))
}

// until REGEXP PROGRAM [ARG...] runs a program again and again until its output
// matches; with "!", until it does not.
func until(ts *testscript.TestScript, neg bool, args []string) {
	re := pattern(ts, args[0])
	eventually(ts, fmt.Sprintf("%q does not print %q (wanted: %v)", args[1:], args[0], !neg), func() (string, bool) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		program := args[1]
		if program == "cellmux" {
			program = filepath.Join(programs, "cellmux", "cellmux")
		}
		cmd := exec.CommandContext(ctx, program, args[2:]...)
		cmd.WaitDelay = time.Second
		cmd.Dir = ts.MkAbs(".")
		cmd.Env = scriptEnv(ts)
		out, err := cmd.CombinedOutput()
		return fmt.Sprintf("%s%v", out, err), re.Match(out) != neg
	})
}

func scriptEnv(ts *testscript.TestScript) []string {
	var env []string
	for _, key := range []string{"HOME", "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "CELLMUX_TMUX_SOCKET", "TERM", "LANG", "GORACE", "DOCKER_HOST"} {
		if ts.Getenv(key) == "" {
			continue
		}
		env = append(env, key+"="+ts.Getenv(key))
	}
	return env
}

// until-file REGEXP FILE waits until a file's content matches.
func untilFile(ts *testscript.TestScript, neg bool, args []string) {
	re := pattern(ts, args[0])
	path := ts.MkAbs(args[1])
	eventually(ts, fmt.Sprintf("%s does not hold %q (wanted: %v)", path, args[0], !neg), func() (string, bool) {
		// A process start between looks paces the loop without sleeping.
		content, err := exec.Command("cat", path).CombinedOutput()
		return string(content), err == nil && re.Match(content) != neg
	})
}

// received N FILE writes the text of the N-th message that the stub agent got
// to FILE; "received count=N" asserts how many there were.
func receivedText(ts *testscript.TestScript, neg bool, args []string) {
	content, err := os.ReadFile(filepath.Join(ts.Getenv("HOME"), "stubagent", "received.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		ts.Fatalf("received: %v", err)
	}
	var texts []string
	for line := range strings.Lines(string(content)) {
		var message struct{ Text string }
		ts.Check(json.Unmarshal([]byte(line), &message))
		texts = append(texts, message.Text)
	}
	if want, ok := strings.CutPrefix(args[0], "count="); ok {
		if got := fmt.Sprint(len(texts)); got != want {
			ts.Fatalf("the agent received %s messages, want %s:\n%q", got, want, texts)
		}
		return
	}
	var n int
	if _, err := fmt.Sscan(args[0], &n); err != nil || n < 1 || n > len(texts) {
		ts.Fatalf("received: no message %s among %d", args[0], len(texts))
	}
	text := texts[n-1]
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// server ARG... runs tmux on the server that cellmux uses, output to stdout of
// the script's log; with "!" it must fail. "server -o FILE ARG..." keeps it.
func server(ts *testscript.TestScript, neg bool, args []string) {
	keep := ""
	if len(args) >= 2 && args[0] == "-o" {
		keep, args = args[1], args[2:]
	}
	out, err := tmuxOutput(worldOf(ts).product, args...)
	ts.Logf("%s", out)
	if (err != nil) != neg {
		ts.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	if keep != "" {
		ts.Check(os.WriteFile(ts.MkAbs(keep), []byte(out), 0o600))
	}
}

// secretless TEXT looks for TEXT in the arguments of every process and in the
// environment of the tmux server, where no value of a launch may stand.
func secretless(ts *testscript.TestScript, neg bool, args []string) {
	list, err := exec.Command("ps", "-eo", "pid=,args=").Output()
	ts.Check(err)
	if strings.Contains(string(list), args[0]) {
		ts.Fatalf("ps shows %q:\n%s", args[0], list)
	}
	for _, query := range [][]string{{"show-environment", "-g"}, {"list-panes", "-a", "-F", "#{pane_start_command}"}} {
		out, err := tmuxOutput(worldOf(ts).product, query...)
		if err != nil {
			ts.Fatalf("tmux %q: %v: %s", query, err, out)
		}
		if strings.Contains(out, args[0]) {
			ts.Fatalf("tmux %q shows %q:\n%s", query, args[0], out)
		}
	}
	pid, err := tmuxOutput(worldOf(ts).product, "display-message", "-p", "#{pid}")
	ts.Check(err)
	environ, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(pid), "environ"))
	if os.IsNotExist(err) {
		ts.Logf("no /proc here: the server's own environment is not looked at")
		return
	}
	ts.Check(err)
	if strings.Contains(string(environ), args[0]) {
		ts.Fatalf("the tmux server's environment holds %q", args[0])
	}
}

// nowhere TEXT [FILE...] looks for TEXT everywhere that a value of a launch must
// not be: the arguments of every process, tmux's environment (its own, the global
// one, each session's), what docker tells of containers and images, and every
// file of the script (databases with their logs, log files, error texts that the
// script kept) but the named ones, in which it was planted or received.
func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	found := map[string]string{}
	list, err := exec.Command("ps", "-eo", "pid=,args=").Output()
	ts.Check(err)
	found["ps"] = string(list)
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		line, _ := os.ReadFile(name) // it may have ended
		found[name] = string(line)
	}
	tmuxPlaces(ts, found)
	dockerPlaces(ts, found)
	planted := map[string]bool{}
	for _, file := range args[1:] {
		planted[ts.MkAbs(file)] = true
	}
	files := 0
	ts.Check(filepath.WalkDir(ts.Getenv("WORK"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || planted[path] {
			return nil // sockets, and what ends meanwhile
		}
		content, _ := os.ReadFile(path)
		found[path] = string(content)
		files++
		return nil
	}))
	for place, text := range found {
		if i := strings.Index(text, args[0]); i >= 0 {
			ts.Fatalf("%s holds %q: …%q…", place, args[0], text[max(0, i-120):min(len(text), i+120)])
		}
	}
	if files < 10 {
		ts.Fatalf("%d files were looked at: the search saw nothing", files)
	}
}

func tmuxPlaces(ts *testscript.TestScript, found map[string]string) {
	socket := worldOf(ts).product
	tmux := func(args ...string) string {
		out, err := tmuxOutput(socket, args...)
		if err != nil {
			ts.Fatalf("tmux %q: %v: %s", args, err, out)
		}
		found[fmt.Sprintf("tmux %q", args)] = out
		return out
	}
	tmux("show-environment", "-g")
	tmux("list-panes", "-a", "-F", "#{pane_start_command} #{pane_title} #{pane_current_command}")
	for session := range strings.FieldsSeq(tmux("list-sessions", "-F", "#{session_id}")) {
		tmux("show-environment", "-t", session)
	}
	environ, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(tmux("display-message", "-p", "#{pid}")), "environ"))
	if err == nil {
		found["the tmux server's own environment"] = string(environ)
	}
}

// dockerPlaces asks the docker of the script, real or a double; none tells nothing.
func dockerPlaces(ts *testscript.TestScript, found map[string]string) {
	docker := func(args ...string) string {
		cmd := exec.Command("env", append([]string{"docker"}, args...)...) // on the script's PATH
		cmd.Env = scriptEnv(ts)
		out, _ := cmd.CombinedOutput() // what is on its way out has no logs
		found[fmt.Sprintf("docker %q", args)] = string(out)
		return string(out)
	}
	if ts.Getenv("CELL") == "" {
		return
	}
	for id := range strings.FieldsSeq(docker("ps", "--all", "--quiet", "--filter", "label=dev.cellmux.cell="+ts.Getenv("CELL"))) {
		docker("container", "inspect", id)
		docker("logs", id)
		docker("top", id, "-eo", "pid,args")
	}
	for id := range strings.FieldsSeq(docker("image", "ls", "--quiet")) {
		docker("image", "inspect", id)
		docker("image", "history", "--no-trunc", id)
	}
	docker("info")
}
