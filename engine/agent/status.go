package agent

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// State is what an agent is doing. The zero value is Unknown.
type State int

// The states.
const (
	Unknown     State = iota // no source has said anything that can be believed
	Waiting                  // it asks something; Question says what
	Failed                   // its last turn ended in an error; Detail says which
	LoginNeeded              // it cannot work before the user has logged in
	Working                  // a turn runs
	Idle                     // it waits for a message
	Ended                    // its program is gone
)

var stateNames = [...]string{"unknown", "waiting", "failed", "login needed", "working", "idle", "ended"}

func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return stateNames[Unknown]
	}
	return stateNames[s]
}

// Status is what is known of a slot's agent. All texts are one line, without
// control characters, and of bounded length.
type Status struct {
	State    State
	Detail   string // what it does, or how it failed
	Question string // of a waiting agent, in its own words, with what it would do
	Since    time.Time
	// Session is the agent's own session ID now; "" is unknown. When it differs
	// from the one that was planned, the user has begun another conversation
	// inside the agent.
	Session string
	// Adopted says that Session is the agent's own choice because it did not take
	// ours, and not another conversation.
	Adopted bool
	// TurnBegan is when a prompt was last seen to become a turn, TurnEnded when
	// one was last seen to end; zero is never.
	TurnBegan, TurnEnded time.Time
	Prompt               string // of that turn, as far as the agent tells it
	Reply                string // the last answer, as far as the agent tells it, in one line
	Answer               string // the same with its lines, for the conversation
	title                string // of the terminal, when Session was found
	Source               string // where State comes from, for doctor and the Info tab
}

// maxLine bounds the texts of a Status, in bytes.
const maxLine = 500

// maxPassage bounds an Answer, in bytes.
const maxPassage = 256 << 10

// passage makes a safe text of several lines.
func passage(s string) string {
	if len(s) > maxPassage {
		s = strings.ToValidUTF8(s[:maxPassage], "") + "…"
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s))
}

// line makes one safe line of a text that an agent or a guest wrote.
func line(s string) string {
	if len(s) > 8*maxLine {
		s = s[:8*maxLine]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxLine {
		return s
	}
	cut := maxLine
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
