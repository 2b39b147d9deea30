package agent

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cellmux/cell"
	"cellmux/engine"
)

// planning is one Plan while it is made.
type planning struct {
	engine.AgentInput
	agent    *Agent
	rooms    rooms
	features features
	program  string
	now      time.Time
	launch   launch
	out      engine.AgentPlan
}

// launch is what a plan leaves in the slot's folder for whoever watches the
// slot later, perhaps in another process. A guest can write it: its paths are
// used below the workspace home alone, its address for host cells alone.
type launch struct {
	Agent     string    `json:"agent"`
	Session   string    `json:"session"` // the agent's own ID, as planned
	ConfigDir string    `json:"config_dir,omitempty"`
	Started   time.Time `json:"started"`
	Resumed   bool      `json:"resumed,omitempty"`
	Address   string    `json:"address,omitempty"`  // of an HTTP interface
	Password  string    `json:"password,omitempty"` // for it
	// Transcript is the agent's own file of the conversation; Seeded is set when
	// this plan has made it.
	Transcript string `json:"transcript,omitempty"`
	Seeded     string `json:"seeded,omitempty"`
	// Overlay is the digest of the overlay that was passed, Known of the one that
	// the conversation held before: codex keeps what it got first.
	Overlay string `json:"overlay,omitempty"`
	Known   string `json:"known,omitempty"`
}

const launchFile = "launch.json"

func (p *planning) prepare() error {
	if err := p.rooms.make(); err != nil {
		return err
	}
	p.launch = launch{Agent: p.agent.name, Started: p.now}
	p.out.Converses = p.agent.TakesMessages()
	if p.BoundID != "" && p.agent.session != nil && !p.agent.ValidSession(p.BoundID) {
		return fmt.Errorf("%q has not the form of an ID of %s's", line(p.BoundID), p.agent.name)
	}
	p.out.Notes = p.agent.costsOf(p.features, p.Config.Guest.Isolated)
	p.out.Drop = slices.Clone(inherited)
	for _, pair := range p.agent.quiet {
		if name, _, _ := strings.Cut(pair, "="); !p.isSet(name) {
			p.out.Env = append(p.out.Env, pair)
		}
	}
	p.loopback()
	return nil
}

func (p *planning) finish() error {
	p.launch.Session, p.launch.Resumed = p.out.Session, p.out.Resume
	data, err := json.Marshal(p.launch)
	if err != nil {
		return err
	}
	return p.rooms.write(filepath.Join(p.rooms.slot, launchFile), data)
}

// argv starts the command line.
func (p *planning) argv(args ...string) { p.out.Argv = append(p.out.Argv, args...) }

func (p *planning) env(name, value string) { p.out.Env = append(p.out.Env, name+"="+value) }

func (p *planning) note(format string, args ...any) {
	p.out.Notes = append(p.out.Notes, fmt.Sprintf(format, args...))
}

// lookup returns the value that the agent will see, as far as the input tells.
func (p *planning) lookup(name string) string {
	for _, pair := range slices.Backward(p.Env) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// model is what [llm] asks of this agent; its environment and its notes are the
// opener's.
func (p *planning) model() cell.Model {
	return cell.ModelFor(cell.ModelInput{Agent: p.agent.name, LLM: p.CellConfig.LLM, Isolated: p.Config.Guest.Isolated})
}

func (p *planning) isSet(name string) bool {
	return slices.ContainsFunc(p.Env, func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
}

// loopback keeps an agent's own local traffic from a proxy: all four apply
// HTTP_PROXY to 127.0.0.1 too.
func (p *planning) loopback() {
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		value := p.lookup(name)
		if value == "*" {
			continue
		}
		var missing []string
		for _, host := range []string{"127.0.0.1", "localhost"} {
			if !slices.Contains(strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' }), host) {
				missing = append(missing, host)
			}
		}
		if len(missing) == 0 {
			continue
		}
		if value != "" {
			missing = append([]string{value}, missing...)
		}
		p.env(name, strings.Join(missing, ","))
	}
}

// sessionID is the agent's own ID to resume: the one that it was last seen
// under, else the slot's.
func (p *planning) sessionID() string {
	if p.BoundID != "" {
		return p.BoundID
	}
	return p.agent.OwnSession(p.SessionID)
}
