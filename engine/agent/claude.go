package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"cellmux/cell"
)

func claude() declaration {
	return declaration{
		name:      "claude",
		title:     "Claude Code",
		programs:  []string{"claude"},
		install:   "npm install -g @anthropic-ai/claude-code",
		verified:  "2.1.332",
		settle:    100 * time.Millisecond,
		interrupt: []string{"Escape"},
		stash:     []string{"C-s"},
		flags:     []string{"--session-id", "--settings", "--system-prompt-snapshot", "--permission-mode"},
		quiet: []string{
			"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
			// Without it the preview and the log have no history to show.
			"CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN=1",
		},
		session:  sessionUUID,
		holders:  claudeHolders,
		costs:    claudeCosts,
		asks:     claudeContact,
		plan:     planClaude,
		observe:  observeClaude,
		sources:  func(s sight) []string { return []string{filepath.Join(claudeDir(s), "sessions")} },
		box:      claudeBox,
		stream:   claudeStream,
		readOnly: "`--tools Read,Grep,Glob` in plan mode, without MCP servers and without the project's settings",
		facts: facts{
			identity: "`--session-id` the first time, `--resume` once its transcript exists",
			overlay:  "`--append-system-prompt-file` and `--system-prompt-snapshot off` on every start",
			status:   "`sessions/<pid>.json` (idle, busy, waiting); hooks by `--settings` for the question's text",
		},
	}
}

// claudeHooks are the hooks that are spooled. Tool hooks are left out: they
// would start a process for each tool call and tell nothing that is shown.
var claudeHooks = []string{"SessionStart", "UserPromptSubmit", "PermissionRequest", "Notification", "Stop", "StopFailure", "SessionEnd"}

func claudeCosts(f features, _ bool) []string {
	var costs []string
	for _, c := range []struct{ flag, cost string }{
		{"--session-id", "this claude knows no --session-id: its conversation cannot be found again"},
		{"--system-prompt-snapshot", "this claude records its prompt once: changed prompts arrive in new conversations alone"},
		{"--settings", "this claude takes no --settings: its hooks are left out, and questions are read from the screen"},
	} {
		if !f.has(c.flag) {
			costs = append(costs, c.cost)
		}
	}
	return costs
}

// planClaude resumes where the transcript exists: claude refuses to create an ID
// that exists ("already in use") and to resume one that does not ("No
// conversation found"). The transcript appears with the first prompt, so an ID
// that was started and never used is started again.
func planClaude(ctx context.Context, p *planning) error {
	dir := p.rooms.agentHome
	config := filepath.Join(dir, ".claude")
	if set := p.lookup("CLAUDE_CONFIG_DIR"); set != "" {
		host, err := p.rooms.outside(set)
		if err != nil {
			return fmt.Errorf("CLAUDE_CONFIG_DIR: %w", err)
		}
		config, dir = host, host
	}
	p.launch.ConfigDir = config
	id := p.sessionID()
	exists, err := claudeTranscript(config, id)
	if err != nil {
		return err
	}
	if !exists && p.BoundID != "" {
		// The conversation that /clear began was never used. The slot's own is
		// older and must not come back in its place.
		p.note("the conversation begun inside claude is empty and starts anew")
	}
	p.argv(p.program)
	if p.Headless {
		p.argv("-p", "--output-format", "stream-json", "--verbose")
		if !p.isSet("CLAUDE_CODE_MAX_RETRIES") {
			// A bad key is retried for three minutes otherwise.
			p.env("CLAUDE_CODE_MAX_RETRIES", "2")
		}
	}
	switch {
	case exists:
		p.argv("--resume", id)
		p.out.Resume = true
	case p.features.has("--session-id"):
		p.argv("--session-id", id)
	}
	p.out.Session = id

	options := p.Prompts
	options.SnapshotFlag = p.features.has("--system-prompt-snapshot")
	flags, err := cell.ClaudePromptFlags(p.Config, p.CellConfig, options)
	if err != nil {
		return err
	}
	p.argv(flags...)

	if p.features.has("--settings") && !p.Headless {
		settings := filepath.Join(p.rooms.slot, "claude-settings.json")
		if err := p.rooms.write(settings, claudeSettings(p.rooms.inside(p.rooms.spool))); err != nil {
			return err
		}
		p.argv("--settings", p.rooms.inside(settings))
	}
	if p.Review {
		p.argv("--permission-mode", "plan", "--tools", "Read,Grep,Glob", "--strict-mcp-config", "--setting-sources", "user")
	}
	settings := filepath.Join(dir, ".claude.json")
	switch {
	case p.Config.Guest.Isolated:
		return seedClaude(p, settings)
	case p.Trusted && !p.Headless:
		return answerClaude(ctx, p, settings)
	}
	return nil
}

func claudeSettings(spool string) []byte {
	type command struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
	}
	type matcher struct {
		Hooks []command `json:"hooks"`
	}
	hooks := map[string][]matcher{}
	for _, kind := range claudeHooks {
		hooks[kind] = []matcher{{Hooks: []command{{Type: "command", Command: spoolCommand(spool, kind), Timeout: 5}}}}
	}
	data, err := json.MarshalIndent(map[string]any{"hooks": hooks}, "", "  ")
	if err != nil {
		panic(err) // strings and maps of them always marshal
	}
	return data
}

// claudeTranscript says whether a conversation has a transcript: a file named by
// the ID in one of the project folders, whatever the directory it began in.
func claudeTranscript(config, id string) (bool, error) {
	if id == "" || id != filepath.Base(id) {
		return false, fmt.Errorf("%q is no session ID", id)
	}
	projects, err := os.ReadDir(filepath.Join(config, "projects"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for claude's transcript: %w", err)
	}
	for _, project := range projects {
		info, err := os.Lstat(filepath.Join(config, "projects", project.Name(), id+".jsonl"))
		if err == nil && info.Mode().IsRegular() {
			return true, nil
		}
	}
	return false, nil
}

// seedClaude answers the questions of a first start inside a cell's own home:
// the welcome, the trust in the directory that the user has just chosen, and the
// API key that the cell's environment carries. What is there already stays.
func seedClaude(p *planning, file string) error {
	known := map[string]any{}
	data, _, err := readSmall(p.Config.WorkspaceHome, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		p.note("claude's settings in this cell cannot be read, so it may ask on its start: %v", err)
		return nil
	default:
		if json.Unmarshal(data, &known) != nil || known == nil {
			p.note("claude's settings in this cell are damaged, so it may ask on its start")
			return nil
		}
	}
	changed := false
	set := func(in map[string]any, key string, value any) {
		if _, ok := in[key]; !ok {
			in[key], changed = value, true
		}
	}
	child := func(in map[string]any, key string) map[string]any {
		inner, ok := in[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			in[key] = inner
		}
		return inner
	}
	set(known, "hasCompletedOnboarding", true)
	set(known, "theme", "dark")
	project := child(child(known, "projects"), p.rooms.projectInside())
	if project["hasTrustDialogAccepted"] != true {
		project["hasTrustDialogAccepted"], changed = true, true
	}
	set(project, "hasCompletedProjectOnboarding", true)
	if key := p.lookup("ANTHROPIC_API_KEY"); key != "" {
		tail := claudeKeyTail(key)
		responses := child(known, "customApiKeyResponses")
		approved, _ := responses["approved"].([]any)
		rejected, _ := responses["rejected"].([]any)
		if !slices.Contains(approved, any(tail)) && !slices.Contains(rejected, any(tail)) {
			responses["approved"], changed = append(approved, tail), true
			set(responses, "rejected", []any{})
		}
	}
	if !changed {
		return nil
	}
	data, err = json.MarshalIndent(known, "", "  ")
	if err != nil {
		return err
	}
	return p.rooms.write(file, data)
}

// claudeDir is the host path of claude's configuration, as the launch said.
func claudeDir(s sight) string {
	if dir := s.launch.ConfigDir; dir != "" {
		if rel, err := filepath.Rel(s.top(), dir); err == nil && filepath.IsLocal(rel) || !s.slot.Config.Guest.Isolated {
			return dir
		}
	}
	return filepath.Join(s.rooms.agentHome, ".claude")
}

// claudeEntry is claude's own registry of a running process.
type claudeEntry struct {
	PID             int    `json:"pid"`
	SessionID       string `json:"sessionId"`
	ProcStart       string `json:"procStart"`
	StartedAt       int64  `json:"startedAt"` // milliseconds of Unix time, like all three
	Kind            string `json:"kind"`
	Status          string `json:"status"`
	WaitingFor      string `json:"waitingFor"`
	StatusUpdatedAt int64  `json:"statusUpdatedAt"`
}

// observeClaude reads the registry, which is right within a second of an Esc, a
// rejection, an error and a /clear, where hooks are silent. Hooks add the
// question's text, the error's, and when turns began.
func observeClaude(s sight) Status {
	var status Status
	status.hooks(s.events, "UserPromptSubmit", "Stop", "StopFailure")
	entry, ok := claudeRegistry(s)
	if !ok {
		return claudeStarting(s, status)
	}
	status.Source = "claude's registry"
	status.Session = entry.SessionID
	updated := time.UnixMilli(entry.StatusUpdatedAt)
	if entry.StatusUpdatedAt > 0 {
		status.Since = updated
	}
	switch entry.Status {
	case "busy":
		status.State = Working
		status.Detail = status.Prompt
	case "waiting":
		status.State = Waiting
		status.Question = entry.WaitingFor
		if e, ok := s.events.newest("PermissionRequest"); ok && e.at.After(updated.Add(-5*time.Second)) {
			status.Question = asked(e.body.ToolName, e.body.ToolInput)
		} else if rows := s.screen(); rows != nil {
			if q := claudeQuestion(rows); q != "" {
				status.Question = q
			}
		}
	case "idle":
		status.State = Idle
		if failure, ok := s.events.newest("StopFailure"); ok && !failure.at.Before(status.TurnBegan) && failure.at.After(s.events.at("Stop")) {
			status.State = Failed
			status.Detail = failure.body.LastAssistantMessage
			if status.Detail == "" {
				status.Detail = failure.body.Error
			}
			if failure.body.Error == "authentication_failed" || strings.Contains(status.Detail, "/login") {
				status.State = LoginNeeded
			}
		}
	default:
		status.State, status.Source = Unknown, "claude's registry says "+line(entry.Status)
	}
	return status
}

// hooks fills in what the hooks of claude's kind tell: when a turn began and
// ended, and with which words.
func (st *Status) hooks(e events, prompt string, ends ...string) {
	if begun, ok := e.newest(prompt); ok {
		st.TurnBegan, st.Prompt = begun.at, begun.body.Prompt
	}
	if ended, ok := e.newest(ends...); ok {
		st.TurnEnded = ended.at
		st.Reply = ended.body.LastAssistantMessage
		if st.Reply == "" {
			st.Reply = ended.body.PromptResponse
		}
	}
	if latest, ok := e.newest(append([]string{"SessionStart", prompt}, ends...)...); ok {
		st.Session = latest.body.SessionID
	}
}

// claudeRegistry finds the entry of the pane's process. On the host that is a
// living process below the pane's own, by PID and start time, so neither a dead
// one's leftover nor another pane's can be taken for it. Inside a guest PIDs mean
// nothing here: there it is an entry of the slot's conversation, or of the one
// that a hook of this slot named, from after the pane was opened.
func claudeRegistry(s sight) (claudeEntry, bool) {
	var found claudeEntry
	for _, e := range claudeEntries(s) {
		if claudeOwns(s, e) && (found.PID == 0 || e.StartedAt > found.StartedAt) {
			found = e
		}
	}
	return found, found.PID != 0
}

func claudeOwns(s sight, e claudeEntry) bool {
	if !s.slot.Config.Guest.Isolated {
		return below(e.PID, s.slot.Pane.PID) && e.alive()
	}
	if !s.opened.IsZero() && e.StartedAt > 0 && time.UnixMilli(e.StartedAt).Before(s.opened.Add(-guestSkew)) {
		return false
	}
	if s.planned(e.SessionID) {
		return true
	}
	latest, ok := s.events.newest("SessionStart", "UserPromptSubmit", "Stop")
	return ok && latest.body.SessionID == e.SessionID
}

// guestSkew is how far a guest's clock may lag.
const guestSkew = 2 * time.Second

// claudeStarting judges a claude that has no registry entry: it starts, or it
// shows a dialog that comes before the conversation.
func claudeStarting(s sight, status Status) Status {
	rows := s.screen()
	for _, row := range rows {
		text := plain(row)
		switch {
		case strings.Contains(text, "Select login method"), strings.Contains(text, "Paste code here"):
			status.State, status.Detail, status.Source = LoginNeeded, "claude waits for a login", "the screen"
			return status
		case claudeChoice.MatchString(text), strings.Contains(text, "Enter to confirm"):
			status.State, status.Question, status.Source = Waiting, claudeQuestion(rows), "the screen"
			if status.Question == "" {
				status.Question = joinRows(rows)
			}
			return status
		}
	}
	status.Source = "claude has no registry entry yet"
	return status
}

var claudeChoice = regexp.MustCompile(`^\s*[│┃]?\s*❯\s+(\d+\.\s|Yes|No\b)`)

// claudeQuestion takes the question of a dialog from the screen: from the last
// line above the choices up to the first choice.
func claudeQuestion(rows []string) string {
	choice := -1
	for i, row := range rows {
		if claudeChoice.MatchString(plain(row)) {
			choice = i
			break
		}
	}
	if choice < 0 {
		return ""
	}
	from := choice
	for from > 0 && choice-from < 14 && !isRule(rows[from-1]) {
		from--
	}
	return joinRows(rows[from:choice])
}

// claudeBox finds the box between two horizontal rules, with the prompt sign at
// its start. A dialog takes the box's place, so a box means that no dialog is up.
func claudeBox(l Look) Box {
	var b Box
	bottom, top := -1, -1
	for i := len(l.Rows) - 1; i >= 0; i-- {
		text := plain(l.Rows[i])
		if claudeChoice.MatchString(text) {
			return Box{Known: true, Asking: true, Reason: "it asks a question"}
		}
		if !isRule(l.Rows[i]) {
			continue
		}
		if bottom < 0 {
			bottom = i
			continue
		}
		top = i
		break
	}
	if top < 0 || bottom-top < 2 || !strings.HasPrefix(strings.TrimLeft(plain(l.Rows[top+1]), " "), "❯") {
		return Box{Known: len(l.Rows) > 0, Reason: "its box is not on the screen"}
	}
	b.Known, b.Ready = true, true
	for i := top + 1; i < bottom; i++ {
		text := bright(l.Rows[i])
		if i == top+1 {
			// The sign itself is grey while a turn runs.
			text = strings.TrimPrefix(strings.TrimLeft(text, " "), "❯")
		}
		b.Draft = strings.TrimSpace(b.Draft + " " + strings.TrimSpace(strings.ReplaceAll(text, "\u00a0", " ")))
	}
	for _, row := range l.Rows[bottom:] {
		if strings.Contains(plain(row), "esc to interrupt") {
			b.Busy = true
		}
	}
	return b
}
