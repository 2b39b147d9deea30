package tui_test

import (
	"testing"

	"cellmux/shellctx/run"
	"cellmux/tui/tuitest"
)

// What the reference sheet's traps and rows of public bugs say about the
// composer; the rest of them is shellctx/run's.

func TestTrap23_ProseAfterAShellLineIsAMessageOfItsOwn(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!").Type("sleep 9").Press("enter", "esc", "m").Type("go on").Press("enter")
		ui.Called("Start api-auth:0 context false sleep 9").Called("Send api-auth:0 go on")
		if state := ui.Fleet.Command("sleep 9").Execution().State; state != run.Running {
			t.Fatalf("the command is %s", state)
		}
	})
}

func TestTrap26_ThePromptNamesWhereALineWillRun(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!").Type("rm -rf build").Row("! docker:api-auth /src $ rm -rf build").NotCalled("Start")
		ui.Press("ctrl+u", "esc", "!").Press("tab").Type("rm -rf build").Row("! host ~/src/api-auth $ rm -rf build").NotCalled("Start")
		ui.Press("enter").Called("Start api-auth:0 context true rm -rf build")
	})
}

func TestIssueRow26_WordsOfTheAppMeanNothingInAShellLine(t *testing.T) {
	for _, word := range []string{"exit", "quit", "q", ":q"} {
		screen(t, func(ui *tuitest.UI) {
			ui.Press("!").Type(word).Press("enter").Called("Start api-auth:0 context false " + word)
			if ui.Quit() {
				t.Fatalf("!%s ended the screen", word)
			}
		})
	}
}

func TestIssueRow27_AnEditedShellLineStaysOne(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!").Type("make").Press("enter", "esc", "m").Press("up").Type(" test").Press("enter")
		ui.Called("Start api-auth:0 context false make test").NotCalled("Send")
		ui.Press("esc", "m").Type("thanks").Press("enter").Called("Send api-auth:0 thanks")
	})
}

func TestIssueRow30_AGuestsLineOnTheHostSaysSo(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("!").Row("! docker:api-auth /src $").Press("tab").NoRow("docker:api-auth /src $").Row("! host ~/src/api-auth $")
	})
}
