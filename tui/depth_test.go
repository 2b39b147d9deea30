package tui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
	"cellmux/shellctx"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
	"cellmux/tui/tuitest"
)

func TestFilterNarrowsByWordsAndProperties(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("/").Type("status:wait").Row("Cells matching status:wait").Row("Allow Bash").NoRow("codex").NoRow("make test")
		ui.Press("esc").Row("codex")
		ui.Press("/").Type("engine:tart").Press("enter").Row("codex").NoRow("1 api-auth").NoRow("dotfiles")
		ui.Press("esc").Row("dotfiles").Press("/").Type("wins").Row("win-installer").NoRow("ios-build")
		ui.Press("enter").Selected("win-installer").Press("/").Type("zzzz").Row("Nothing matches. esc shows everything.")
		ui.Press("esc").Press("/").Type("dir:home").Row("dotfiles").NoRow("ios-build").Press("ctrl+c").Row("ios-build")
	})
}

func TestGivingUpAFilterKeepsTheSelection(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("1", "j").Selected("claude").Press("/").Type("zzzz").Row("Nothing matches the filter.")
		ui.Press("esc").Selected("claude")
		ui.Press("/").Type("wins").Selected("win-installer").Press("esc").Selected("claude")
		// What the user chose in the filtered list stays chosen.
		ui.Press("/").Type("wins").Press("down", "up").Selected("win-installer").Press("esc").Selected("win-installer")
	})
}

func TestMarksRangesAndBulkActions(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("b").Row("no row is marked")
		ui.Press("j", "space").Row("✓", "claude").Press("k", "space").NoRow("✓")
		ui.Press("1", "j", "v", "j").Row("2 marked").Press("b").Row("With 2 panes").Row("stop", "those that run: 2")
		golden(t, ui, "bulk-120x36")
		ui.Press("down", "down", "enter").Row("Stop 2 panes?").Row("claude waits for your answer").NotCalled("Stop")
		ui.Press("y").Called("Stop api-auth:0").Called("Stop api-auth:1").Row("Stopped 2 of 2.")
		ui.Press("space").Press("esc").NoRow("✓")
	})
}

func TestUndoIsOfferedForAWhileAndWorksLater(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("1", "j", "j", "d").Called("Delete api-auth:1").Row("undo: u (10s)")
		ui.Pass(4 * time.Second).Row("undo: u (6s)")
		ui.Pass(10 * time.Second).NoRow("undo: u").Press("u").Row("Undone: delete api-auth:1.").Row("make test")
		ui.Press("u").Row("there is nothing to undo")
	})
}

func TestRenamePinArchive(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("1", "R").Row("Rename api-auth").Press("ctrl+u").Type("Auth rework").Press("enter").Called("Rename api-auth Auth rework").Row("1 Auth rework")
		ui.Press("j", "f2").Type("reviewer").Press("enter").Called("Rename api-auth:0 reviewer").Row("? reviewer")
		ui.Press("4", "p").Called("Pin win-installer true").Press("ctrl+r").Row("1 win-installer")
		ui.Press("1", "z").Called("Archive win-installer true").NoRow("win-installer ", "winkit").Press("Z").Row("win-installer", "z")
	})
}

func TestSortAndGroup(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("S").Type("name").Press("enter").Row("sort: name").Press("t").Type("engine").Press("enter").Row("by engine").Row(" docker ")
		golden(t, ui, "grouped-120x36")
	})
}

func TestCopyMenuUsesOSC52AndTheClipboard(t *testing.T) {
	tuitest.Run(t, tuitest.Sample().WithOptionalPorts(), tuitest.Options{}, func(ui *tuitest.UI) {
		ui.Press("j", "y").Row("session ID", "7f3c9a1e").Row("attach command", "cellmux attach api-auth:0")
		ui.Type("session").Press("enter").Called("Copy 7f3c9a1e").Row("Copied session ID.")
	})
}

func TestSearchAsksWhileTyping(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Fleet.Say(fleet.Ref{Cell: "ios-build"}, convo.Entry{Message: protocol.NewText("1", protocol.User, "sign with the new team", time.Now())})
		ui.Press("ctrl+f").Type("team").Called("Search team*").Row("ios-build:0", "sign with the new team")
		ui.Press("enter").Selected("codex").Row("sign with the new team")
		ui.Press("ctrl+f").Type("nope").Row("Nothing was found.")
	})
}

// A search of a long history outlasts a key; those of the texts before must not
// pile up behind it.
func TestNextKeyGivesUpTheSearchBefore(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		release := ui.Fleet.Stall("Search")
		ui.Press("ctrl+f").Type("tea").Called("Search tea*").Type("m").Called("gave up Search tea*").Called("Search team*")
		release()
		ui.Settle().Row("Nothing was found.")
	})
}

func TestEscGivesUpTheSearchThatRuns(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		release := ui.Fleet.Stall("Search")
		defer release()
		ui.Press("ctrl+f").Type("tea").Called("Search tea*").Press("esc").Called("gave up Search tea*")
	})
}

func TestPastedWordsAreSearchedFor(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Fleet.Say(fleet.Ref{Cell: "ios-build"}, convo.Entry{Message: protocol.NewText("1", protocol.User, "sign with the new team", time.Now())})
		ui.Press("ctrl+f").Paste("new team").Called("Search new team*").Row("ios-build:0", "sign with the new team")
	})
}

// The hits come a page at a time; the end of one brings the next.
func TestTheLastHitBringsOlderOnes(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		for i := range 120 {
			ui.Fleet.Say(fleet.Ref{Cell: "ios-build"}, convo.Entry{Message: protocol.NewText(fmt.Sprint(i), protocol.User, fmt.Sprintf("needle number %03d", i), time.Now())})
		}
		ui.Press("ctrl+f").Type("needle").Row("needle number 119")
		for range 3 {
			ui.Press("pgdown", "pgdown", "pgdown", "pgdown", "pgdown", "pgdown").Settle()
		}
		ui.Row("needle number 000")
	})
}

func TestLogsAndWhatCellmuxDid(t *testing.T) {
	screen(t, func(ui *tuitest.UI) { ui.Press("L").Row("there is no log to read") })
	tuitest.Run(t, tuitest.Sample().WithOptionalPorts(), tuitest.Options{}, func(ui *tuitest.UI) {
		ui.Press("L").Row("a line of the log").Press("esc")
		ui.Press("@").Row("open api:0").Row("$ tmux new-session -d -s api-0").Row("stop api:1", "FAILED: no answer")
		ui.Press("esc", ":").Type("jobs").Press("enter").Row("sleep 1000", "for 1m").Press("enter").Row("End it?").Press("y").Called("KillJob job-1")
	})
}

func TestTheEditorGivesItsTextBack(t *testing.T) {
	tuitest.Run(t, tuitest.Sample().WithOptionalPorts(), tuitest.Options{}, func(ui *tuitest.UI) {
		ui.Press("m").Type("hello").Press("ctrl+g").Called("Edit hello").Row("m claude in api-auth > hello and more")
	})
}

func TestALineThatNeedsATerminalRunsInAPane(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!").Type("htop -d 5").Press("ctrl+t").Called("Open api-auth shell").Called("Type %101 h t o p Space - d Space 5 Enter").Called("Attach %101")
	})
}

func TestTheMouseSelectsScrollsAndCanBeGivenBack(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		click := func(x, y int) tea.MouseMsg {
			return tea.MouseMsg{X: x, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}
		}
		ui.Send(click(10, 5)).Selected("shell", "make test").Send(click(10, 5)).Called("Attach %2")
		ui.Send(click(65, 1)).Row("Nothing has been said here yet.").Send(click(50, 1)).Row("this is pane %2")
		ui.Send(tea.MouseMsg{X: 3, Y: 8, Button: tea.MouseButtonWheelDown, Action: tea.MouseActionPress}).Selected("dotfiles")
		ui.Press("M").Row("The mouse belongs to the terminal")
	})
}

func conversation(f *tuitest.Fleet, now time.Time) {
	ref := fleet.Ref{Cell: "api-auth"}
	f.Say(ref, convo.Entry{Message: protocol.NewText("1", protocol.User, "Make sessions configurable.", now), Delivery: convo.Answered, Stored: now})
	message, err := shellctx.NewMessage("2", shellctx.Record{Command: "npm test", CWD: "/src", Output: strings.Repeat("ok\n", 9) + "\x1b[31m1 failing\x1b[m\n", ExitCode: 1}, now)
	if err != nil {
		panic(err)
	}
	f.Say(ref, convo.Entry{Message: message, Delivery: convo.Saved, Stored: now.Add(time.Minute)})
	f.Say(ref, convo.Entry{Message: protocol.NewText("3", protocol.Assistant, "## Done\n\nI changed **two** files:\n\n- `session.ts`\n- `config.ts`\n\n```go\nfunc main() {}\n```\n", now), Stored: now.Add(2 * time.Minute)})
	f.Say(ref, convo.Entry{Message: protocol.NewText("4", protocol.User, "Now the tests, \x1b[2Jplease.", now), Delivery: convo.Unconfirmed, Reason: "the agent did not answer in time", Stored: now.Add(3 * time.Minute)})
}

func TestConversationShowsRolesTimesStatesAndFoldedRecords(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		conversation(ui.Fleet, time.Date(2000, 1, 1, 11, 0, 0, 0, time.UTC))
		ui.Press("]", "+").Row("you  11:00").Row("Make sessions configurable.").Row("shell  11:01").Row("! npm test").Row("7 more lines").Row("exit 1")
		ui.Row("agent  11:02").Row("you  11:03  unconfirmed: the agent did not answer in time").Row("Now the tests, please.")
		golden(t, ui, "conversation-120x36")
		ui.Row("- session.ts").Row("│ func main() {}").NoRow("**two**")
		ui.Row("1 failing").Press("tab", "o").NoRow("more lines").Press("enter").Row("7 more lines")
		ui.Press("O").Row("j k scroll").Row("1 failing").Press("esc").NoRow("j k scroll")
	})
}

func TestOnlyTheUsersWordRepeatsAMessage(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		conversation(ui.Fleet, time.Date(2000, 1, 1, 11, 0, 0, 0, time.UTC))
		ui.Press("]", "+", "tab", "r").Row("the agent has it").Row("send it again, perhaps a second time").Row("give it up")
		ui.Press("down", "enter").Called("Decide again 4").NotCalled("Send").Row("submitted").NoRow("unconfirmed")
		ui.Press("r").Row("the fate of no message here is open")
	})
}

func TestSearchJumpsToThePlace(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		now := time.Date(2000, 1, 1, 11, 0, 0, 0, time.UTC)
		conversation(ui.Fleet, now)
		for i := range 300 {
			ui.Fleet.Say(fleet.Ref{Cell: "api-auth"}, convo.Entry{Message: protocol.NewText(fmt.Sprint("n", i), protocol.Assistant, fmt.Sprint("answer ", i), now), Stored: now})
		}
		ui.Press("3").Press("ctrl+f").Type("configurable").Row("api-auth:0").Row("Make sessions configurable.").Press("enter")
		ui.Called("Around 1").Row("> you  11:00").Row("Make sessions configurable.")
		// A message elsewhere in it leaves the place alone; the end brings back the newest.
		ui.Fleet.Say(fleet.Ref{Cell: "api-auth"}, convo.Entry{Message: protocol.NewText("late", protocol.Assistant, "late", now), Stored: now})
		ui.Settle().Row("> you  11:00").Press("G").Row("answer 299").NoRow("> you")
		ui.Press("/").Row("Search in this conversation").Type("answer 150").Press("enter").Row("answer 150")
	})
}

// A place near the end has the newest message on its page, and stays live.
func TestFoundPlaceNearTheEndGrows(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		now := time.Date(2000, 1, 1, 11, 0, 0, 0, time.UTC)
		say := func(text string) {
			ui.Fleet.Say(fleet.Ref{Cell: "api-auth"}, convo.Entry{Message: protocol.NewText(text, protocol.Assistant, text, now), Stored: now})
		}
		say("needle")
		say("hay")
		ui.Press("3").Press("ctrl+f").Type("needle").Row("api-auth:0").Press("enter").Called("Around 1").Row("> agent  11:00").Row("hay")
		say("late")
		ui.Settle().Row("> agent  11:00").Row("late")
	})
}

func TestMessagesInSightAreCopied(t *testing.T) {
	tuitest.Run(t, tuitest.Sample().WithOptionalPorts(), tuitest.Options{}, func(ui *tuitest.UI) {
		now := time.Date(2000, 1, 1, 11, 0, 0, 0, time.UTC)
		ui.Fleet.Say(fleet.Ref{Cell: "api-auth"}, convo.Entry{Message: protocol.NewText("1", protocol.Assistant, "an **answer**", now), Stored: now})
		ui.Fleet.Say(fleet.Ref{Cell: "api-auth"}, convo.Entry{Message: protocol.NewText("2", protocol.User, "a question", now), Stored: now})
		ui.Press("j", "]").Row("a question").Press("y").Row("the last message in sight", "a question")
		ui.Type("answer").Press("enter").Called("Copy an **answer**")
	})
}

func TestWhatIsInSightStaysWhileTheConversationGrows(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		now := time.Date(2000, 1, 1, 11, 0, 0, 0, time.UTC)
		ref := fleet.Ref{Cell: "api-auth"}
		say := func(i int) {
			ui.Fleet.Say(ref, convo.Entry{Message: protocol.NewText(fmt.Sprint("n", i), protocol.Assistant, fmt.Sprintf("answer %d.", i), now), Stored: now})
		}
		for i := range 250 {
			say(i)
		}
		ui.Press("]", "+", "tab").Row("answer 249.")
		for range 14 {
			ui.Press("pgup")
		}
		rows := ui.Frame()
		for i := 250; i < 300; i++ {
			say(i)
		}
		if grown := ui.Settle().Frame(); grown != rows {
			t.Errorf("the view moved from\n%s\nto\n%s", rows, grown)
		}
		ui.Press("G").Row("answer 299.")
	})
}

func TestTheDiffTabIsOfTheCell(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Fleet.SetDiff("api-auth", "diff --git a/x b/x\n@@ -1 +1 @@\n-old\x1b]0;evil\x07\n+\tnew\n")
		ui.Press("]", "]").Row("-old").Row("+    new").Called("Diff api-auth").Press("2").Row("There are no uncommitted changes.")
		ui.Press("]").Row("Reference", "dotfiles").Press("[", "[", "[").Row("this is pane %5")
	})
}

func TestLongWorkShowsWhatHowFarAndHowToCancel(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Fleet.Change(func(s *fleet.Snapshot) {
			s.Work = []fleet.Work{{ID: "w1", What: "building the image of api-auth", Step: "copying", Done: 12, Total: 40, Unit: "MB", Started: time.Now()}}
		})
		ui.Settle().Row("building the image of api-auth  30%").Row("building the image of api-auth: copying  12 of 40 MB  for 0s  (:cancel-work ends it)")
		ui.Press(":").Type("cancel-work").Press("enter").Row("Cancel?").Press("y").Called("CancelWork w1")
	})
}

func TestZoomAndFocus(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("+").NoRow("[1] Cells").Row("[2] Preview").Press("_").Row("[1] Cells").Press("tab", "tab", "+").Row("[3] Shell log").NoRow("[2]")
	})
	tuitest.Run(t, tuitest.Sample(), tuitest.Options{Width: 50, Height: 16}, func(ui *tuitest.UI) {
		ui.NoRow("[2]").Press("j", "+").Row("Update src/auth").Press("esc").Row("[1] Cells")
	})
}

func TestAgentsAnswerShellLinesWhereTheConversationSaysSo(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("j", ":").Type("answers").Press("enter").Called("SetAsks api-auth:0 true").Row("The agent answers ! lines here from now on.")
		ui.Press("!").Type("make").Row("!? docker:api-auth /src $ [ask] make").Press("ctrl+o").Row("! docker:api-auth /src $ make").Press("enter").Called("Start api-auth:0 context false make")
		ui.Press("esc", "j", "!").Type("ls").Press("enter").Called("Start api-auth:1 context false ls")
	})
}

func TestWhatDoesNotFitInTheMessageLineIsReadToItsEnd(t *testing.T) {
	const long = "A cellmux (process 4711), begun 2026-11-30 12:00, failed (panic: a fault; the report is /home/user/.local/state/cellmux/screens/failed.txt); panes ran on."
	for _, size := range [][2]int{{40, 12}, {60, 20}, {80, 24}, {120, 36}} {
		f := tuitest.Sample()
		tuitest.Run(t, f, tuitest.Options{Width: size[0], Height: size[1], Notice: long}, func(ui *tuitest.UI) {
			shown := strings.Join(strings.Fields(strings.ReplaceAll(ui.Frame(), "\n", " ")), "")
			if !strings.Contains(shown, strings.ReplaceAll(long, " ", "")) {
				t.Errorf("at %dx%d it is cut:\n%s", size[0], size[1], ui.Frame())
			}
			ui.Press("j").NoRow("panes ran on") // read: the rows are the list's again
		})
	}
}

func TestHelpIsReadToItsEndAtEveryWidth(t *testing.T) {
	for _, size := range [][2]int{{40, 12}, {60, 20}, {120, 36}} {
		tuitest.Run(t, tuitest.Sample(), tuitest.Options{Width: size[0], Height: size[1]}, func(ui *tuitest.UI) {
			ui.Press("?")
			for range 60 {
				if strings.Contains(ui.Frame(), "…  │") || strings.Contains(ui.Frame(), "… │") {
					t.Fatalf("cut at %dx%d:\n%s", size[0], size[1], ui.Frame())
				}
				ui.Press("j", "j", "j")
			}
		})
	}
}

func TestAnActionThatWaitsForSomebodyIsWaitedForAndSaysSo(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		release := ui.Fleet.Stall("Rename")
		ui.Press("1", "R").Type("x").Press("enter").NoRow("Still at it")
		ui.Pass(2 * time.Second).Row("Still at it")
		ui.Press("j").Selected("claude").Pass(12 * time.Second)
		release()
		ui.Settle().Row("Renamed to").NoRow("Still at it").NoRow("deadline")
		ui.Pass(20 * time.Second).NoRow("Still at it")
	})
}
