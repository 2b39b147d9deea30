package agent

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"cellmux/cell"
)

func codex() declaration {
	return declaration{
		name:      "codex",
		title:     "Codex",
		programs:  []string{"codex"},
		install:   "npm install -g @openai/codex",
		verified:  "0.171.0",
		settle:    100 * time.Millisecond,
		steers:    true,
		interrupt: []string{"Escape"},
		flags:     []string{"--no-daemon", "--no-alt-screen", "--dangerously-bypass-hook-trust"},
		costs:     codexCosts,
		plan:      planCodex,
		observe:   observeCodex,
		sources: func(s sight) []string {
			if _, file := codexRollout(s); file != "" {
				return []string{filepath.Dir(file)}
			}
			return nil
		},
		box:    codexBox,
		stream: codexStream,
		facts: facts{
			identity: "a seeded rollout, then `resume`; the hook's ID where codex does not take the seed",
			overlay:  "`developer_instructions` on the first turn, later changes by the SessionStart hook's additional context",
			status:   "rollout events (started, complete, aborted, error); the title for questions; hooks for their text",
		},
	}
}

// codexHooks are spooled; SessionStart also hands over a changed overlay.
var codexHooks = []string{"SessionStart", "UserPromptSubmit", "PermissionRequest", "Stop", "Interrupt", "SessionEnd"}

// codexHookTimeout is in seconds; codex cuts SessionEnd and Interrupt to 3, and
// the trust of a hook covers its timeout.
const codexHookTimeout = 3

// codexModelNotices are the upsell dialogs of the verified version that stand
// before the prompt, by model.
const codexModelNotices = `notice={model_migrations={"gpt-5.5"="gpt-6-sol"}}`

func planCodex(_ context.Context, p *planning) error {
	home := filepath.Join(p.rooms.agentHome, ".codex")
	if set := p.lookup("CODEX_HOME"); set != "" {
		host, err := p.rooms.outside(set)
		if err != nil {
			return fmt.Errorf("CODEX_HOME: %w", err)
		}
		home = host
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("create codex's home: %w", err)
	}
	var before launch
	_, _ = readJSON(p.Config.WorkspaceHome, filepath.Join(p.rooms.slot, launchFile), &before) // none yet is no fault
	config := codexConfig(home)
	model := p.model()

	id := p.sessionID()
	p.launch.ConfigDir = home
	p.out.Session = id
	rollout, err := findRollout(home, id)
	if err != nil {
		return err
	}
	seeded := ""
	switch {
	case rollout == "":
		provider := cmp.Or(model.Provider, config.ModelProvider, "openai")
		if rollout, err = seedRollout(home, id, p.rooms.projectInside(), provider, p.now); err != nil {
			p.note("codex's conversation could not be prepared (%v); it gets an ID of codex's own", err)
		}
		seeded = rollout
	case before.Seeded == rollout && before.Agent == "codex" && onlySeed(rollout):
		// The last start left the seed untouched: this codex does not take it.
		p.note("this codex does not take a prepared conversation; it gets an ID of codex's own")
		rollout, p.out.Session = "", ""
	default:
		p.out.Resume = !onlySeed(rollout)
	}
	p.launch.Transcript, p.launch.Seeded = rollout, seeded

	if p.Headless {
		p.argv(p.program, "exec")
	} else {
		p.argv(p.program)
		if p.features.has("--no-daemon") {
			p.argv("--no-daemon")
		}
		if p.features.has("--no-alt-screen") {
			p.argv("--no-alt-screen")
		}
		if !config.has("check_for_update_on_startup") {
			p.argv("-c", "check_for_update_on_startup=false")
		}
		if !config.has("notice") {
			p.argv("-c", codexModelNotices)
		}
	}
	if !config.has("analytics") {
		p.argv("-c", "analytics.enabled=false")
	}
	if p.Config.Guest.Isolated {
		p.argv("-c", "projects={"+tomlString(p.rooms.projectInside())+`={trust_level="trusted"}}`)
	}
	if p.Review {
		p.argv("--sandbox", "read-only", "-c", `approval_policy="never"`, "-c", "project_doc_max_bytes=0")
	}
	p.argv(model.Flags...)
	if err := codexPrompts(p, before); err != nil {
		return err
	}
	codexHookFlags(p)
	if rollout != "" {
		p.argv("resume", id)
	}
	if p.Headless {
		p.argv("--json", "--skip-git-repo-check", "-")
	} else {
		p.argv("-C", p.rooms.projectInside())
	}
	return nil
}

// codexPrompts passes the base, which codex reads again on each start, and the
// overlay, which it keeps from the first turn on: a changed one rides as the
// additional context of the SessionStart hook, once.
func codexPrompts(p *planning, before launch) error {
	base, err := cell.WriteBasePrompt(p.Config, p.Prompts)
	if err != nil {
		return err
	}
	if base != "" {
		p.argv("-c", "model_instructions_file="+tomlString(base))
	}
	if _, err := cell.WriteOverlayPrompt(p.Config, p.CellConfig, p.Prompts); err != nil {
		return err
	}
	overlay, err := cell.AssembleOverlayPrompt(p.Config, p.CellConfig, p.Prompts)
	if err != nil {
		return err
	}
	flags, err := cell.CodexPromptFlags(p.Config, p.CellConfig, p.Prompts)
	if err != nil {
		return err
	}
	p.argv(flags...)

	p.launch.Overlay = digest(overlay)
	p.launch.Known = before.Known
	if begun, ok := readSpool(p.Config.WorkspaceHome, p.rooms.spool, before.Started)["SessionStart"]; ok && !begun.at.Before(before.Started) && before.Overlay != "" {
		p.launch.Known = before.Overlay
	}
	file := filepath.Join(p.rooms.slot, "codex-context.json")
	text := []byte("{}")
	if p.out.Resume && p.launch.Known != p.launch.Overlay {
		p.note("codex keeps the prompts of its first turn: the changed text rides in front of the next message")
		text, err = json.Marshal(map[string]any{"hookSpecificOutput": map[string]string{
			"hookEventName":     "SessionStart",
			"additionalContext": "The instructions about your environment have changed. These replace the earlier ones:\n\n" + overlay,
		}})
		if err != nil {
			return err
		}
	}
	return p.rooms.write(file, text)
}

// codexHookFlags passes the hooks. On the host only these are trusted, by their
// hashes, as codex itself would record it: --dangerously-bypass-hook-trust would
// trust those of the repository too. Inside a guest that is what the guest is
// for. A version whose hash is not known gets no hooks there, since codex would
// stop at a review of them.
func codexHookFlags(p *planning) {
	spool := p.rooms.inside(p.rooms.spool)
	context := p.rooms.inside(filepath.Join(p.rooms.slot, "codex-context.json"))
	bypass := codexBypass(p.features, p.Config.Guest.Isolated)
	if !codexTakesHooks(p.features, p.Config.Guest.Isolated) {
		return
	}
	var states []string
	for _, kind := range codexHooks {
		command := spoolCommand(spool, kind)
		if kind == "SessionStart" {
			command = cell.ShellJoin([]string{"sh", "-c",
				`t=$(mktemp "$1/.XXXXXX") && cat >"$t" && mv -f "$t" "$1/$2.json"; cat "$3"; exit 0`, "sh", spool, kind, context})
		}
		p.argv("-c", fmt.Sprintf(`hooks.%s=[{hooks=[{type="command",command=%s,timeout=%d}]}]`, kind, tomlString(command), codexHookTimeout))
		states = append(states, fmt.Sprintf(`"/<session-flags>/config.toml:%s:0:0"={trusted_hash="%s"}`, snake(kind), codexHookHash(kind, command)))
	}
	if bypass {
		p.argv("--dangerously-bypass-hook-trust")
		return
	}
	p.argv("-c", "hooks.state={"+strings.Join(states, ",")+"}")
}

func codexBypass(f features, isolated bool) bool {
	return isolated && f.has("--dangerously-bypass-hook-trust")
}

// codexTakesHooks says whether hooks may be passed: where their trust is not
// bypassed, it is a hash that is known of the verified version alone.
func codexTakesHooks(f features, isolated bool) bool {
	return codexBypass(f, isolated) || f.version == "" || f.version == codex().verified
}

func codexCosts(f features, isolated bool) []string {
	if codexTakesHooks(f, isolated) {
		return nil
	}
	return []string{fmt.Sprintf("codex %s is not the verified %s: its hooks are left out, and questions are read from the screen", f.version, codex().verified)}
}

// codexHookHash is codex's own fingerprint of a hook: SHA-256 over its canonical
// JSON. TestCodexHookHashIsCodexs holds what the program itself answered.
func codexHookHash(kind, command string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(map[string]any{
		"event_name": snake(kind),
		"hooks":      []any{map[string]any{"async": false, "command": command, "timeout": codexHookTimeout, "type": "command"}},
	})
	if err != nil {
		panic(err) // strings always marshal
	}
	sum := sha256.Sum256(bytes.TrimRight(b.Bytes(), "\n"))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// tomlString writes s as a TOML basic string; JSON's escapes are a subset of
// TOML's but for the solidus, which Go leaves alone.
func tomlString(s string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		panic(err) // a string always marshals
	}
	return strings.ReplaceAll(strings.TrimRight(b.String(), "\n"), "\x7f", `\u007F`)
}

// codexSettings is what of the user's config.toml decides what is passed.
type codexSettings struct {
	ModelProvider string `toml:"model_provider"`
	meta          toml.MetaData
}

func (c codexSettings) has(key string) bool { return c.meta.IsDefined(key) }

// codexConfig reads config.toml. A damaged one is codex's to complain about.
func codexConfig(home string) codexSettings {
	var c codexSettings
	data, _, err := readSmall(home, filepath.Join(home, "config.toml"))
	if err != nil {
		return codexSettings{}
	}
	meta, err := toml.Decode(string(data), &c)
	if err != nil {
		return codexSettings{}
	}
	c.meta = meta
	return c
}

// findRollout returns the file of a conversation, "" where there is none.
func findRollout(home, id string) (string, error) {
	if id == "" || id != filepath.Base(id) || strings.ContainsAny(id, "*?[") {
		return "", fmt.Errorf("%q is no session ID", id)
	}
	found := ""
	err := filepath.WalkDir(filepath.Join(home, "sessions"), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry.Type().IsRegular() && strings.HasPrefix(entry.Name(), "rollout-") && strings.HasSuffix(entry.Name(), "-"+id+".jsonl") {
			found = path
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("look for codex's conversation: %w", err)
	}
	return found, nil
}

// seedRollout writes the one line that makes a conversation of this ID exist for
// `codex resume`. A history_mode must not be in it: every later line would then
// need an ordinal.
func seedRollout(home, id, dir, provider string, now time.Time) (string, error) {
	stamp := now.UTC().Format("2006-01-02T15:04:05.000Z")
	data, err := json.Marshal(map[string]any{
		"timestamp": stamp,
		"type":      "session_meta",
		"payload": map[string]any{
			"id": id, "timestamp": stamp, "cwd": dir, "originator": "codex_cli_rs",
			"cli_version": codex().verified, "source": "cli", "model_provider": provider,
		},
	})
	if err != nil {
		return "", err
	}
	file := filepath.Join(home, "sessions", now.UTC().Format("2006/01/02"),
		"rollout-"+now.UTC().Format("2006-01-02T15-04-05")+"-"+id+".jsonl")
	return file, replaceBelow(home, file, append(data, '\n'))
}

// onlySeed says whether a rollout holds no more than its first line. codex adds
// lines as soon as it opens one.
func onlySeed(file string) bool {
	data, _, err := readSmall(filepath.Dir(file), file)
	return err == nil && bytes.Count(data, []byte("\n")) <= 1
}

// codexRollout is the conversation's ID and file now: those of the newest
// SessionStart hook, else the planned ones.
func codexRollout(s sight) (id, file string) {
	home := s.launch.ConfigDir
	if home == "" {
		return "", ""
	}
	if rel, err := filepath.Rel(s.top(), home); s.slot.Config.Guest.Isolated && (err != nil || !filepath.IsLocal(rel)) {
		return "", ""
	}
	id, file = s.launch.Session, s.launch.Transcript
	if begun, ok := s.events.newest("SessionStart", "UserPromptSubmit"); ok && begun.body.SessionID != "" && begun.body.SessionID != id {
		id = begun.body.SessionID
		file, _ = s.rooms.outside(begun.body.TranscriptPath)
	}
	if rel, err := filepath.Rel(home, file); err != nil || !filepath.IsLocal(rel) {
		return id, ""
	}
	return id, file
}

// codexTurn is the level of a rollout: its last turn.
type codexTurn struct {
	running   bool
	known     bool
	began     time.Time
	ended     time.Time
	aborted   bool
	err       string
	prompt    string
	reply     string
	updatedAt time.Time
}

// tailSize is how much of a rollout's end is read. A single line (a tool's
// output) may be longer; the turn is then unknown until the next one.
const tailSize = 512 << 10

// readTurn reads the last turn from the end of a rollout.
func readTurn(top, file string) codexTurn {
	var turn codexTurn
	tail, updated, err := readTail(top, file)
	if err != nil {
		return turn
	}
	turn.updatedAt = updated
	scanner := bufio.NewScanner(bytes.NewReader(tail))
	scanner.Buffer(nil, tailSize+1)
	for scanner.Scan() {
		var entry struct {
			Timestamp time.Time
			Type      string
			Payload   struct {
				Type             string
				Message          string
				LastAgentMessage string `json:"last_agent_message"`
				Error            *struct{ Message string }
			}
		}
		if json.Unmarshal(scanner.Bytes(), &entry) != nil || entry.Type != "event_msg" {
			continue
		}
		switch entry.Payload.Type {
		case "task_started":
			turn = codexTurn{running: true, known: true, began: entry.Timestamp, updatedAt: updated, ended: turn.ended}
		case "user_message":
			turn.prompt = entry.Payload.Message
		case "task_complete":
			turn.running, turn.known, turn.ended = false, true, entry.Timestamp
			turn.reply, turn.err = entry.Payload.LastAgentMessage, ""
			if entry.Payload.Error != nil {
				turn.err = errorText(entry.Payload.Error.Message)
			}
		case "turn_aborted":
			turn.running, turn.known, turn.aborted, turn.ended, turn.err = false, true, true, entry.Timestamp, ""
		}
	}
	return turn
}

// readTail reads the last whole lines of a file that grows.
func readTail(top, file string) ([]byte, time.Time, error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer root.Close()
	rel, err := filepath.Rel(top, file)
	if err != nil {
		return nil, time.Time{}, err
	}
	if info, err := root.Stat(rel); err != nil || !info.Mode().IsRegular() {
		return nil, time.Time{}, errors.Join(err, fs.ErrNotExist)
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	from := max(0, info.Size()-tailSize)
	data, err := io.ReadAll(io.NewSectionReader(f, from, tailSize))
	if err != nil {
		return nil, time.Time{}, err
	}
	if from > 0 {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	// The last line may be half written; its event comes with the next read.
	return data[:bytes.LastIndexByte(data, '\n')+1], info.ModTime(), nil
}

// errorText takes the message out of a provider's JSON error, where it is one.
func errorText(s string) string {
	for _, start := range []string{"{", "[API Error: {"} {
		at := strings.Index(s, start)
		if at < 0 {
			continue
		}
		var e struct {
			Error   struct{ Message string }
			Message string
		}
		if json.NewDecoder(strings.NewReader(s[at+len(start)-1:])).Decode(&e) == nil {
			if e.Error.Message != "" {
				return e.Error.Message
			}
			if e.Message != "" {
				return e.Message
			}
		}
	}
	return s
}

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
