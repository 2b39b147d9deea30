package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tailscale/hujson"
)

// Contact is what an agent asks its user on its first start in a directory of
// this host, and how that could be answered before.
type Contact struct {
	Asks []string // phrases: "whether you trust the directory"
	// File is the user's own file that holds the answers; "" where flags of the
	// launch give them. It is written with the user's word alone (Trusted of
	// engine.AgentInput).
	File string
}

// contact is where a first contact is looked for.
type contact struct {
	home, dir string // the user's own home, the project's directory
	getenv    func(string) string
}

// FirstContact says what the agent would ask in a host cell, by its user's own
// files, which are only read. Without Asks it asks nothing.
func (a *Agent) FirstContact(home, projectDir string, getenv func(string) string) Contact {
	if a.asks == nil {
		return Contact{}
	}
	return a.asks(contact{home, projectDir, getenv})
}

const asksTrust = "whether you trust the directory"

// upwards calls find with a directory and each one above it until it is true:
// trust in a directory covers those below.
func upwards(dir string, find func(string) bool) bool {
	for {
		if find(dir) {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}

// claudeAnswers is the part of claude's .claude.json that answers its first
// questions.
type claudeAnswers struct {
	Onboarded bool `json:"hasCompletedOnboarding"`
	Projects  map[string]struct {
		Trusted bool `json:"hasTrustDialogAccepted"`
	}
	Keys *struct{ Approved, Rejected []string } `json:"customApiKeyResponses"`
}

// maxSettings bounds the user's own settings: claude keeps its history there.
const maxSettings = 64 << 20

func claudeContact(c contact) Contact {
	file := filepath.Join(c.home, ".claude.json")
	if dir := c.getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		file = filepath.Join(dir, ".claude.json")
	}
	out := Contact{File: file}
	var known claudeAnswers
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || len(data) > maxSettings || json.Unmarshal(data, &known) != nil:
		return Contact{} // claude's to complain about
	}
	if !known.Onboarded {
		out.Asks = append(out.Asks, "its welcome and its colours")
	}
	if !upwards(c.dir, func(dir string) bool { return known.Projects[dir].Trusted }) {
		out.Asks = append(out.Asks, asksTrust)
	}
	if tail := claudeKeyTail(c.getenv("ANTHROPIC_API_KEY")); tail != "" && !known.knowsKey(tail) {
		out.Asks = append(out.Asks, "whether to use the API key of your environment")
	}
	return out
}

// claudeKeyTail is what claude keeps of a key, as one that the user has decided
// about: its last 20 characters.
func claudeKeyTail(key string) string { return key[max(0, len(key)-20):] }

func (k claudeAnswers) knowsKey(tail string) bool {
	if k.Keys == nil {
		return false
	}
	for _, known := range append(append([]string(nil), k.Keys.Approved...), k.Keys.Rejected...) {
		if known == tail {
			return true
		}
	}
	return false
}

// answerClaude writes the answers to claude's first questions into the user's
// own file, who has said so. Everything else in it stays as it is, byte for
// byte. A claude that writes it at this moment is waited for.
func answerClaude(ctx context.Context, p *planning, file string) error {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // a link into the user's dotfiles stays one
	}
	release, err := lockClaude(ctx, file)
	if err != nil {
		p.note("claude's settings were not written, so it may ask on its start: %v", err)
		return nil
	}
	defer release()
	mode := fs.FileMode(0o600)
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		data = []byte("{}")
	case err != nil:
		p.note("claude's settings cannot be read, so it may ask on its start: %v", err)
		return nil
	default:
		if info, err := os.Stat(file); err == nil {
			mode = info.Mode().Perm()
		}
	}
	answered, err := answeredClaude(data, p.rooms.projectInside(), p.lookup("ANTHROPIC_API_KEY"))
	if err != nil {
		p.note("claude's settings are damaged and were left alone, so it may ask on its start: %v", err)
		return nil
	}
	if string(answered) == string(data) {
		return nil
	}
	if err := replaceBelow(filepath.Dir(file), file, answered); err != nil {
		return fmt.Errorf("answer claude's first questions: %w", err)
	}
	return os.Chmod(file, mode)
}

// answeredClaude is claude's settings with the answers in them.
func answeredClaude(data []byte, dir, key string) ([]byte, error) {
	var known claudeAnswers
	if err := json.Unmarshal(data, &known); err != nil {
		return nil, err
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, err
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	var patch []operation
	add := func(value any, path ...string) {
		pointer := ""
		for _, step := range path {
			pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
		}
		patch = append(patch, operation{"add", pointer, value})
	}
	if !known.Onboarded {
		add(true, "hasCompletedOnboarding")
		if _, set := top["theme"]; !set {
			add("dark", "theme")
		}
	}
	if !upwards(dir, func(dir string) bool { return known.Projects[dir].Trusted }) {
		if known.Projects == nil {
			add(map[string]any{}, "projects")
		}
		if _, has := known.Projects[dir]; !has {
			add(map[string]any{}, "projects", dir)
		}
		add(true, "projects", dir, "hasTrustDialogAccepted")
	}
	if tail := claudeKeyTail(key); tail != "" && !known.knowsKey(tail) {
		if known.Keys == nil {
			add(map[string]any{"approved": []string{}, "rejected": []string{}}, "customApiKeyResponses")
		}
		if known.Keys == nil || known.Keys.Approved != nil {
			add(tail, "customApiKeyResponses", "approved", "-")
		} else {
			add([]string{tail}, "customApiKeyResponses", "approved")
		}
	}
	if len(patch) == 0 {
		return data, nil
	}
	value, err := hujson.Parse(data)
	if err != nil {
		return nil, err
	}
	operations, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	if err := value.Patch(operations); err != nil {
		return nil, err
	}
	return value.Pack(), nil
}

// claudeLockStale is the age from which claude itself takes a lock for one that
// a dead process left.
const claudeLockStale = 10 * time.Second

// lockClaude takes the lock under which claude writes its settings: a directory
// beside the file.
func lockClaude(ctx context.Context, file string) (release func(), err error) {
	path := file + ".lock"
	deadline := time.Now().Add(2 * time.Second)
	for {
		if err := os.Mkdir(path, 0o700); err == nil {
			return func() { _ = os.Remove(path) }, nil
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err := os.Stat(path)
		if err == nil && time.Since(info.ModTime()) > claudeLockStale {
			return func() {}, nil // left behind; claude removes it
		}
		if time.Now().After(deadline) {
			return nil, errors.New("another claude writes them")
		}
		pause := time.NewTimer(20 * time.Millisecond)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil, ctx.Err()
		case <-pause.C:
		}
	}
}

func codexContact(c contact) Contact {
	home := filepath.Join(c.home, ".codex")
	if set := c.getenv("CODEX_HOME"); set != "" {
		home = set
	}
	repository := func(dir string) bool { _, err := os.Lstat(filepath.Join(dir, ".git")); return err == nil }
	if codexConfig(home).decided(c.dir) || !upwards(c.dir, repository) {
		return Contact{} // outside of a repository codex asks nothing
	}
	return Contact{Asks: []string{asksTrust}}
}

// decided says whether the user's own config has a word on the trust in a
// directory, whichever.
func (c codexSettings) decided(dir string) bool {
	return upwards(dir, func(dir string) bool { return c.Projects[dir].TrustLevel != "" })
}

func geminiContact(c contact) Contact {
	home := c.home
	if set := c.getenv("GEMINI_CLI_HOME"); set != "" {
		home = set
	}
	if geminiDecided(filepath.Join(home, ".gemini"), c.dir, c.getenv("GEMINI_CLI_TRUST_WORKSPACE")) {
		return Contact{}
	}
	return Contact{Asks: []string{asksTrust}}
}

// geminiDecided says whether gemini knows without asking what it may do in a
// directory.
func geminiDecided(dot, dir, workspace string) bool {
	if workspace != "" {
		return true
	}
	var settings struct {
		Security struct{ FolderTrust struct{ Enabled *bool } }
	}
	if _, err := readJSON(dot, filepath.Join(dot, "settings.json"), &settings); err == nil {
		if enabled := settings.Security.FolderTrust.Enabled; enabled != nil && !*enabled {
			return true
		}
	}
	var trusted map[string]string
	if _, err := readJSON(dot, filepath.Join(dot, "trustedFolders.json"), &trusted); err != nil {
		return false
	}
	if trusted[dir] != "" {
		return true
	}
	return upwards(filepath.Dir(dir), func(parent string) bool { return trusted[parent] != "" })
}
