package tui_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cellmux/cell/git"
	"cellmux/engine/fleet"
	"cellmux/tui/tuitest"
)

func proposal() fleet.Proposal {
	return fleet.Proposal{
		Branch: "wip", Head: "aaaa", Tree: "feed", Files: 2, Added: 3, Deleted: 1,
		Diff: "diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-old\n+new\x1b[2K\u202e\n" +
			"+" + strings.Repeat("x", 300) + "the end of a long line\n",
	}
}

func TestCommitShowsTheDiffThenAsksForTheMessage(t *testing.T) {
	f := tuitest.Sample()
	tuitest.Run(t, f, tuitest.Options{}, func(ui *tuitest.UI) {
		f.Propose("api-auth", proposal())
		ui.Press("g", "g").Press(":").Type("commit").Press("enter")
		ui.Row("Commit 2 files of api-auth to wip: +3 -1").Row("-old").Row("+new").Row("the end of a long line")
		if calls := f.Calls(); !slices.Contains(calls, "Proposal api-auth") || slices.ContainsFunc(calls, isCommit) {
			t.Errorf("calls %q", calls)
		}
		ui.Press("enter").Row("Message").Press("enter").Row("A commit needs a message")
		ui.Type("Say why").Press("enter").Row("Committed the work of api-auth as 0123456789ab")
		if calls := f.Calls(); !slices.Contains(calls, "Commit api-auth feed Say why") {
			t.Errorf("calls %q", calls)
		}
	})
}

func isCommit(call string) bool { return strings.HasPrefix(call, "Commit ") }

func TestCommitThatIsLeftCommitsNothing(t *testing.T) {
	f := tuitest.Sample()
	tuitest.Run(t, f, tuitest.Options{}, func(ui *tuitest.UI) {
		f.Propose("api-auth", proposal())
		ui.Press("g", "g").Press(":").Type("commit").Press("enter", "esc")
		ui.Press(":").Type("commit").Press("enter", "enter").Type("m").Press("esc")
		if calls := f.Calls(); slices.ContainsFunc(calls, isCommit) {
			t.Errorf("calls %q", calls)
		}
	})
}

// An agent that works on while the user reads changes what would be committed.
func TestWorkThatChangedIsShownAnewAndTheMessageIsKept(t *testing.T) {
	f := tuitest.Sample()
	tuitest.Run(t, f, tuitest.Options{}, func(ui *tuitest.UI) {
		f.Propose("api-auth", proposal())
		f.Fail("Commit", fmt.Errorf("commit: %w", git.ErrChanged))
		ui.Press("g", "g").Press(":").Type("commit").Press("enter", "enter").Type("Say why").Press("enter")
		ui.Row("Commit 2 files of api-auth").Row("The work has changed since it was shown")
		f.Fail("Commit", nil)
		ui.Press("enter").Row("Say why").Press("enter").Row("Committed the work of api-auth")
	})
}

// Where git works inside, the agent commits.
func TestCommitAsksTheAgentWhereItCan(t *testing.T) {
	f := tuitest.Sample()
	tuitest.Run(t, f, tuitest.Options{}, func(ui *tuitest.UI) {
		ui.Press("g", "g", "j").Press(":").Type("commit").Press("enter")
		if calls := f.Calls(); slices.Contains(calls, "Proposal api-auth") || !slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "Send ") }) {
			t.Errorf("calls %q", calls)
		}
	})
}

// "commit" is in the sentences of other commands, too.
func TestPaletteTakesTheNameThatWasTyped(t *testing.T) {
	f := tuitest.Sample()
	tuitest.Run(t, f, tuitest.Options{}, func(ui *tuitest.UI) {
		f.Propose("api-auth", proposal())
		for _, name := range []string{"commit", ":commit", "comm"} {
			f.Forget()
			ui.Press("g", "g").Press(":").Type(name).Press("enter").Called("Proposal api-auth").Press("esc")
		}
	})
}
