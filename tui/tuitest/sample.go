package tuitest

import (
	"time"

	"cellmux/engine/fleet"
	"cellmux/shellctx"
	"cellmux/shellctx/run"
)

// Sample is a world with something of everything, as in the documentation.
func Sample() *Fleet {
	f := NewFleet(sampleList)
	f.Screen("%1",
		"● Update src/auth/session.ts",
		"    12   \x1b[31m- const ttl = 3600\x1b[m",
		"    12   \x1b[32m+ const ttl = cfg.sessionTTL ?? 3600\x1b[m",
		"● Bash(npm test -- auth)",
		"    42 passing (3s)",
		"",
		"\x1b[1mDo you want to proceed?\x1b[m",
		"❯ 1. Yes   2. Yes, don't ask again   3. No",
		"", "", "",
	)
	api := fleet.Ref{Cell: "api-auth", Slot: 0}
	at := time.Date(2000, 1, 1, 12, 1, 0, 0, time.UTC)
	f.Ran(api,
		run.Execution{ID: "a", Cell: api.Cell, Mode: run.Context, State: run.Exited, Started: at, Ended: at, Lines: 14, Record: shellctx.Record{Command: "npm ls jsonwebtoken", Output: "api@1.0.0 /src\n"}},
		run.Execution{ID: "b", Cell: api.Cell, Mode: run.Context, State: run.Exited, Started: at.Add(time.Minute), Ended: at.Add(time.Minute), Lines: 1, Record: shellctx.Record{Command: "curl -s localhost:3000/health", ExitCode: 7}},
		run.Execution{ID: "c", Cell: api.Cell, Mode: run.Private, State: run.Exited, Started: at.Add(2 * time.Minute), Ended: at.Add(2 * time.Minute), Lines: 9, Record: shellctx.Record{Command: "cat .env"}},
	)
	return f
}

func sampleList(now time.Time) fleet.Snapshot {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	created := ago(72 * time.Hour)
	return fleet.Snapshot{
		Cells: []fleet.Cell{
			{Name: "api-auth", Title: "api-auth", Workspace: "main", ProjectDir: "/src/api-auth", Engine: "docker", Git: "+48-12 ^2", Created: created, Slots: []fleet.Slot{
				{Ref: fleet.Ref{Cell: "api-auth", Slot: 0}, Agent: "claude", Status: fleet.Waiting, Question: "Allow Bash(rm -rf dist)?", Since: ago(4 * time.Minute), Pane: "%1", SessionID: "7f3c9a1e"},
				{Ref: fleet.Ref{Cell: "api-auth", Slot: 1}, Agent: "shell", Status: fleet.Idle, Detail: "$ make test  (exit 0)", Since: ago(11 * time.Minute), Pane: "%2"},
			}},
			{Name: "ios-build", Title: "ios-build", Workspace: "main", ProjectDir: "/src/ios-build", Engine: "tart", Git: "clean", Created: created, Slots: []fleet.Slot{
				{Ref: fleet.Ref{Cell: "ios-build", Slot: 0}, Agent: "codex", Status: fleet.Running, Detail: "running xcodebuild", Since: ago(2 * time.Second), Pane: "%3"},
			}},
			{Name: "win-installer", Title: "win-installer", Workspace: "main", ProjectDir: "/src/win-installer", Engine: "winkit", Git: "+9 dirty", Created: created, Slots: []fleet.Slot{
				{Ref: fleet.Ref{Cell: "win-installer", Slot: 0}, Agent: "opencode", Status: fleet.Running, Detail: "edit setup.iss", Since: ago(4 * time.Second), Pane: "%4"},
			}},
			{Name: "dotfiles", Title: "dotfiles", Workspace: "main", ProjectDir: "/home/me/dotfiles", Engine: "host", Git: "+1-1", Created: created, Slots: []fleet.Slot{
				{Ref: fleet.Ref{Cell: "dotfiles", Slot: 0}, Agent: "shell", Status: fleet.Dead, ExitStatus: 137, Since: ago(3 * time.Hour), Pane: "%5"},
				{Ref: fleet.Ref{Cell: "dotfiles", Slot: 1}, Agent: "claude", Status: fleet.Stopped, Since: ago(5 * time.Hour)},
			}},
		},
		Outside: []fleet.Outside{{Pane: "%0", Session: "default", Command: "zsh", Path: "~/notes", Activity: ago(25 * time.Hour)}},
		Engines: []fleet.Engine{
			{Kind: "host", Usable: true, Probed: true}, {Kind: "docker", Usable: true, Probed: true},
			{Kind: "tart", Probed: true}, {Kind: "winkit", Usable: true, Probed: true, Detail: "38ms"},
		},
	}
}
