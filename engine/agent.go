package engine

import (
	"context"

	"cellmux/cell"
	"cellmux/cell/cfg"
)

// AgentInput is what an agent's declaration decides from.
type AgentInput struct {
	Config     cfg.Config
	CellConfig cfg.CellConfig
	Prompts    cell.ResolveOpts
	SessionID  string   // cell.SessionID of the app name
	BoundID    string   // the agent's own ID for that session when it differs; "" none known
	Home       string   // host path of the home in which the agent keeps its files
	Env        []string // what the guest will get, for the agents that are configured by environment
	Program    string   // path of the agent's program; "" is the declaration's own name
	Review     bool     // read-only mode
	Trusted    bool     // the user has said that agents need not ask about the project's directory
	Headless   bool     // one turn without a terminal: its prompt comes on standard input
}

// AgentPlan is how to start an agent so that it is in the slot's conversation.
type AgentPlan struct {
	Argv   []string // inside the guest
	Env    []string // in addition to the guest's environment, later wins
	Drop   []string // names to take out of the environment first: what a parent agent's session left there
	Resume bool
	// Converses says that the program keeps a conversation, which no second
	// process may write.
	Converses bool
	Session   string   // the agent's own session ID, once it is known
	Notes     []string // sentences for the Info tab, such as what could not be refreshed
}

// Agent is how the opener sees an agent's declaration (engine/agent).
type Agent interface {
	Name() string
	// Plan may read and write files under Home; it starts no process but a
	// flag probe, once per program.
	Plan(ctx context.Context, in AgentInput) (AgentPlan, error)
}
