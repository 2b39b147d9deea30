package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

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
		if named, err := s.rooms.outside(begun.body.TranscriptPath); err == nil && codexOwns(home, named, begun.body.SessionID) {
			id, file = begun.body.SessionID, named
		}
	}
	if rel, err := filepath.Rel(home, file); err != nil || !filepath.IsLocal(rel) {
		return id, ""
	}
	return id, file
}

// codexOwns says whether a rollout that a hook named is the file of that
// conversation and one that a person began: a subagent has a thread, and hooks,
// of its own, and its first line says whose it is.
func codexOwns(home, file, id string) bool {
	if rel, err := filepath.Rel(home, file); err != nil || !filepath.IsLocal(rel) || !strings.HasSuffix(file, "-"+id+".jsonl") {
		return false
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return false
	}
	defer root.Close()
	rel, _ := filepath.Rel(home, file) // it was asked for above
	if info, err := root.Stat(rel); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	first, err := bufio.NewReader(io.LimitReader(f, maxFile)).ReadBytes('\n')
	var meta struct {
		Type    string
		Payload struct{ Source json.RawMessage }
	}
	if err != nil || json.Unmarshal(first, &meta) != nil || meta.Type != "session_meta" {
		return false
	}
	return !bytes.HasPrefix(bytes.TrimSpace(meta.Payload.Source), []byte("{"))
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
