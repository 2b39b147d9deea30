package agent

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellmux/cell"
)

func opencode() declaration {
	return declaration{
		name:     "opencode",
		title:    "OpenCode",
		programs: []string{"opencode"},
		install:  "npm install -g opencode-ai",
		verified: "1.18.33",
		settle:   100 * time.Millisecond,
		// ctrl-c during a turn would end the program.
		interrupt: []string{"Escape", "Escape"},
		quiet:     []string{"OPENCODE_DISABLE_AUTOUPDATE=1"},
		session:   sessionSes,
		derive:    opencodeSession,
		plan:      planOpencode,
		observe:   observeOpencode,
		last:      opencodeLast,
		follow: func(s sight) (func(context.Context, func(tidings)) error, string) {
			o, ok := opencodeOf(s)
			if !ok {
				return nil, ""
			}
			return o.follow, o.address
		},
		box:      opencodeBox,
		stream:   opencodeStream,
		readOnly: "every permission denied, to its built-in agents too",
		facts: facts{
			identity: "`import` of an empty session whose `ses_` ID is derived from ours, then `--session`",
			overlay:  "`instructions` of the inline config, read on every start",
			status:   "on the host its HTTP interface on a private port with a password, by which messages go in too; in a guest a plugin that keeps one file in the spool, and paste",
		},
	}
}

//go:embed opencode_plugin.js
var opencodePlugin string

// opencodeSession derives opencode's ID from a slot's session ID: it must start
// with "ses".
func opencodeSession(id string) string { return "ses_" + strings.ReplaceAll(id, "-", "") }

func planOpencode(_ context.Context, p *planning) error {
	id := p.sessionID()
	p.out.Session = id
	content, err := opencodeConfig(p)
	if err != nil {
		return err
	}
	p.env("OPENCODE_CONFIG_CONTENT", content)

	imported, err := writeOpencodeImport(p, id)
	if err != nil {
		return err
	}
	marker := filepath.Join(p.rooms.slot, "opencode-imported-"+id)
	if _, err := os.Lstat(opencodeDatabase(p)); errors.Is(err, fs.ErrNotExist) {
		if err := os.Remove(marker); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err = os.Lstat(marker)
	p.out.Resume = err == nil

	// The import runs where opencode will run, before it; an import of a session
	// that exists changes nothing.
	const script = `[ -e "$2" ] || { "$3" import "$1" </dev/null >&2 && : >"$2"; }; shift 2; exec "$@"`
	if p.Headless {
		p.argv("sh", "-c", script, "sh", p.rooms.inside(imported), p.rooms.inside(marker),
			p.program, "run", "--format", "json", "--session", id, "--dir", p.rooms.projectInside())
		return nil
	}
	if !p.Config.Guest.Isolated {
		// A plugin would make opencode fetch a package into the user's own
		// configuration first; on this host there is its HTTP interface.
		port, err := freePort()
		if err != nil {
			return err
		}
		p.launch.Address, p.launch.Password = fmt.Sprintf("http://127.0.0.1:%d", port), rand.Text()
		p.env("OPENCODE_SERVER_PASSWORD", p.launch.Password)
		// Whatever the user's own configuration says of a server: this one is for
		// this host alone.
		defer func() { p.argv("--hostname", "127.0.0.1", "--port", strconv.Itoa(port)) }()
	}
	const quiet = `[ -e "$2" ] || { "$3" import "$1" </dev/null >/dev/null && : >"$2"; }; shift 2; exec "$@"`
	p.argv("sh", "-c", quiet, "sh", p.rooms.inside(imported), p.rooms.inside(marker), p.program, "--session", id)
	return nil
}

// opencodeConfig is the inline config, which opencode merges last and reads on
// every start: overlay, base, plugin, and on the host the permission to ask,
// since opencode runs shell commands unasked otherwise.
func opencodeConfig(p *planning) (string, error) {
	config := map[string]any{}
	if set := p.lookup("OPENCODE_CONFIG_CONTENT"); set != "" {
		if err := json.Unmarshal([]byte(set), &config); err != nil || config == nil {
			return "", errors.New("OPENCODE_CONFIG_CONTENT is set and is no JSON object: mend or unset it")
		}
	}
	overlay, err := cell.WriteOverlayPrompt(p.Config, p.CellConfig, p.Prompts)
	if err != nil {
		return "", err
	}
	p.model().MergeConfig(config)
	list := func(key, value string) {
		before, _ := config[key].([]any)
		if !slices.Contains(before, any(value)) {
			config[key] = append(before, value)
		}
	}
	list("instructions", overlay)

	if p.Config.Guest.Isolated && !p.Headless {
		plugin := filepath.Join(p.rooms.slot, "opencode-plugin.js")
		where, err := json.Marshal(p.rooms.inside(p.rooms.spool))
		if err != nil {
			return "", err
		}
		if err := p.rooms.write(plugin, []byte(strings.Replace(opencodePlugin, "SPOOL", string(where), 1))); err != nil {
			return "", err
		}
		list("plugin", "file://"+p.rooms.inside(plugin))
	}

	base, err := cell.WriteBasePrompt(p.Config, p.Prompts)
	if err != nil {
		return "", err
	}
	section := func(in map[string]any, name string) map[string]any {
		inner, ok := in[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			in[name] = inner
		}
		return inner
	}
	if base != "" {
		section(section(config, "agent"), "build")["prompt"] = "{file:" + base + "}"
	}
	if _, ok := config["autoupdate"]; !ok {
		config["autoupdate"] = false
	}
	switch {
	case p.Review:
		// A repository's own opencode.json beats a bare top-level deny, and may
		// name another default agent (reference of issue G).
		deny := map[string]any{"*": "deny"}
		config["permission"] = maps.Clone(deny)
		section(section(config, "agent"), "build")["permission"] = maps.Clone(deny)
		section(section(config, "agent"), "plan")["permission"] = maps.Clone(deny)
		config["default_agent"] = "build"
	case p.Config.Guest.Isolated:
	case config["permission"] == nil && !opencodeHasPermission(p):
		config["permission"] = map[string]any{"bash": "ask", "edit": "ask"}
	}
	data, err := json.Marshal(config)
	return string(data), err
}

// opencodeHasPermission says whether the user's own global config decides what
// opencode may do. A repository's config has no say in it.
func opencodeHasPermission(p *planning) bool {
	dir := filepath.Join(p.rooms.agentHome, ".config", "opencode")
	if set := p.lookup("XDG_CONFIG_HOME"); set != "" {
		dir = filepath.Join(set, "opencode")
	}
	for _, name := range []string{"opencode.json", "opencode.jsonc", "config.json"} {
		data, _, err := readSmall(dir, filepath.Join(dir, name))
		// It may hold comments, so the key is looked for as text: a false find
		// leaves the user's own file to decide.
		if err == nil && strings.Contains(string(data), `"permission"`) {
			return true
		}
	}
	return false
}

// opencodeDatabase is the host path of opencode's sessions.
func opencodeDatabase(p *planning) string {
	data := filepath.Join(p.rooms.agentHome, ".local", "share")
	if set := p.lookup("XDG_DATA_HOME"); set != "" {
		if host, err := p.rooms.outside(set); err == nil {
			data = host
		}
	}
	return filepath.Join(data, "opencode", "opencode.db")
}

func writeOpencodeImport(p *planning, id string) (string, error) {
	file := filepath.Join(p.rooms.slot, "opencode-session.json")
	now := p.now.UnixMilli()
	data, err := json.Marshal(map[string]any{
		"info": map[string]any{
			"id": id, "slug": p.Config.AppName(), "version": opencode().verified, "projectID": "global",
			"directory": p.rooms.projectInside(), "title": p.Config.AppName(),
			"time": map[string]any{"created": now, "updated": now},
		},
		"messages": []any{},
	})
	if err != nil {
		return "", err
	}
	return file, p.rooms.write(file, data)
}

// opencodeState is what the plugin keeps.
type opencodeState struct {
	PID      int    `json:"pid"`
	Current  string `json:"current"`
	Sessions map[string]struct {
		Status    string `json:"status"`
		Parent    string `json:"parent"`
		Error     string `json:"error"`
		Login     bool   `json:"login"`
		Detail    string `json:"detail"`
		Prompt    string `json:"prompt"`
		Reply     string `json:"reply"`
		Began     int64  `json:"began"` // milliseconds of Unix time, like Ended and Asked
		Ended     int64  `json:"ended"`
		Questions map[string]struct {
			Kind  string `json:"kind"`
			What  string `json:"what"`
			Asked int64  `json:"asked"`
		} `json:"questions"`
	} `json:"sessions"`
}

// observeOpencode asks the HTTP interface on this host, and reads the plugin's
// file of a guest. A question of a subagent's session
// counts: it holds the whole conversation up.
func observeOpencode(s sight) Status {
	if !s.slot.Config.Guest.Isolated {
		o, ok := opencodeOf(s)
		if !ok {
			return opencodeBefore(s) // it starts, or something else has its port
		}
		status, err := o.observe(s.ctx, s)
		if err != nil {
			return opencodeBefore(s)
		}
		return status
	}
	var state opencodeState
	info, err := readJSON(s.slot.Config.WorkspaceHome, filepath.Join(s.rooms.spool, "opencode.json"), &state)
	if err != nil || !s.opened.IsZero() && info.ModTime().Before(s.opened) {
		return opencodeBefore(s)
	}
	id := state.Current
	if id == "" {
		id = s.launch.Session
	}
	status := Status{Session: id, Source: "opencode's plugin"}
	session := state.Sessions[id]
	moment := func(ms int64) time.Time {
		if ms <= 0 {
			return time.Time{}
		}
		return time.UnixMilli(ms)
	}
	status.TurnBegan, status.TurnEnded = moment(session.Began), moment(session.Ended)
	status.Prompt, status.Reply = session.Prompt, session.Reply
	var oldest int64
	for other, candidate := range state.Sessions {
		if other != id && candidate.Parent == "" {
			continue // another conversation of this program
		}
		for _, q := range candidate.Questions {
			if oldest == 0 || q.Asked < oldest {
				oldest = q.Asked
				status.State, status.Question, status.Since = Waiting, q.Kind+": "+q.What, moment(q.Asked)
			}
		}
	}
	switch {
	case status.State == Waiting:
	case session.Status == "busy" || session.Status == "retry":
		status.State, status.Detail, status.Since = Working, session.Prompt, status.TurnBegan
		if session.Detail != "" {
			status.Detail = session.Detail
		}
	case session.Error != "" && session.Login:
		status.State, status.Detail = LoginNeeded, session.Error
	case session.Error != "":
		status.State, status.Detail = Failed, session.Error
	case session.Began == 0:
		return opencodeBefore(s)
	default:
		status.State, status.Since = Idle, status.TurnEnded
	}
	return status
}

// opencodeLast is the conversation that the plugin last saw on a guest's screen, a
// subagent's apart. On this host opencode tells while it runs alone.
func opencodeLast(s sight) string {
	if !s.slot.Config.Guest.Isolated {
		return ""
	}
	var state opencodeState
	info, err := readJSON(s.slot.Config.WorkspaceHome, filepath.Join(s.rooms.spool, "opencode.json"), &state)
	if err != nil || info.ModTime().Before(s.launch.Started) || state.Sessions[state.Current].Parent != "" {
		return ""
	}
	return state.Current
}

// opencodeBefore judges by the screen an opencode that has had no turn yet: its
// screen may be blank for seconds.
func opencodeBefore(s sight) Status {
	status := Status{Session: s.launch.Session, Source: "opencode is starting"}
	rows := s.screen()
	if rows == nil {
		return status
	}
	switch b := opencodeBox(Look{Rows: rows}); {
	case b.Asking:
		return Status{State: Waiting, Question: joinRows(rows), Session: status.Session, Source: "the screen"}
	case b.Ready:
		status.State, status.Source = Idle, "the screen"
	}
	return status
}

// opencodeBox finds the box at the bottom: rows with a bar on the left, above a
// closing line. A question takes its place.
func opencodeBox(l Look) Box {
	bottom := -1
	for i := len(l.Rows) - 1; i >= 0; i-- {
		text := strings.TrimSpace(plain(l.Rows[i]))
		if strings.Contains(text, "Permission required") || strings.Contains(text, "Allow once") && strings.Contains(text, "Reject") ||
			strings.Contains(text, "enter confirm") {
			return Box{Known: true, Asking: true, Reason: "it asks a question"}
		}
		if bottom < 0 && strings.HasPrefix(text, "╹▀▀▀▀") {
			bottom = i
		}
		if bottom >= 0 && i < bottom-30 {
			break
		}
	}
	if bottom < 3 {
		return Box{Known: len(l.Rows) > 0, Reason: "its box is not on the screen"}
	}
	b := Box{Known: true, Ready: true}
	// The row above the closing line names the agent and the model.
	for i := bottom - 2; i >= 0; i-- {
		row := bright(l.Rows[i])
		text, ok := strings.CutPrefix(strings.TrimSpace(row), "┃")
		if !ok {
			break
		}
		b.Draft = strings.TrimSpace(strings.TrimSpace(text) + " " + b.Draft)
	}
	for _, row := range l.Rows[bottom:] {
		if strings.Contains(plain(row), "esc interrupt") {
			b.Busy = true
		}
	}
	return b
}
