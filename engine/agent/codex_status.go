package agent

import (
	"regexp"
	"strings"
	"time"
)

var (
	codexAsksTitle = regexp.MustCompile(`^\[ [!.] \] Action Required( \||$)`)
	codexWorkTitle = regexp.MustCompile(`^[\x{2800}-\x{28ff}] `)
	codexChoice    = regexp.MustCompile(`^\s*›\s+\d+\.\s`)
)

// observeCodex takes running, failed and idle from the rollout, which is right
// after an Esc, a rejection and an API error. A question stands in no file: it
// is the title's, and believed only while a turn runs.
func observeCodex(s sight) Status {
	var status Status
	status.hooks(s.events, "UserPromptSubmit", "Stop")
	id, file := codexRollout(s)
	status.Session = id
	var turn codexTurn
	if file != "" {
		turn = readTurn(s.launch.ConfigDir, file)
	}
	current := turn.known && (s.opened.IsZero() || turn.began.After(s.opened) || turn.ended.After(s.opened))
	if !current {
		return codexBefore(s, status)
	}
	status.Source = "codex's rollout"
	status.TurnBegan, status.TurnEnded = turn.began, turn.ended
	status.Prompt, status.Reply = turn.prompt, turn.reply
	switch {
	case turn.running && (codexAsksTitle.MatchString(s.slot.Pane.Title) || codexHookAsks(s, turn)):
		status.State, status.Source = Waiting, "codex's title and hooks"
		if e, ok := s.events.newest("PermissionRequest"); ok && e.at.After(turn.began) {
			status.Question, status.Since = asked(e.body.ToolName, e.body.ToolInput), e.at
		} else if rows := s.screen(); rows != nil {
			status.Question = codexQuestion(rows)
		}
	case turn.running:
		status.State, status.Detail, status.Since = Working, turn.prompt, turn.began
	case turn.err != "":
		status.State, status.Detail, status.Since = Failed, turn.err, turn.ended
		if strings.Contains(turn.err, "401") {
			status.State = LoginNeeded
		}
	default:
		status.State, status.Since = Idle, turn.ended
	}
	return status
}

// codexHookAsks says whether the hook told of a question that is open still:
// nothing was written to the rollout since, and the title has not yet come
// (tmux tells titles once a second).
func codexHookAsks(s sight, turn codexTurn) bool {
	e, ok := s.events.newest("PermissionRequest")
	if !ok || !e.at.After(turn.began) || turn.updatedAt.After(e.at.Add(200*time.Millisecond)) {
		return false
	}
	return s.now.Sub(e.at) < 3*time.Second || codexAsksTitle.MatchString(s.slot.Pane.Title)
}

// codexBefore judges a codex in which no turn has begun since its start.
func codexBefore(s sight, status Status) Status {
	rows := s.screen()
	if rows == nil {
		status.Source = "codex has had no turn yet"
		return status
	}
	status.Source = "the screen"
	look := Look{Rows: rows, Title: s.slot.Pane.Title}
	switch b := codexBox(look); {
	case b.Asking:
		status.State, status.Question = Waiting, codexQuestion(rows)
		if strings.Contains(status.Question, "Sign in") || strings.Contains(joinRows(rows), "Sign in with ChatGPT") {
			status.State, status.Detail = LoginNeeded, "codex waits for a login"
		}
	case b.Busy:
		status.State = Working
	case b.Ready:
		status.State = Idle
	default:
		status.Source = "codex has had no turn yet"
	}
	return status
}

// codexQuestion takes the text above the choices.
func codexQuestion(rows []string) string {
	for i, row := range rows {
		if !codexChoice.MatchString(plain(row)) {
			continue
		}
		from := i
		for from > 0 && i-from < 14 && !strings.HasPrefix(strings.TrimSpace(plain(rows[from-1])), "•") {
			from--
		}
		return joinRows(rows[from:i])
	}
	return ""
}

// codexBox finds the last line that starts with the prompt sign. A menu's
// choices start with it too, and are numbered.
func codexBox(l Look) Box {
	for i := len(l.Rows) - 1; i >= 0; i-- {
		text := plain(l.Rows[i])
		if codexChoice.MatchString(text) || strings.Contains(text, "Press enter to continue") || strings.Contains(text, "enter confirm") {
			return Box{Known: true, Asking: true, Reason: "it asks a question"}
		}
		if !strings.HasPrefix(text, "› ") && text != "›" {
			continue
		}
		b := Box{Known: true, Ready: true}
		b.Draft = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(bright(l.Rows[i])), "›"))
		for _, more := range l.Rows[i+1:] {
			if strings.TrimSpace(plain(more)) == "" {
				break
			}
			b.Draft = strings.TrimSpace(b.Draft + " " + strings.TrimSpace(bright(more)))
		}
		for _, row := range l.Rows[max(0, i-6):i] {
			if strings.Contains(plain(row), "esc to interrupt") {
				b.Busy = true
			}
		}
		if codexWorkTitle.MatchString(l.Title) {
			b.Busy = true
		}
		if codexAsksTitle.MatchString(l.Title) {
			b.Ready, b.Asking, b.Reason = false, true, "it asks a question"
		}
		return b
	}
	return Box{Known: len(l.Rows) > 0, Reason: "its box is not on the screen"}
}
