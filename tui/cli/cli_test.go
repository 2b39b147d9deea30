package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"cellmux/cell"
	"cellmux/engine/fleet"
	"cellmux/shellctx"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
	"cellmux/shellctx/run"
)

func TestCommandsThatNeedNoDatabaseOpenNone(t *testing.T) {
	for _, args := range [][]string{
		{"--help"}, {"--version"}, {"ls", "--help"}, {"session-id", "api:0"}, {"completion", "bash"}, {"man"},
		{"config", "path"}, {"doctor"}, {"lss"}, {"run", "api"}, {"send", "api", ""},
	} {
		call(t, nil, nil, args...) // fails the test when the application is opened
	}
}

func TestSessionIDIsTheOneOfTheAppName(t *testing.T) {
	got := call(t, nil, nil, "session-id", "api:3")
	if got.code != 0 || got.stdout != cell.SessionID("api-3")+"\n" || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, nil, "session-id", "proj-0"); got.stdout != "7764de5a-9d42-52b6-b2f1-2b77273e0845\n" {
		t.Errorf("a slot as its guest names it: %+v", got)
	}
	if got := call(t, nil, nil, "session-id", "api"); got.code != ExitUsage {
		t.Errorf("a cell without a slot: %+v", got)
	}
}

func TestWrongUseIsTwoAndSaidOnStandardErrorAlone(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{}, fleet.Slot{})}
	for _, args := range [][]string{
		{"lss"}, {"ls", "--nosuch"}, {"ls", "a", "b"}, {"session-id"}, {"session-id", "api:x"}, {"run", "api:0"},
		{"send", "api:0", "  "}, {"stop"}, {"wait", "api:0", "--for", "busy"}, {"log", "api:0", "-n", "0"},
		{"log", "api"}, // two slots: which one?
		{"run", "--private", "--ask", "api:0", "true"}, {"search"}, {"completion", "tcsh"}, {"attach", "api:0"}, {},
	} {
		got := call(t, w, nil, args...)
		if got.code != ExitUsage || got.stdout != "" || got.stderr == "" {
			t.Errorf("%v: code %d, stdout %q, stderr %q", args, got.code, got.stdout, got.stderr)
		}
	}
	if got := call(t, w, nil, "lss"); !strings.Contains(got.stderr, `"ls"`) {
		t.Errorf("a mistyped command gets no suggestion: %q", got.stderr)
	}
}

func TestWhatIsNotThereIsThree(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{})}
	for _, args := range [][]string{
		{"ls", "nosuch"}, {"open", "nosuch"}, {"open", "api:9"}, {"stop", "api:9"}, {"rm", "nosuch"},
		{"send", "nosuch:0", "x"}, {"log", "nosuch:0"}, {"wait", "nosuch:0"}, {"stop", "/elsewhere"},
	} {
		if got := call(t, w, nil, args...); got.code != ExitNotFound || got.stdout != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestListAsJSONIsStableAndLeavesTheOfferOut(t *testing.T) {
	w := &world{snap: apiCell("/src/api",
		fleet.Slot{Agent: "claude", Status: fleet.Waiting, Question: "Allow Bash(rm -rf dist)?", Pane: "%3", Since: time.Unix(1, 0).UTC()},
		fleet.Slot{Agent: "shell", Status: fleet.Dead, ExitStatus: 137, Pane: "%4"})}
	w.snap.Cells = append(w.snap.Cells, fleet.Cell{Name: "here", Offered: true})
	got := call(t, w, nil, "ls", "--json")
	var list struct {
		Server *string
		Cells  []map[string]any
	}
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || got.code != 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	if len(list.Cells) != 1 || list.Server == nil || *list.Server != "" {
		t.Fatalf("%+v", list)
	}
	slots := list.Cells[0]["slots"].([]any)
	first, second := slots[0].(map[string]any), slots[1].(map[string]any)
	if first["ref"] != "api:0" || first["status"] != "waiting" || first["question"] != "Allow Bash(rm -rf dist)?" ||
		first["session_id"] != cell.SessionID("api-0") || first["exit_status"] != nil || first["since"] != "1970-01-01T00:00:01Z" {
		t.Errorf("the waiting slot: %v", first)
	}
	if second["exit_status"] != float64(137) || second["since"] != nil {
		t.Errorf("the dead slot: %v", second)
	}
}

func TestEmptyListIsAnArray(t *testing.T) {
	if got := call(t, &world{}, nil, "ls", "--json"); !strings.Contains(got.stdout, `"cells": []`) {
		t.Errorf("%q", got.stdout)
	}
}

func TestListNeverLetsATitleReachTheTerminal(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{Agent: "shell", Status: fleet.Idle, Detail: "a\x1b]0;owned\x07b\nc"})}
	got := call(t, w, nil, "ls")
	if strings.ContainsAny(got.stdout, "\x1b\x07") || strings.Count(got.stdout, "\n") != 3 {
		t.Errorf("%q", got.stdout)
	}
}

func TestServerWithoutAnAnswerIsSaidAndKeptApart(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{Status: fleet.Unknown})}
	w.snap.Server = "tmux gives no answer"
	got := call(t, w, nil, "ls")
	if got.code != 0 || !strings.Contains(got.stderr, "tmux gives no answer") || strings.Contains(got.stdout, "no answer") {
		t.Errorf("%+v", got)
	}
}

func TestStatusCountsInOneLine(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{Status: fleet.Waiting}, fleet.Slot{Status: fleet.Running},
		fleet.Slot{Status: fleet.Running}, fleet.Slot{Status: fleet.Idle, Archived: true})}
	if got := call(t, w, nil, "status"); got.stdout != "2 running, 1 waiting\n" {
		t.Errorf("%q", got.stdout)
	}
	if got := call(t, w, nil, "status", "api:0"); got.stdout != "waiting\n" {
		t.Errorf("%q", got.stdout)
	}
}

func TestOpenTakesTheCellOfTheDirectoryOrMakesIt(t *testing.T) {
	dir := t.TempDir()
	w := &world{snap: apiCell(dir)}
	here := func(o *Options) { o.Dir = dir }
	if got := call(t, w, here, "open", "--agent", "shell"); got.stdout != "api:7\n" || w.asked[0] != "open api agent=shell" {
		t.Errorf("the cell of the directory: %+v, %q", got, w.asked)
	}
	w = &world{}
	got := call(t, w, here, "open")
	if got.code != 0 || got.stdout != "made:7\n" || len(w.asked) != 2 || w.asked[0] != "new "+dir+" name= engine=" || w.asked[1] != "open made agent=" {
		t.Errorf("a directory without a cell: %+v, %q", got, w.asked)
	}
}

func TestOpenAsksOnceAboutADirectoryOfTheHostAndOnATerminalAlone(t *testing.T) {
	contact := fleet.FirstContact{Directory: "/src/api", Shown: "~/api", Agent: "Claude Code", Asks: []string{"whether you trust the directory"}, File: "~/.claude.json"}
	for _, c := range []struct {
		name     string
		terminal bool
		typed    string
		args     []string
		contact  fleet.FirstContact
		code     int
		asked    string // of the application
		said     string // on stderr
	}{
		{"yes on a terminal", true, "y\n", nil, contact, 0, `trusted /src/api true|open api agent=claude`, "write it to your ~/.claude.json? [y/N]"},
		{"no on a terminal", true, "\n", nil, contact, 0, `trusted /src/api false|open api agent=claude`, "[y/N]"},
		{"a script", false, "y\n", nil, contact, 0, `open api agent=claude`, "open with --trust-directory"},
		{"a script that says so", false, "", []string{"--trust-directory"}, contact, 0, `trusted /src/api true|open api agent=claude`, ""},
		{"a script that takes it back", false, "", []string{"--trust-directory=false"}, fleet.FirstContact{Directory: "/src/api"}, 0, `trusted /src/api false|open api agent=claude`, ""},
		{"nothing to ask", true, "", nil, fleet.FirstContact{Directory: "/src/api"}, 0, `open api agent=claude`, ""},
		{"a cell with a home of its own", false, "", []string{"--trust-directory"}, fleet.FirstContact{}, ExitUsage, ``, "home of its own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{snap: apiCell("/src/api"), contact: c.contact}
			got := call(t, w, func(o *Options) { o.Terminal, o.Stdin = c.terminal, strings.NewReader(c.typed) }, append([]string{"open", "api", "--agent", "claude"}, c.args...)...)
			if asked := strings.Join(w.asked, "|"); got.code != c.code || asked != c.asked || !strings.Contains(got.stderr, c.said) {
				t.Errorf("%+v, asked %q", got, asked)
			}
		})
	}
}

func TestOpenOfASlotResumesItAndLeavesARunningOneAlone(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{Status: fleet.Stopped}, fleet.Slot{Status: fleet.Idle})}
	if got := call(t, w, nil, "open", "api:0"); got.stdout != "api:0\n" || len(w.asked) != 1 || w.asked[0] != "resume api:0" {
		t.Errorf("%+v, %q", got, w.asked)
	}
	w.asked = nil
	if got := call(t, w, nil, "open", "api:1"); got.code != 0 || got.stdout != "api:1\n" || len(w.asked) != 0 {
		t.Errorf("%+v, %q", got, w.asked)
	}
}

func TestStopAndRmOfWhatWorksNeedForce(t *testing.T) {
	w := &world{snap: apiCell("/src/api",
		fleet.Slot{Agent: "claude", Status: fleet.Waiting, Question: "Proceed?", Pane: "%1"},
		fleet.Slot{Agent: "shell", Status: fleet.Idle, Pane: "%2"},
		fleet.Slot{Agent: "codex", Status: fleet.Unknown, Pane: "%3"})}
	for _, args := range [][]string{{"stop", "api:0"}, {"stop", "api"}, {"rm", "api:0"}, {"rm", "api"}, {"stop", "api:2"}} {
		got := call(t, w, nil, args...)
		if got.code != ExitRefused || len(w.asked) != 0 || !strings.Contains(got.stderr, "--force") {
			t.Errorf("%v: %+v, %q", args, got, w.asked)
		}
	}
	if got := call(t, w, nil, "stop", "api:0"); !strings.Contains(got.stderr, "Proceed?") {
		t.Errorf("what would be lost is not named: %q", got.stderr)
	}
	if got := call(t, w, nil, "stop", "api:1"); got.code != 0 || w.asked[0] != "stop api:1" {
		t.Errorf("an idle slot: %+v, %q", got, w.asked)
	}
	w.asked = nil
	if got := call(t, w, nil, "rm", "--force", "api:0"); got.code != 0 || w.asked[0] != "delete api:0" {
		t.Errorf("with --force: %+v, %q", got, w.asked)
	}
}

func TestRunPassesOutputAndExitCodeOn(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{}),
		chunks: []run.Chunk{{Text: "one\n10%"}, {Text: "20%", Rewind: true}, {Text: "30%\n", Rewind: true}, {Skipped: 9, Text: "two\n"}, {Text: "end"}},
		ended:  run.Execution{ID: "x", Cell: "api", State: run.Exited, Record: shellctx.Record{Command: "make", ExitCode: 7}}}
	got := call(t, w, nil, "run", "api:0", "make | tail")
	if got.code != 7 || got.stdout != "one\n30%\n… 9 bytes not shown …\ntwo\nend" || w.asked[0] != `run api:0 "make | tail" context host=false` {
		t.Errorf("%+v, %q", got, w.asked)
	}
	w.asked = nil
	call(t, w, nil, "run", "--private", "api", "--", "git", "log", "--format=%s it's")
	if w.asked[0] != `run api:0 "git log '--format=%s it'\\''s'" private host=false` {
		t.Errorf("several words are one command, each literal: %q", w.asked)
	}
	got = call(t, w, nil, "run", "--json", "api:0", "make")
	var e map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &e); err != nil || e["exit_code"] != float64(7) || got.code != 7 {
		t.Errorf("%v: %+v", err, got)
	}
}

func TestRunThatNeverRanIs125(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{}), err: errors.New("the shell is gone")}
	if got := call(t, w, nil, "run", "api:0", "true"); got.code != ExitRunFailed || !strings.Contains(got.stderr, "the shell is gone") {
		t.Errorf("%+v", got)
	}
	w = &world{snap: apiCell("/src/api", fleet.Slot{}), ended: run.Execution{State: run.NeverStarted, Record: shellctx.Record{ExitCode: 2, Error: "syntax"}}}
	if got := call(t, w, nil, "run", "api:0", "("); got.code != ExitRunFailed || !strings.Contains(got.stderr, "syntax") {
		t.Errorf("%+v", got)
	}
	if got := call(t, w, nil, "run", "nosuch", "true"); got.code != ExitRunFailed {
		t.Errorf("a cell that is not there: %+v", got)
	}
}

func TestSendReadsStandardInputAndPrintsTheState(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{}), entry: convo.Entry{Delivery: convo.Queued, Reason: "the agent asks something"}}
	got := call(t, w, func(o *Options) { o.Stdin = strings.NewReader("two\nlines\n\n") }, "send", "api:0")
	if got.code != 0 || got.stdout != "queued\n" || !strings.Contains(got.stderr, "asks something") || w.asked[0] != `send api:0 "two\nlines"` {
		t.Errorf("%+v, %q", got, w.asked)
	}
	w.entry = convo.Entry{Delivery: convo.Failed, Reason: "gone"}
	if got := call(t, w, nil, "send", "api:0", "x", "y"); got.code != ExitFailed || got.stdout != "failed\n" {
		t.Errorf("%+v", got)
	}
}

func TestReviewPrintsItsSlotAndTellsTheState(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{}), entry: convo.Entry{Delivery: convo.Submitted}}
	got := call(t, w, nil, "review", "api:0")
	if got.code != 0 || got.stdout != "api:9\n" || !strings.Contains(got.stderr, "the request is submitted") || w.asked[0] != "review api:0" {
		t.Errorf("%+v, %q", got, w.asked)
	}
	w.entry = convo.Entry{Delivery: convo.Failed}
	if got := call(t, w, nil, "review", "api:0"); got.code != ExitFailed || got.stdout != "api:9\n" {
		t.Errorf("%+v", got)
	}
}

func TestSendWaitsUntilTheMessageLeftTheQueue(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{}), entry: convo.Entry{Seq: 4, Delivery: convo.Queued}, watched: make(chan fleet.Snapshot, 1)}
	w.watched <- w.snap
	w.entries = []convo.Entry{{Seq: 4, Delivery: convo.Submitted}}
	got := call(t, w, nil, "send", "--wait", "1m", "api:0", "go on")
	if got.code != 0 || got.stdout != "submitted\n" || w.asked[1] != "deliver api:0" {
		t.Errorf("%+v, %q", got, w.asked)
	}
	got = call(t, w, nil, "send", "--wait", "1ms", "api:0", "go on") // the list does not change any more
	if got.code != ExitTimeout || got.stdout != "queued\n" {
		t.Errorf("%+v", got)
	}
}

func TestWaitEndsAtTheFirstStatusThatIsAskedFor(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{Status: fleet.Running}), watched: make(chan fleet.Snapshot, 2)}
	w.watched <- apiCell("/src/api", fleet.Slot{Status: fleet.Running})
	w.watched <- apiCell("/src/api", fleet.Slot{Status: fleet.Waiting})
	if got := call(t, w, nil, "wait", "api"); got.code != 0 || got.stdout != "waiting\n" {
		t.Errorf("%+v", got)
	}
	w.watched <- apiCell("/src/api")
	if got := call(t, w, nil, "wait", "api"); got.code != ExitNotFound {
		t.Errorf("a slot that was removed meanwhile: %+v", got)
	}
	closed := make(chan fleet.Snapshot)
	close(closed)
	w.watched = closed
	expired := func(o *Options) {}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-ctx.Done()
	if got := call(t, w, expired, "wait", "api", "--timeout", "1ns"); got.code != ExitTimeout {
		t.Errorf("after the timeout: %+v", got)
	}
}

func TestTrustShowsAndDoesNotAskWhereNobodyCanAnswer(t *testing.T) {
	w := &world{snap: apiCell("/src/api"), approval: fleet.Approval{Cell: "api", File: "/src/api/devcell.toml", Hash: "abc", Acts: []string{"runs: $(touch x)\x1b[2J"}}}
	got := call(t, w, nil, "trust", "api")
	if got.code != ExitRefused || len(w.asked) != 0 || !strings.Contains(got.stdout, "runs: $(touch x)") || strings.Contains(got.stdout, "\x1b") {
		t.Errorf("%+v, %q", got, w.asked)
	}
	if got := call(t, w, nil, "trust", "api", "--yes"); got.code != 0 || w.asked[0] != "trust api abc" {
		t.Errorf("%+v, %q", got, w.asked)
	}
	w.asked = nil
	atTerminal := func(answer string) func(*Options) {
		return func(o *Options) { o.Terminal, o.Stdin = true, strings.NewReader(answer) }
	}
	if got := call(t, w, atTerminal("\n"), "trust", "api"); got.code != ExitRefused || len(w.asked) != 0 {
		t.Errorf("Enter alone must mean No: %+v, %q", got, w.asked)
	}
	if got := call(t, w, atTerminal("y\n"), "trust", "api"); got.code != 0 || len(w.asked) != 1 {
		t.Errorf("%+v, %q", got, w.asked)
	}
}

func TestLogShowsShellRecordsAsTheScreenDoesAndAgentsTextWithoutEscapes(t *testing.T) {
	record, err := shellctx.NewMessage("1", shellctx.Record{Command: "ls", CWD: "/src", Output: "a\n"}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{snap: apiCell("/src/api", fleet.Slot{}), entries: []convo.Entry{
		{Seq: 1, Cell: "api", Message: record, Delivery: convo.Saved},
		{Seq: 2, Cell: "api", Message: protocol.NewText("2", protocol.Assistant, "hello\x1b[31m there\nline two", time.Unix(0, 0)), Delivery: convo.Answered},
		{Seq: 3, Cell: "api", Message: protocol.NewText("3", protocol.User, "go on", time.Unix(0, 0)), Delivery: convo.Failed, Reason: "the agent ended\x1b[2J\nmeanwhile"},
	}}
	got := call(t, w, nil, "log", "api:0")
	if !strings.Contains(got.stdout, "failed: the agent ended[2J meanwhile\ngo on\n") {
		t.Errorf("the reason is missing: %q", got.stdout)
	}
	if !strings.Contains(got.stdout, "shell  saved") || !strings.Contains(got.stdout, "hello there\nline two\n") || strings.Contains(got.stdout, "\x1b") {
		t.Errorf("%q", got.stdout)
	}
	got = call(t, w, nil, "log", "api:0", "--json")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if len(lines) != 3 {
		t.Fatalf("%q", got.stdout)
	}
	var e struct {
		Ref     string
		Message protocol.ChatMessage
	}
	if err := json.Unmarshal([]byte(lines[0]), &e); err != nil || e.Ref != "api:0" {
		t.Fatalf("%v: %q", err, lines[0])
	}
	if back, is := shellctx.FromMessage(e.Message); !is || back.Command != "ls" {
		t.Errorf("the message does not survive: %+v", back)
	}
}

func TestHandOffGetsTheFileAndNothingElse(t *testing.T) {
	var file string
	got := call(t, nil, func(o *Options) {
		o.Handoff = func(f string) error { file = f; return errors.New("cannot start") }
	}, "__pane", "/run/x.launch")
	if file != "/run/x.launch" || got.code != ExitFailed {
		t.Errorf("%q, %+v", file, got)
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	root := (&commands{}).root()
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		if cmd.Short == "" || cmd.Parent() == root && cmd.Example == "" {
			t.Errorf("%s has no summary or no example", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

func TestManPageNamesEveryCommandAndExitCode(t *testing.T) {
	got := call(t, nil, nil, "man")
	for _, want := range []string{".TH CELLMUX 1", ".SS cellmux session\\-id CELL:SLOT", ".SS cellmux run", "\\fB\\-\\-json\\fR", "124  the time of"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the manual page lacks %q", want)
		}
	}
	for i, line := range strings.Split(got.stdout, "\n") {
		if strings.HasPrefix(line, "'") {
			t.Errorf("line %d would be a request: %q", i+1, line)
		}
	}
}

func TestDoctorGivesANextStepAndFailsOnProblemsAlone(t *testing.T) {
	note := func(context.Context) []Finding {
		return []Finding{{Subject: "agent codex", Level: Notice, Detail: "not found", Next: "npm install -g @openai/codex"}}
	}
	problem := func(context.Context) []Finding {
		return []Finding{{Subject: "tmux", Level: Problem, Detail: "not found", Next: "install tmux"}}
	}
	got := call(t, nil, func(o *Options) { o.Checks = func() []Check { return []Check{note} } }, "doctor")
	if got.code != 0 || !strings.Contains(got.stdout, "-> npm install -g @openai/codex") {
		t.Errorf("%+v", got)
	}
	got = call(t, nil, func(o *Options) { o.Checks = func() []Check { return []Check{note, problem} } }, "doctor", "--json")
	var findings []Finding
	if err := json.Unmarshal([]byte(got.stdout), &findings); err != nil || len(findings) != 2 || got.code != ExitFailed {
		t.Errorf("%v: %+v", err, got)
	}
}
