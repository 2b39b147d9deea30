package tui

import (
	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/run"
)

// An intent is what the user wants, as a plain value. Components return
// intents; perform alone turns them into commands.
type intent any

type (
	attachTo     struct{ ref fleet.Ref }
	attachToPane struct{ pane string } // one outside
	openPane     struct {
		cell, agent string
		line        string // run this `!` line in a shell pane, attached
	}
	answerContact struct {
		directory string
		trusted   bool
		then      intent
	}
	openCell    struct{ cell fleet.Cell } // an offered one
	makeCell    struct{ cell fleet.NewCell }
	restartPane struct{ ref fleet.Ref }
	stopPanes   struct{ refs []fleet.Ref }
	deleteRefs  struct{ refs []fleet.Ref }
	undoLast    struct{}
	renameRef   struct {
		ref   fleet.Ref
		title string
	}
	pinCell struct {
		cell   string
		pinned bool
	}
	archiveRefs struct {
		refs     []fleet.Ref
		archived bool
	}
	interruptPane struct{ ref fleet.Ref }
	showAgents    struct{ cell string }
	showApproval  struct {
		cell string
		then intent
	}
	trustCell struct {
		cell, hash string
		then       intent
	}
	showProposal struct {
		cell  string
		again bool // what was shown before has changed
	}
	commitWork struct {
		cell, message string
		shown         fleet.Proposal
	}
	reviewWork struct{ ref fleet.Ref }
	sendText   struct {
		refs []fleet.Ref
		text string
	}
	runLine struct {
		ref    fleet.Ref
		line   string
		mode   run.Mode
		onHost bool
	}
	cancelLine   struct{ id string }
	completeLine struct {
		ref    fleet.Ref
		text   string
		cursor int
	}
	editText struct{ text string }
	typeKeys struct {
		pane string
		keys []string
	}
	copyText   struct{ what, text string }
	searchText struct {
		query, session string
		before         int64 // 0: the newest; else those that come after this message
	}
	showMessage struct{ entry convo.Entry }
	sayWord     struct {
		entry convo.Entry
		word  fleet.Word
	}
	toggleAsks  struct{ ref fleet.Ref }
	selectRef   struct{ ref fleet.Ref }
	readEvents  struct{}
	readLog     struct{}
	listJobs    struct{}
	killJob     struct{ id string }
	cancelWork  struct{ id string }
	refreshAll  struct{}
	runBinding  struct{ name string }
	setSort     struct{ by string }
	setGroup    struct{ by string }
	askConfirm  struct{ dialog *confirm }
	quitNow     struct{}
	suspendNow  struct{}
	composeWith struct{ text string }
	sayText     struct{ text string }
)
