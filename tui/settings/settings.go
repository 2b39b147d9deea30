package settings

// Settings is config.toml: how the screen behaves. The zero value is the
// default of everything.
type Settings struct {
	// What the screen looks like.
	Screen Screen `toml:"screen"`
	// Keys of the bindings, by the binding's name as docs/keys.md lists it:
	// quit = ["q", "ctrl-x"]. An empty list takes the binding away. Two bindings
	// with one key, where both are on, are an error.
	Keys map[string][]string `toml:"keys"`
	// Themes of your own: a table for each, token to style, such as
	// waiting = "yellow bold". What a theme leaves out it takes from the default.
	Themes map[string]map[string]string `toml:"themes"`
	// How ! commands behave.
	Shell Shell `toml:"shell"`
	// Which agents there are and what they may see.
	Agents Agents `toml:"agents"`
	// The private tmux server that holds the panes.
	Tmux Tmux `toml:"tmux"`
}

// Screen is [screen].
type Screen struct {
	// A built-in theme or one of [themes]; empty follows the terminal.
	Theme string `toml:"theme"`
	// Leave the mouse to the terminal until M is pressed.
	NoMouse bool `toml:"no_mouse"`
	// Draw without any character beyond ASCII, whatever the locale says.
	ASCII bool `toml:"ascii"`
	// Order of the list: attention, name or created.
	Sort string `toml:"sort" values:"attention,name,created"`
	// Grouping of the list: engine, status, directory or workspace.
	Group string `toml:"group" values:"engine,status,directory,workspace"`
}

// Shell is [shell].
type Shell struct {
	// Let agents answer ! commands without !?.
	Ask bool `toml:"ask"`
	// Commands that ! refuses to run: a program's name, such as "shutdown", or a
	// program with arguments and options that a call must all have, such as
	// "git push --force". A guard-rail, not a sandbox: a script goes past it.
	Block []string `toml:"block"`
	// Shell that runs ! commands on the host, such as "bash": a name or a path.
	// It is started as a login shell and probed once; a profile that prints,
	// changes the directory or replaces the shell is left out, which is said.
	// Empty is cellmux's own shell, the same on every system.
	Program string `toml:"program"`
	// How many MiB a ! command may print before it is ended; 0 is 1024, and a
	// negative number sets no limit.
	MaxOutput int64 `toml:"max_output"`
}

// Agents is [agents].
type Agents struct {
	// Names in the order in which they are offered and looked for; those that
	// are left out follow.
	Order []string `toml:"order"`
	// Host variables that agents get besides those that each needs; a final *
	// matches any ending.
	Pass []string `toml:"pass"`
	// Agents of your own, by name. One with the name of a built-in replaces it.
	Custom map[string]Custom `toml:"custom"`
}

// Custom is [agents.custom.NAME].
type Custom struct {
	// Program and arguments; {session} in an argument is the slot's session ID.
	Command []string `toml:"command"`
	// Program and arguments of one turn without a terminal: the message comes on
	// its standard input, what it prints is the answer, and exit status 0 says
	// that it is one. {session} as in command. Empty: messages wait for a pane.
	Headless []string `toml:"headless"`
	// Keys that stop a running turn and nothing else, as tmux names them; Escape
	// by default.
	Interrupt []string `toml:"interrupt"`
	// How long Enter waits after a paste, such as "300ms".
	Settle string `toml:"settle"`
	// Regular expression for a row that is there when its box takes text. A group
	// in it is what stands in the box, such as '^> ?(.*)': a half-typed draft is
	// then left alone, and a message that has left the box is known to be sent.
	Ready string `toml:"ready"`
	// Regular expression for a row that is there while a turn runs.
	Busy string `toml:"busy"`
	// Regular expression for a row that is there while a question is open.
	Asking string `toml:"asking"`
}

// Tmux is [tmux].
type Tmux struct {
	// Path of tmux; empty looks it up on PATH.
	Program string `toml:"program"`
	// Name of the server's socket (tmux -L); CELLMUX_TMUX_SOCKET stands over it.
	Socket string `toml:"socket"`
	// Keys that come back from an attached pane, as tmux names them; C-q and F12
	// by default.
	Detach []string `toml:"detach"`
	// Lines of history kept of each pane; 10000 by default.
	History int `toml:"history"`
	// Let tmux take the mouse in an attached pane.
	Mouse bool `toml:"mouse"`
}
