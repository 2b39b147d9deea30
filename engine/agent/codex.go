package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
		session:   sessionUUID,
		costs:     codexCosts,
		asks:      codexContact,
		plan:      planCodex,
		observe:   observeCodex,
		sources: func(s sight) []string {
			if _, file := codexRollout(s); file != "" {
				return []string{filepath.Dir(file)}
			}
			return nil
		},
		box:      codexBox,
		stream:   codexStream,
		readOnly: "`--sandbox read-only` and no approval of anything beyond, without the project's documents",
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
	if p.Config.Guest.Isolated || p.Trusted && !config.decided(p.rooms.projectInside()) {
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
	Projects      map[string]struct {
		TrustLevel string `toml:"trust_level"`
	}
	meta toml.MetaData
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
