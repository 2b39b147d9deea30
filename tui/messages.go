package tui

import (
	"time"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/run"
)

// What commands return. Those with a generation are dropped when a newer
// question of the same kind has been asked.
type (
	// watching hands over a channel to listen to.
	watching[T any] <-chan T
	// heard is the next value of such a channel.
	heard[T any] struct {
		value T
		from  <-chan T
	}

	clockTicked struct{ clock generation }

	// done ends an action.
	done struct {
		what   string // "stopped claude in api"; "" says nothing
		err    error
		refs   []fleet.Ref // whose busy notes end
		choose *fleet.Ref
		undo   bool   // it can be undone
		then   intent // performed after success
		// contact is asked about before then, where it has something to ask.
		contact fleet.FirstContact
		id      int // of the action
	}

	// stillActing comes when an action has been without an answer for a while.
	stillActing int

	captured struct {
		generation generation
		screen     fleet.Screen
		offset     int
		started    time.Time
		err        error
	}
	captureDue struct{ generation generation }

	foregroundReady struct {
		attachment fleet.Attachment
		saved      func() (string, error) // of an editor
		err        error
	}
	foregroundEnded struct {
		err   error
		saved func() (string, error)
	}
	edited struct {
		text string
		err  error
	}
	resumed struct{ err error }

	logLoaded struct {
		generation generation
		executions []run.Execution
		err        error
	}
	lineStarted struct {
		ref    fleet.Ref
		line   string
		handle run.Handle
		err    error
	}
	outputCame struct {
		id      string
		text    string
		skipped int64
		ended   bool
	}
	lineEnded struct {
		execution run.Execution
		err       error
	}
	whereAnswered struct {
		ref    fleet.Ref
		onHost bool
		where  string
		asks   bool
		err    error
	}
	completed struct {
		text    string
		cursor  int
		choices []string
		err     error
	}

	sent struct {
		ref   fleet.Ref
		entry convo.Entry
		text  string
		err   error
	}
	tabLoaded struct {
		generation generation
		tab        tab
		page       []convo.Entry
		older      bool
		around     int64 // the message that was jumped to
		diff       string
		facts      []fleet.Fact
		err        error
	}

	agentsListed struct {
		cell    string
		choices []fleet.AgentChoice
		err     error
	}
	approvalShown struct {
		approval fleet.Approval
		then     intent
		err      error
	}
	textRead struct {
		title string
		lines []string
		err   error
	}
	jobsListed struct {
		jobs []Job
		err  error
	}
	found struct {
		searchText
		hits []convo.Hit
		err  error
	}
)
