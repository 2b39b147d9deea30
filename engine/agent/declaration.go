package agent

import (
	"context"
	"regexp"
	"time"
)

// declaration is all that cellmux knows of one agent.
type declaration struct {
	name     string   // in config, tags and on the command line
	title    string   // for people
	programs []string // names to look for, in order
	install  string
	verified string
	shell    bool // no conversation: nothing is delivered to it

	// session is the form of the agent's own session IDs, nil where it has none
	// that are known; derive makes a slot's first one, nil where it is the slot's.
	session *regexp.Regexp
	derive  func(sessionID string) string
	// last is the conversation that was last shown, by what the agent left in the
	// slot's files; nil is what its hooks tell.
	last func(s sight) string
	// holders are processes of this host that have a conversation open, beside
	// those whose argv names it.
	holders func(s sight, id string) []int

	settle    time.Duration
	steers    bool
	interrupt []string
	stash     []string

	// flags are those that not every version knows, as --help prints them.
	flags []string
	// costs says what a binary of these features does less well, a sentence each;
	// nil is nothing.
	costs func(f features, isolated bool) []string
	// quiet is set where the user has not set it: updates, telemetry.
	quiet []string
	// asks says what the agent asks on its first start in a directory of this host;
	// nil is nothing.
	asks func(c contact) Contact
	// plan fills p.out, from the agent's own files and the input.
	plan func(ctx context.Context, p *planning) error
	// observe reads the agent's level source and events; nil has none, and its
	// output alone tells: then nothing of it is read.
	observe func(s sight) Status
	// sources are the directories whose changes may change observe's answer,
	// besides the spool.
	sources func(s sight) []string
	// follow returns a function that calls back on each event of the agent that
	// may change observe's answer, until its context or the agent ends, and a name
	// that changes with whom it listens to; nil has none.
	follow func(s sight) (listen func(ctx context.Context, told func(tidings)) error, name string)
	// rule reads the screen of an agent that tells nothing itself.
	rule *ScreenRule
	// mustSay holds a message back until the status is known: the box is drawn
	// before it takes text.
	mustSay bool
	// box reads the input box from the screen.
	box func(l Look) Box

	// readOnly is how a review is kept from changing anything, in words for
	// docs/agents.md; "" is an agent that cannot be kept from it.
	readOnly string

	// stream reads one event of a headless turn's output; nil has none.
	stream func(t *TurnReader, event []byte)

	// printsAnswer says that the whole output of a headless turn is its answer.
	printsAnswer bool

	// facts for docs/agents.md.
	facts facts
}

// facts are a declaration's words in docs/agents.md.
type facts struct {
	identity, overlay, status string
}

// builtin returns the declarations in the order of preference.
func builtin() []declaration {
	return []declaration{claude(), codex(), gemini(), opencode(), grok(), shell()}
}

// inherited are what a parent agent's session leaves in the environment. A
// child that sees them believes that it runs inside that session: claude, for
// one, then writes no transcript and no registry entry.
var inherited = []string{
	"CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT",
	"CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_SSE_PORT", "CLAUDE_PID", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE",
	"CLAUDE_CODE_TMUX_SESSION", "CLAUDE_CODE_TMUX_PREFIX", "CLAUDE_CODE_PARENT_SESSION_ID", "CLAUDE_EFFORT",
	"CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_MANAGED_BY_NPM", "CODEX_CI", "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
	"GEMINI_CLI", "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "GEMINI_CWD",
	"OPENCODE", "OPENCODE_PID", "OPENCODE_CALLER", "OPENCODE_SERVER_PASSWORD", "OPENCODE_SERVER_USERNAME", "OPENCODE_RUN_ID", "OPENCODE_PROCESS_ROLE",
	"AGENT",
}
