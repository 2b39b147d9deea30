package agent

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"cellmux/cell"
)

// event is the newest hook call of one kind. Each kind has one file, which its
// next call replaces: what is read is a level, bounded in size, the same for
// every reader, and a missed notification of the file system loses nothing.
type event struct {
	kind string
	at   time.Time
	body hookBody
}

// hookBody is the part of the hooks' input that is read; the four agents share
// claude's shape, with names of their own added.
type hookBody struct {
	SessionID        string          `json:"session_id"`
	TranscriptPath   string          `json:"transcript_path"`
	Event            string          `json:"hook_event_name"`
	Source           string          `json:"source"`
	Reason           string          `json:"reason"`
	Prompt           string          `json:"prompt"`
	PromptResponse   string          `json:"prompt_response"`
	ToolName         string          `json:"tool_name"`
	ToolInput        json.RawMessage `json:"tool_input"`
	Message          string          `json:"message"`
	NotificationType string          `json:"notification_type"`
	Details          struct {
		Title, Command string
		FileName       string `json:"fileName"`
	} `json:"details"`
	LastAssistantMessage string `json:"last_assistant_message"`
	Error                string `json:"error"`
}

// events are the newest calls by kind.
type events map[string]event

// newest returns the latest event of the given kinds.
func (e events) newest(kinds ...string) (event, bool) {
	var latest event
	for _, kind := range kinds {
		if candidate, ok := e[kind]; ok && (latest.kind == "" || candidate.at.After(latest.at)) {
			latest = candidate
		}
	}
	return latest, latest.kind != ""
}

// at is when a kind was last called; zero is never.
func (e events) at(kind string) time.Time { return e[kind].at }

// spoolCommand is the one line that a hook runs: it works in any POSIX sh, with
// no screen running, and a reader sees a whole file or none. dir is the spool as
// the agent sees it.
func spoolCommand(dir, kind string) string {
	script := `t=$(mktemp "$1/.XXXXXX") && cat >"$t" && mv -f "$t" "$1/$2.json"; exit 0`
	return cell.ShellJoin([]string{"sh", "-c", script, "sh", dir, kind})
}

// maxSpoolFiles bounds how many files of a spool are looked at: a guest may
// have put any number there.
const maxSpoolFiles = 64

// readSpool returns the events of a spool that came after since. Files that
// cannot be read or parsed are as if they were not there.
func readSpool(top, spool string, since time.Time) events {
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil
	}
	defer root.Close()
	rel, err := filepath.Rel(top, spool)
	if err != nil {
		return nil
	}
	dir, err := root.Open(rel)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxSpoolFiles)
	found := events{}
	for _, entry := range entries {
		kind, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || !entry.Type().IsRegular() || strings.HasPrefix(kind, ".") {
			continue
		}
		info, err := entry.Info()
		if err != nil || info.ModTime().Before(since) || info.Size() > maxFile {
			continue
		}
		var body hookBody
		if _, err := readJSON(top, filepath.Join(spool, path.Base(entry.Name())), &body); err != nil {
			continue
		}
		found[kind] = event{kind: kind, at: info.ModTime(), body: body}
	}
	return found
}

// asked puts a tool call into words: what it is, and what it would do.
func asked(tool string, input json.RawMessage) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields) // what cannot be read is left out
	for _, name := range []string{"command", "file_path", "filePath", "path", "url", "pattern", "query", "plan", "questions", "patch", "description"} {
		raw, ok := fields[name]
		if !ok {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		if text = line(text); text != "" {
			return line(tool + ": " + text)
		}
	}
	return line(tool)
}
