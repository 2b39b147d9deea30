package agent

import (
	"bufio"
	"bytes"
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

func gemini() declaration {
	return declaration{
		name:      "gemini",
		title:     "Gemini CLI",
		programs:  []string{"gemini"},
		install:   "npm install -g @google/gemini-cli",
		verified:  "0.61.0",
		settle:    300 * time.Millisecond, // an Enter within 80 ms of 20 KB becomes a newline
		interrupt: []string{"Escape"},
		flags:     []string{"--session-id", "--resume", "--skip-trust", "--approval-mode"},
		mustSay:   true,
		asks:      geminiContact,
		session:   sessionUUID,
		plan:      planGemini,
		observe:   observeGemini,
		sources: func(s sight) []string {
			if chat := geminiChat(s); chat != "" {
				return []string{filepath.Dir(chat)}
			}
			return nil
		},
		box:      geminiBox,
		stream:   geminiStream,
		readOnly: "`--approval-mode plan`",
		facts: facts{
			identity: "`--session-id` the first time, `--resume` once the model has answered; a home of its own for each slot",
			overlay:  "GEMINI.md of that home, read on every start",
			status:   "the title (Ready, Working…, Action Required); hooks for the question's text; the chat file for errors",
		},
	}
}

// geminiHooks are spooled. BeforeTool and PreCompress are left out: they come
// with each tool call and each turn, and tell nothing that is shown.
var geminiHooks = []string{"SessionStart", "BeforeAgent", "AfterAgent", "Notification", "SessionEnd"}

// planGemini gives each slot a gemini home of its own below the workspace home:
// two IDs with equal first eight digits that begin in one minute would share a
// chat file, and the overlay and the hooks have no other place that is neither
// the user's own file nor the repository's. What the user has set up in his own
// home (login, settings, extensions, memory) is linked or merged in.
func planGemini(_ context.Context, p *planning) error {
	home := filepath.Join(p.rooms.slot, "gemini")
	dot := filepath.Join(home, ".gemini")
	own := filepath.Join(p.rooms.agentHome, ".gemini")
	if set := p.lookup("GEMINI_CLI_HOME"); set != "" {
		host, err := p.rooms.outside(set)
		if err != nil {
			return fmt.Errorf("GEMINI_CLI_HOME: %w", err)
		}
		own = filepath.Join(host, ".gemini")
	}
	if err := p.rooms.makeDir(dot); err != nil {
		return err
	}
	if err := linkGemini(p, own, dot); err != nil {
		return err
	}
	if err := writeGeminiSettings(p, own, dot); err != nil {
		return err
	}
	if err := writeGeminiPrompts(p, own, dot); err != nil {
		return err
	}
	p.env("GEMINI_CLI_HOME", p.rooms.inside(home))
	p.launch.ConfigDir = home

	id := p.sessionID()
	answered, err := geminiAnswered(dot, id)
	if err != nil {
		return err
	}
	p.argv(p.program)
	p.argv(p.model().Flags...)
	if answered {
		p.argv("--resume", id)
		p.out.Resume = true
	} else {
		// A file without an answer (killed before the first prompt, first turn
		// failed) makes gemini refuse the ID both as new and as known.
		if err := removeGeminiChats(dot, id); err != nil {
			return err
		}
		p.argv("--session-id", id)
	}
	p.out.Session = id
	trusted := p.Trusted && !geminiDecided(own, p.rooms.projectInside(), p.lookup("GEMINI_CLI_TRUST_WORKSPACE"))
	if p.Config.Guest.Isolated || p.Headless || trusted {
		// The directory is the cell's own; headless, gemini refuses any other
		// (exit 55), and cannot ask.
		p.argv("--skip-trust")
	}
	if p.Headless {
		p.argv("--output-format", "stream-json")
		// The launcher starts itself anew and would not pass a signal on.
		p.env("GEMINI_CLI_NO_RELAUNCH", "true")
	}
	if p.Review {
		p.argv("--approval-mode", "plan")
	}
	return nil
}

// linkGemini makes everything of the user's own .gemini visible in the slot's,
// but for what differs by slot.
func linkGemini(p *planning, own, dot string) error {
	entries, err := os.ReadDir(own)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read gemini's own home: %w", err)
	}
	root, err := os.OpenRoot(dot)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, entry := range entries {
		switch entry.Name() {
		case "settings.json", "GEMINI.md", "tmp", "history", "projects.json", "state.json":
			continue
		}
		target, err := filepath.Rel(dot, filepath.Join(own, entry.Name()))
		if err != nil {
			continue
		}
		if !p.Config.Guest.Isolated {
			target = filepath.Join(own, entry.Name())
		}
		if err := root.Symlink(target, entry.Name()); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("link gemini's %s: %w", entry.Name(), err)
		}
	}
	return nil
}

// writeGeminiSettings merges the hooks and the quiet switches into the user's
// settings. Unreadable ones are left out, and said.
func writeGeminiSettings(p *planning, own, dot string) error {
	settings := map[string]any{}
	data, _, err := readSmall(own, filepath.Join(own, "settings.json"))
	if err == nil && (json.Unmarshal(data, &settings) != nil || settings == nil) {
		p.note("gemini's settings are damaged and were left out: %s", filepath.Join(own, "settings.json"))
		settings = map[string]any{}
	}
	section := func(in map[string]any, name string) map[string]any {
		inner, ok := in[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			in[name] = inner
		}
		return inner
	}
	set := func(in map[string]any, name string, value any) {
		if _, ok := in[name]; !ok {
			in[name] = value
		}
	}
	set(section(settings, "general"), "enableAutoUpdate", false)
	set(section(settings, "general"), "enableAutoUpdateNotification", false)
	set(section(settings, "privacy"), "usageStatisticsEnabled", false)
	if p.lookup("GEMINI_API_KEY") != "" {
		// Without it a dialog opens although the key is there.
		set(section(section(settings, "security"), "auth"), "selectedType", "gemini-api-key")
	}
	// The hooks' messages in the status line would stand in the box's place.
	set(section(settings, "hooksConfig"), "notifications", false)
	hooks := section(settings, "hooks")
	for _, kind := range geminiHooks {
		before, _ := hooks[kind].([]any)
		hooks[kind] = append(before, map[string]any{"hooks": []any{map[string]any{
			"type": "command", "name": "cellmux", "timeout": 5000, // milliseconds
			"command": spoolCommand(p.rooms.inside(p.rooms.spool), kind),
		}}})
	}
	data, err = json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return err
	}
	return p.rooms.write(filepath.Join(dot, "settings.json"), data)
}

// writeGeminiPrompts puts the overlay behind the user's own memory, in the file
// that gemini adds to its system prompt on every start. The base replaces it.
func writeGeminiPrompts(p *planning, own, dot string) error {
	base, err := cell.WriteBasePrompt(p.Config, p.Prompts)
	if err != nil {
		return err
	}
	if base != "" {
		p.env("GEMINI_SYSTEM_MD", base)
	}
	if _, err := cell.WriteOverlayPrompt(p.Config, p.CellConfig, p.Prompts); err != nil {
		return err
	}
	text, err := cell.AssembleOverlayPrompt(p.Config, p.CellConfig, p.Prompts)
	if err != nil {
		return err
	}
	if memory, _, err := readSmall(own, filepath.Join(own, "GEMINI.md")); err == nil && len(bytes.TrimSpace(memory)) > 0 {
		text = strings.TrimRight(string(memory), "\n") + "\n\n" + text
	}
	return p.rooms.write(filepath.Join(dot, "GEMINI.md"), []byte(text))
}

// geminiChats are the chat files that a session ID may have: one a project
// folder, named by the minute and the ID's first eight digits.
func geminiChats(dot, id string) ([]string, error) {
	if len(id) < 8 || id != filepath.Base(id) || strings.ContainsAny(id, `*?[\`) {
		return nil, fmt.Errorf("%q is no session ID", id)
	}
	var chats []string
	projects, err := os.ReadDir(filepath.Join(dot, "tmp"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for gemini's chats: %w", err)
	}
	for _, project := range projects {
		dir := filepath.Join(dot, "tmp", project.Name(), "chats")
		files, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, file := range files {
			if file.Type().IsRegular() && strings.HasPrefix(file.Name(), "session-") && strings.HasSuffix(file.Name(), "-"+id[:8]+".jsonl") {
				chats = append(chats, filepath.Join(dir, file.Name()))
			}
		}
	}
	return chats, nil
}

// geminiAnswered says whether the model has answered in a conversation.
func geminiAnswered(dot, id string) (bool, error) {
	chats, err := geminiChats(dot, id)
	if err != nil {
		return false, err
	}
	for _, chat := range chats {
		f, err := os.Open(chat)
		if err != nil {
			return false, fmt.Errorf("read gemini's chat: %w", err)
		}
		answered := false
		reader := bufio.NewReader(f)
		for !answered {
			text, err := reader.ReadBytes('\n')
			answered = bytes.Contains(text, []byte(`"type":"gemini"`)) && !bytes.Contains(text, []byte(`"type":"gemini","content":""`))
			if err != nil {
				break
			}
		}
		f.Close()
		if answered {
			return true, nil
		}
	}
	return false, nil
}

func removeGeminiChats(dot, id string) error {
	chats, err := geminiChats(dot, id)
	for _, chat := range chats {
		err = errors.Join(err, os.Remove(chat))
	}
	return err
}

// geminiChat is the file of the conversation now: the hooks name it.
func geminiChat(s sight) string {
	home := s.launch.ConfigDir
	latest, ok := s.events.newest("SessionStart", "BeforeAgent", "AfterAgent", "Notification")
	if home == "" || !ok || latest.body.TranscriptPath == "" {
		return ""
	}
	file, err := s.rooms.outside(latest.body.TranscriptPath)
	if err != nil {
		return ""
	}
	if rel, err := filepath.Rel(home, file); err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	if rel, err := filepath.Rel(s.slot.Config.WorkspaceHome, home); err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return file
}

// geminiFailure is the error with which the last turn ended, "" for none.
func geminiFailure(home, file string) string {
	tail, _, err := readTail(home, file)
	if err != nil {
		return ""
	}
	failure := ""
	scanner := bufio.NewScanner(bytes.NewReader(tail))
	scanner.Buffer(nil, tailSize+1)
	for scanner.Scan() {
		var entry struct {
			Type    string
			Content json.RawMessage
		}
		if json.Unmarshal(scanner.Bytes(), &entry) != nil {
			continue
		}
		switch entry.Type {
		case "user", "gemini":
			failure = ""
		case "error":
			if json.Unmarshal(entry.Content, &failure) == nil {
				failure = errorText(failure)
			}
		}
	}
	return failure
}

// The title is padded and names the directory, whose name may be anything.
var geminiTitle = regexp.MustCompile(`^(◇  Ready|✦  Working…|✋  Action Required|⏲  Working…) \(.*\)\s*$`)

// Sources of gemini's status.
const (
	geminiByTitle  = "gemini's title"
	geminiByScreen = "the screen"
)

// observeGemini believes the title, which is right after a rejection too, where
// no hook comes. Before the first prompt box the dialogs of a start say Ready as
// well, so the screen has the last word there.
func observeGemini(s sight) Status {
	var status Status
	status.hooks(s.events, "BeforeAgent", "AfterAgent")
	if s.nested(status.Session) {
		status.Session = ""
	}
	match := geminiTitle.FindStringSubmatch(s.slot.Pane.Title)
	if match == nil {
		return geminiBefore(s, status)
	}
	status.Source = geminiByTitle
	switch {
	case strings.HasPrefix(match[1], "✋"):
		status.State = Waiting
		if e, ok := s.events.newest("Notification"); ok && e.at.After(s.events.at("BeforeAgent")) {
			status.Question = geminiAsks(e)
		} else if rows := s.screen(); rows != nil {
			status.Question = geminiQuestion(rows)
		}
	case strings.HasSuffix(match[1], "Working…"):
		status.State, status.Detail = Working, status.Prompt
		if e, ok := s.events.newest("Notification", "BeforeAgent", "AfterAgent"); ok && e.kind == "Notification" && s.now.Sub(e.at) < 2*time.Second {
			// The hook is there at once, the title within a second and a half.
			status.State, status.Question, status.Source = Waiting, geminiAsks(e), "gemini's hook"
		}
	default:
		status.State = Idle
		if begun := s.events.at("BeforeAgent"); s.now.Sub(begun) < 2*time.Second && begun.After(s.events.at("AfterAgent")) && !geminiLeft(s.before, status.TurnBegan) {
			status.State, status.Detail, status.Source = Working, status.Prompt, "gemini's hook"
			return status
		}
		if chat := geminiChat(s); chat != "" {
			if failure := geminiFailure(s.launch.ConfigDir, chat); failure != "" {
				status.State, status.Detail = Failed, failure
				return status
			}
		}
		if status.TurnBegan.IsZero() {
			return geminiBefore(s, status)
		}
	}
	return status
}

// geminiLeft says that the title was seen to tell of the turn that began then, so
// that one which says Ready is no leftover from before it: the turn was rejected.
func geminiLeft(before Status, began time.Time) bool {
	// A question stands in the title, or its hook came while the title said Working.
	told := before.State == Waiting || before.State == Working && before.Source == geminiByTitle
	return told && before.Source != geminiByScreen && before.TurnBegan.Equal(began)
}

// geminiStarted says whether gemini has done its start. The box is drawn while
// it still loads: an Enter then becomes a newline, and a resumed conversation
// empties the box when it comes. The hook comes when the one is done, the old
// messages when the other is. Where neither is seen, long after is soon enough.
func geminiStarted(s sight, rows []string) bool {
	if !s.opened.IsZero() && s.now.Sub(s.opened) > 90*time.Second {
		return true
	}
	if _, ok := s.events.newest("SessionStart", "BeforeAgent"); !ok {
		return false
	}
	return !s.launch.Resumed || slices.ContainsFunc(rows, func(row string) bool {
		text := strings.TrimSpace(plain(row))
		return strings.HasPrefix(text, "✦ ") || strings.HasPrefix(text, "ℹ ")
	})
}

func geminiAsks(e event) string {
	d := e.body.Details
	switch {
	case d.Command != "":
		return d.Title + ": " + d.Command
	case d.FileName != "":
		return d.Title + ": " + d.FileName
	case d.Title != "":
		return d.Title
	}
	return e.body.Message
}

// geminiBefore judges by the screen, where the title cannot be believed.
func geminiBefore(s sight, status Status) Status {
	rows := s.screen()
	if rows == nil {
		status.Source = "gemini has set no title yet"
		return status
	}
	status.Source = geminiByScreen
	switch b := geminiBox(Look{Rows: rows}); {
	case b.Asking:
		status.State, status.Question = Waiting, geminiQuestion(rows)
		if all := joinRows(rows); strings.Contains(all, "How would you like to authenticate") || strings.Contains(all, "Enter Gemini API Key") {
			status.State, status.Detail = LoginNeeded, "gemini waits for a login"
		}
	case b.Ready && geminiTitle.MatchString(s.slot.Pane.Title) && geminiStarted(s, rows):
		status.State = Idle
	default:
		status.State, status.Source = Unknown, "gemini is starting"
	}
	return status
}

var geminiChoice = regexp.MustCompile(`^[\s│]*●?\s*\d+\.\s+\S`)

// geminiQuestion takes the text of the frame above its choices.
func geminiQuestion(rows []string) string {
	for i, row := range rows {
		if !strings.Contains(plain(row), "●") || !geminiChoice.MatchString(plain(row)) {
			continue
		}
		from := i
		for from > 0 && i-from < 16 && !strings.HasPrefix(strings.TrimSpace(plain(rows[from])), "╭───────────────────────────────────────────") {
			from--
		}
		return joinRows(rows[from:i])
	}
	return ""
}

// geminiBox finds the prompt sign; a dialog replaces the box.
func geminiBox(l Look) Box {
	for i := len(l.Rows) - 1; i >= 0; i-- {
		text := plain(l.Rows[i])
		if strings.Contains(text, "●") && geminiChoice.MatchString(text) {
			return Box{Known: true, Asking: true, Reason: "it asks a question"}
		}
		trimmed := strings.TrimLeft(text, " ")
		if !strings.HasPrefix(trimmed, "> ") && trimmed != ">" {
			continue
		}
		if !slices.ContainsFunc(l.Rows[max(0, i-4):i], isRule) {
			break // a message of the conversation: the box is not drawn yet
		}
		b := Box{Known: true, Ready: true}
		b.Draft = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(bright(l.Rows[i])), ">"))
		for _, row := range l.Rows {
			if strings.Contains(plain(row), "esc to cancel") {
				b.Busy = true
			}
		}
		return b
	}
	return Box{Known: len(l.Rows) > 0, Reason: "its box is not on the screen"}
}
