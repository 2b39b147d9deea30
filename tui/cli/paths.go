package cli

import (
	"path/filepath"
)

// SocketVariable names the tmux socket in place of "cellmux"; tests and people
// who try a second installation set it.
const SocketVariable = "CELLMUX_TMUX_SOCKET"

// DefaultSocket is the name for tmux -L.
const DefaultSocket = "cellmux"

// PathsFrom says where things are, by the XDG base directory specification. A
// variable that is not an absolute path counts as unset, as the specification
// demands. temp is the system's directory for temporary files, uid the user's.
func PathsFrom(getenv func(string) string, home, temp, uid string) Paths {
	base := func(variable, fallback string) string {
		if dir := getenv(variable); filepath.IsAbs(dir) {
			return dir
		}
		return filepath.Join(home, fallback)
	}
	state := filepath.Join(base("XDG_STATE_HOME", ".local/state"), "cellmux")
	config := base("XDG_CONFIG_HOME", ".config")
	runtime := filepath.Join(temp, "cellmux-"+uid)
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		runtime = filepath.Join(dir, "cellmux")
	}
	socket := getenv(SocketVariable)
	if socket == "" {
		socket = DefaultSocket
	}
	return Paths{
		State:      state,
		Database:   filepath.Join(state, "cellmux.db"),
		Log:        filepath.Join(state, "cellmux.log"),
		Settings:   filepath.Join(config, "cellmux", "config.toml"),
		GlobalCell: filepath.Join(config, "devcell", "devcell.toml"),
		Runtime:    runtime,
		TmuxSocket: socket,
		Workspaces: filepath.Join(home, ".devcell"),
	}
}
