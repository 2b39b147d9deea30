package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
)

// hook runs the commands that --settings names for an event, as Claude Code
// does: the event as JSON on standard input, no terminal, and waited for.
func (a *agent) hook(event string, fields map[string]any) {
	source := a.value("--settings")
	if source == "" {
		return
	}
	content := []byte(source)
	if !strings.HasPrefix(strings.TrimSpace(source), "{") {
		var err error
		if content, err = os.ReadFile(source); err != nil {
			fatal("Error: Settings file not found: " + source)
		}
	}
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct{ Type, Command string }
		}
	}
	if err := json.Unmarshal(content, &settings); err != nil {
		fatal("Error: Invalid settings: " + err.Error())
	}
	dir, _ := os.Getwd()
	input := map[string]any{
		"session_id": a.session, "transcript_path": a.transcript(a.session), "cwd": dir,
		"hook_event_name": event, "permission_mode": "default",
	}
	for name, value := range fields {
		input[name] = value
	}
	told, err := json.Marshal(input)
	if err != nil {
		fatal(err.Error())
	}
	for _, group := range settings.Hooks[event] {
		for _, h := range group.Hooks {
			if h.Type != "command" {
				continue
			}
			command := exec.Command("/bin/sh", "-c", h.Command)
			command.Stdin = strings.NewReader(string(told))
			// A hook that fails is the hook's affair.
			_ = command.Run()
		}
	}
}
