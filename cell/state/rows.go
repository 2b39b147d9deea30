package state

import "time"

// Cell is a project bound to a workspace and an engine.
type Cell struct {
	Name         string // fixed for life, never given out again
	Title        string // what the user renames; Name at first
	Workspace    string
	ProjectDir   string
	Engine       string
	EngineReason string // why this engine: "asked for", "auto: docker answers", …
	Pinned       bool
	Archived     bool
	Created      time.Time
}

// Slot is one conversation of a cell.
type Slot struct {
	Cell         string
	Number       int
	Agent        string   // name of its declaration: claude, codex, …, shell
	Command      []string // a command of the user's own, else nil
	SessionID    string   // cell.SessionID("<cell>-<number>")
	AgentSession string   // the agent's own ID where it differs
	Title        string
	Notes        []string  // what the last launch had to say, for the Info tab
	Moved        time.Time // when its agent last went to another conversation; zero is never
	Stopped      bool      // the user stopped it; false with no pane means it was lost
	Review       bool      // its agent is started read-only, always
	Archived     bool
	Created      time.Time
}
