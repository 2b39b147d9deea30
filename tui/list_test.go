package tui_test

import (
	"errors"
	"testing"
	"time"

	"cellmux/engine/fleet"
	"cellmux/tui/tuitest"
)

func screen(t *testing.T, test func(ui *tuitest.UI)) {
	t.Helper()
	tuitest.Run(t, tuitest.Sample(), tuitest.Options{}, test)
}

func TestMovingSelectsAndThePreviewFollows(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Selected("api-auth").Press("j").Selected("claude", "Allow Bash(rm -rf").Row("│ ● Update src/auth/session.ts")
		ui.Press("j").Selected("shell").Row("│ this is pane %2")
		ui.Press("down", "down", "down").Selected("claude", "stopped").Row("claude has no pane now")
		ui.Press("G").Selected("zsh").Press("g", "g").Selected("api-auth")
		ui.Press("3").Selected("3 ios-build").Press("}").Selected("4 win-installer").Press("{").Selected("3 ios-build")
		ui.Press("h").Selected("▸ 3 ios-build").NoRow("running xcodebuild").Press("l").Row("codex", "running xcodebuild")
		ui.Press("9").Selected("3 ios-build").Row("There is no cell 9.")
	})
}

func TestLettersOfOneReadMoveOnceEach(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		k := tuitest.Key("j")
		k.Runes = []rune("jjj")
		ui.Send(k).Selected("dotfiles")
	})
}

func TestEscAndALetterInOneReadAreTwoKeys(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("/").Type("dot").Press("enter").NoRow("1 api-auth")
		ui.Press("alt+j").Row("api-auth") // esc shows all again, j moves
		ui.Selected("shell", "exited 137")
	})
}

func TestSelectionFollowsIdentityNotPosition(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("4").Selected("win-installer")
		ui.Fleet.Change(func(s *fleet.Snapshot) {
			s.Cells = append([]fleet.Cell{{Name: "aaa", Title: "aaa", Engine: "host"}}, s.Cells[1:]...)
		})
		ui.Settle().Selected("win-installer").NoRow("api-auth")
	})
}

func TestNothingMovesByItselfWhenStatusesChange(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Fleet.Set(fleet.Ref{Cell: "win-installer"}, func(s *fleet.Slot) { s.Status, s.Question = fleet.Waiting, "Sign it?" })
		ui.Settle().Row("4 win-installer")
		ui.Press("w").Press("w").Selected("opencode", "Sign it?").Press("w").Selected("claude", "Allow").Press("W").Selected("opencode")
		ui.Press("ctrl+r").Row("2 win-installer")
	})
}

func TestEnterAttachesAndComesBack(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("j", "enter").Called("Attach %1").Row("api-auth")
		ui.Press("G", "enter").Called("Attach %0")
		ui.Press("-").Selected("claude")
	})
}

func TestEnterOnAStoppedPaneRestartsItsConversation(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("2", "j", "j").Selected("claude", "stopped").Press("enter").Called("Restart dotfiles:1").Selected("claude").NoRow("stopped")
	})
}

func TestTheCurrentDirectoryIsOfferedAndEnterOpensIt(t *testing.T) {
	f := tuitest.NewFleet(func(time.Time) fleet.Snapshot {
		return fleet.Snapshot{Cells: []fleet.Cell{{Name: "web", Title: "web", Workspace: "main", ProjectDir: "/src/web", Engine: "host", Offered: true}}}
	})
	tuitest.Run(t, f, tuitest.Options{Directory: "/src/web", Width: 100, Height: 30}, func(ui *tuitest.UI) {
		ui.Selected("web", "host", "not yet").Row("/src/web is not a cell yet.")
		golden(t, ui, "offered-100x30")
		ui.Press("enter").Called("NewCell /src/web  main ").Called("Open web ")
		ui.Selected("claude").Row("Opened web.")
		ui.Press("enter").Called("Attach %101")
	})
}

func TestAProjectFileIsShownForApprovalBeforeItActs(t *testing.T) {
	world := func() *tuitest.Fleet {
		f := tuitest.NewFleet(func(time.Time) fleet.Snapshot {
			return fleet.Snapshot{Cells: []fleet.Cell{{Name: "web", Title: "web", Workspace: "main", ProjectDir: "/src/web", Engine: "host", Offered: true, Approval: "devcell.toml waits for your approval"}}}
		})
		f.Approve("web", "runs `make deps` at start", "mounts ~/data")
		return f
	}
	tuitest.Run(t, world(), tuitest.Options{Width: 100, Height: 30}, func(ui *tuitest.UI) {
		ui.Row("devcell.toml waits for your approval").Press("enter").Row("Approve /src/web/devcell.toml?").Row("runs `make deps` at start")
		ui.NotCalled("NewCell")
		golden(t, ui, "approval-100x30")
		ui.Press("enter").NotCalled("Trust").Called("NewCell /src/web  main ") // the default is No
	})
	tuitest.Run(t, world(), tuitest.Options{Width: 100, Height: 30}, func(ui *tuitest.UI) {
		ui.Press("enter", "y").Called("Trust web hash-of-web").Called("NewCell /src/web  main ")
	})
}

func TestTheFirstAgentInADirectoryOfTheHostIsOpenedAfterAQuestion(t *testing.T) {
	contact := fleet.FirstContact{
		Directory: "/home/ada/src/web", Shown: "~/src/web", Agent: "Claude Code",
		Asks: []string{"its welcome and its colours", "whether you trust the directory"}, File: "~/.claude.json",
	}
	world := func() *tuitest.Fleet {
		f := tuitest.NewFleet(func(time.Time) fleet.Snapshot {
			return fleet.Snapshot{Cells: []fleet.Cell{{Name: "web", Title: "web", Workspace: "main", ProjectDir: "/src/web", Engine: "host"}}}
		})
		f.SetFirstContact(contact)
		return f
	}
	for _, c := range []struct {
		key    string
		answer string // "" none is kept
	}{
		{"y", "AnswerFirstContact /home/ada/src/web true"},
		{"enter", "AnswerFirstContact /home/ada/src/web false"}, // the default is No
		{"esc", ""},
	} {
		tuitest.Run(t, world(), tuitest.Options{Width: 100, Height: 30}, func(ui *tuitest.UI) {
			ui.Press("1", "a", "enter").Row("Trust this directory for agents?").Row("~/src/web").Row("Claude Code would ask on its first start there").Row("your own ~/.claude.json").NotCalled("Open")
			if c.answer == "" {
				ui.Press(c.key).NotCalled("AnswerFirstContact").NotCalled("Open")
				return
			}
			ui.Press(c.key).Called(c.answer).Called("Open web claude")
			ui.Press("a", "enter").NoRow("Trust this directory").Called("Open web claude") // asked once
		})
	}
}

func TestStoppingAsksOnlyWhenSomethingWouldBeLost(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("3", "j").Selected("codex").Press("x").Row("Stop codex in ios-build?").Row("codex is at work: running xcodebuild")
		golden(t, ui, "stop-120x36")
		ui.Press("enter").NotCalled("Stop") // Enter takes the default, which is No
		ui.Press("x", "esc").NotCalled("Stop")
		ui.Press("x", "y").Called("Stop ios-build:0").Selected("codex", "stopped").Row("undo: u")
		ui.Press("1", "j", "j").Selected("shell").Press("x").Called("Stop api-auth:1") // idle: at once
		ui.Press("u").Called("Undo").Selected("shell", "make test")
	})
}

func TestDeletingACellNamesTheLossAndUndoBringsItBack(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("1", "d").Row("Delete cell api-auth?").Row("claude waits for your answer").Row("uncommitted or unpushed work (+48-12 ^2)")
		ui.Press("right", "enter").Called("Delete api-auth").NoRow("1 api-auth")
		ui.Press("u").Row("api-auth")
	})
}

func TestErrorsAreShownAndNothingHangs(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Fleet.Fail("Open", errors.New("docker does not answer: start it, or choose another engine"))
		ui.Press("s").Row("docker does not answer: start it, or choose another engine")
		release := ui.Fleet.Stall("Capture")
		ui.Press("j", "j", "j", "k").Selected("shell")
		release()
		ui.Settle().Row("this is pane %2")
	})
}

func TestAgentMenuSaysHowToGetWhatIsMissing(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("a").Row("claude").Row("codex", "codex is not on PATH: npm install")
		ui.Press("down", "enter").NotCalled("Open").Press("up", "enter").Called("Open api-auth claude")
		ui.Row("claude in api-auth")
	})
}

func TestNewCellFormAsksForAnAbsoluteDirectory(t *testing.T) {
	tuitest.Run(t, tuitest.Sample(), tuitest.Options{Directory: "/src/new", Env: map[string]string{"HOME": "/home/me"}}, func(ui *tuitest.UI) {
		ui.Press("n").Row("Directory", "/src/new")
		golden(t, ui, "new-cell-120x36")
		ui.Press("ctrl+u").Type("src/x").Press("enter").Row("must be an absolute path").NotCalled("NewCell")
		ui.Press("ctrl+u").Type("~/src/x").Press("tab").Type("x2").Press("enter").Called("NewCell /home/me/src/x x2 main ").Selected("x2")
	})
}

func TestQuitSaysWhatStaysQueued(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Fleet.Set(fleet.Ref{Cell: "ios-build"}, func(s *fleet.Slot) { s.Queued = 2 })
		ui.Settle().Row("codex", "2 queued").Press("q")
		if !ui.Quit() {
			t.Fatal("q did not quit")
		}
		if got, want := ui.Model.Farewell(), "2 messages stay queued; they are delivered when cellmux runs again and the agent is ready."; got != want {
			t.Errorf("farewell is %q, want %q", got, want)
		}
	})
}

func TestCtrlCQuitsOnlyTwiceAndEscNever(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("esc", "esc", "ctrl+c").Row("Once more quits.")
		ui.Pass(3 * time.Second).Press("ctrl+c")
		if ui.Quit() {
			t.Fatal("two presses far apart quit")
		}
		ui.Press("ctrl+c")
		if !ui.Quit() {
			t.Fatal("ctrl-c twice did not quit")
		}
	})
}

func TestATerminalTooSmallGetsASentence(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Resize(20, 5).Row("cellmux needs 40x12")
		ui.Resize(39, 40).Row("cellmux needs 40x12 cells")
		ui.Resize(1, 1)
		ui.Resize(120, 36).Row("api-auth")
	})
}

func TestTheSilenceOfTmuxIsSaidWhenItLasts(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Fleet.Change(func(s *fleet.Snapshot) { s.Server = "tmux has not answered for a while" })
		ui.Settle().NoRow("tmux gives no answer").Pass(4 * time.Second).Row("tmux gives no answer").Row("tmux has not answered for a while")
		ui.Fleet.Change(func(s *fleet.Snapshot) { s.Server = "" })
		ui.Settle().NoRow("tmux gives no answer")
	})
}
