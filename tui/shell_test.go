package tui_test

import (
	"errors"
	"testing"

	"cellmux/shellctx/convo"
	"cellmux/shellctx/run"
	"cellmux/tui/tuitest"
)

func TestAShellLineStreamsIntoTheLog(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!").Row("! docker:api-auth /src $")
		ui.Type("make test").Row("! docker:api-auth /src $ make test")
		golden(t, ui, "composer-120x36")
		ui.Press("enter").Called("Start api-auth:0 context false make test").Row("! make test", "running")
		c := ui.Fleet.Command("make test")
		c.Print("one\ntw")
		ui.Settle().Row("  one").Row("  tw")
		c.Print("o\n\x1b[2J\x1b[31mred\x1b[m\n")
		ui.Settle().Row("  two").Row("  red")
		c.End(run.Exited, 2)
		ui.Settle().Row("! make test", "exit 2", "3 lines", "→ context")
	})
}

func TestXInTheLogCancelsTheCommandAndNotThePane(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!").Type("sleep 100").Press("enter", "x").NotCalled("Stop").Row("! sleep 100", "cancelled")
		ui.Press("!").Type("sleep 200").Press("enter", "ctrl+c").Row("! sleep 200", "cancelled").NotCalled("Stop")
	})
}

func TestQuittingWithARunningCommandAsksAndCancels(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!").Type("sleep 100").Press("enter", "esc", "q").Row("1 command still runs.").Row("! sleep 100")
		ui.Press("enter")
		if ui.Quit() {
			t.Fatal("the default of the question is Yes")
		}
		ui.Press("q", "y")
		if !ui.Quit() || ui.Fleet.Command("sleep 100").Execution().State != run.Cancelled {
			t.Fatal("quitting did not cancel and end")
		}
	})
}

func TestTheMarksSayWhatBecomesOfALine(t *testing.T) {
	for _, c := range []struct{ typed, call string }{
		{"!ls", "Start api-auth:0 context false ls"},
		{"!!cat .env", "Start api-auth:0 private false cat .env"},
		{"!?make", "Start api-auth:0 ask false make"},
		{`\!important`, "Send api-auth:0 !important"},
		{"hello", "Send api-auth:0 hello"},
	} {
		screen(t, func(ui *tuitest.UI) { ui.Press("m").Type(c.typed).Press("enter").Called(c.call) })
		screen(t, func(ui *tuitest.UI) { ui.Press("m").Paste(c.typed).Press("enter").Called(c.call) })
	}
}

func TestCtrlOLetsTheAgentAnswerThisLine(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!").Type("make").Press("ctrl+o").Row("!? docker:api-auth /src $ [ask] make").Press("enter").Called("Start api-auth:0 ask false make")
		ui.Press("!").Type("make").Row("! docker:api-auth /src $ make")
	})
}

func TestTabOnAnEmptyLineChangesBetweenCellAndHost(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!", "tab").Row("! host ~/src/api-auth $").Type("ls").Press("enter").Called("Start api-auth:0 context true ls")
	})
}

func TestTabCompletesAndGoesRound(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!").Type("git s").Press("tab").Row("$ git status").Press("tab").Row("$ git stash").Press("tab").Row("$ git status")
	})
}

func TestDraftsArePerPaneAndHistoryIsPerCell(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("j", "m").Type("half a thought").Press("esc", "j", "m").NoRow("half a thought").Press("esc", "k", "m").Row("half a thought")
		ui.Press("esc", "!").Type("one").Press("enter")
		ui.Press("!").Press("up").Row("$ one").Press("up").Row("!! docker:api-auth /src $ cat .env").Press("down", "down").NoRow("$ one")
	})
}

func TestSeveralLines(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("m").Type("first").Press("ctrl+j").Type("second").Press("alt+enter").Type(`third\`).Press("enter").Type("fourth").Row("second").Row("third")
		ui.Press("enter").Called("Send api-auth:0 first\nsecond\nthird\nfourth")
	})
}

func TestAMessageThatFailedIsKeptAsADraft(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Fleet.Fail("Send", errors.New("the database is read-only"))
		ui.Press("m").Type("do it").Press("enter").Row("the database is read-only")
		ui.Press("m").Row("do it")
	})
}

func TestWhatBecameOfAMessageIsSaid(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Fleet.Deliver(convo.Queued, "claude asks a question")
		ui.Press("m").Type("do it").Press("enter").Row("Message to claude in api-auth: queued, claude asks a question.")
	})
}

func TestMarkedPanesGetTheSameMessage(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("j", "space", "3", "j", "space").Press("m").Row("m 2 panes >").Type("stop").Press("enter")
		ui.Called("Send api-auth:0 stop").Called("Send ios-build:0 stop")
	})
}

func TestALetterOrDigitFromTheListNeverReachesAnAgent(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("j")
		ui.Fleet.Forget()
		for _, k := range []string{"1", "2", "3", "y", "esc", "Y", "k"} {
			ui.Press(k)
		}
		ui.NotCalled("Type").NotCalled("Send")
	})
}

func TestTypeInForwardsEveryKeyButTheOnesThatLeave(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("3", "j", "i").Row("TYPE-IN: keys go to codex in ios-build. ctrl-q leaves")
		golden(t, ui, "type-in-120x36")
		ui.Press("q", "esc", "ctrl+c", "up", "alt+b", "enter", ";")
		for _, c := range []string{"Type %3 q", "Type %3 Escape", "Type %3 C-c", "Type %3 Up", "Type %3 M-b", "Type %3 Enter", "Type %3 ;"} {
			ui.Called(c)
		}
		ui.Press("ctrl+q").Row("Keys are yours again.").Press("j").Selected("win-installer")
		ui.Press("1", "j", "i").Row("AND IT ASKS")
	})
}

func TestTypingInIsRefusedWhereNobodyListens(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("2", "j", "i").Row("its program has ended").NotCalled("Type")
		ui.Press("G", "i").Row("Type into a pane that is not cellmux's?").Press("enter", "q").NotCalled("Type")
	})
}

func TestKeysTypedFastKeepTheirOrder(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("3", "j", "i")
		release := ui.Fleet.Stall("Type")
		ui.Press("a").Type("bcd")
		release()
		ui.Settle().Called("Type %3 a").Called("Type %3 b c d")
	})
}

func TestWhatIsToBeSaidOfACommandStandsBelowItsRow(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!").Type("sleep 300 & make").Press("enter")
		ui.Fleet.Command("sleep 300 & make").EndWith(run.Exited, 0, func(e *run.Execution) { e.Leftover = 1 })
		ui.Settle().Row("! sleep 300 & make", "exit 0").Row("  1 background process still running")
		ui.Press("!").Type("if").Press("enter")
		ui.Fleet.Command("if").EndWith(run.Exited, 2, func(e *run.Execution) { e.Record.Error = "could not parse command: 1:1" })
		ui.Settle().Row("! if", "exit 2").Row("  could not parse command: 1:1")
		ui.Press("!").Type("vim x").Press("enter")
		ui.Fleet.Command("vim x").EndWith(run.NeverStarted, -1, func(e *run.Execution) { e.Record.Error = "vim needs a terminal" })
		ui.Settle().Row("! vim x", "did not start").Row("  vim needs a terminal")
		ui.Press("!").Type("pwd").Press("enter")
		ui.Fleet.Command("pwd").EndWith(run.Exited, 0, func(e *run.Execution) { e.Note = "/src is gone; the shell is in / now" })
		ui.Settle().Row("! pwd", "exit 0").Row("  /src is gone; the shell is in / now")
	})
}
