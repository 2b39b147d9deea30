package cfg

import "strconv"

// Config is what cellmux knows about one slot of one cell, apart from what
// devcell.toml says (CellConfig). It is filled once, before a launch, and holds
// values only: building prompts and environments from it reads nothing else.
type Config struct {
	Workspace     string // name of the workspace, such as "main"
	WorkspaceHome string // its directory on the host, ~/.devcell/<workspace>
	Cell          string // name of the cell, [a-z0-9-]
	Slot          int
	ProjectDir    string // on the host, absolute
	Engine        string // host, docker, tart, winkit or microvm
	HostUser      string
	Guest         Guest
}

// AppName is "<cell>-<slot>": what a guest sees as CELL_NAME, the folder of
// its prompt files, and what its session ID is derived from.
func (c Config) AppName() string { return c.Cell + "-" + strconv.Itoa(c.Slot) }

// Guest is what an engine says about the inside of a cell: facts alone, on
// which the container context is built.
type Guest struct {
	Isolated   bool   // false for a host cell
	Kind       string // "Docker container", "macOS virtual machine", …
	Hostname   string
	Home       string // path inside that holds WorkspaceHome; on the host the user's own home
	ProjectDir string // path inside that holds the project
	Mounts     []Mount
	Git        GitAccess
	Limits     []string // sentences, such as "4 GiB of memory"
}

// Mount maps a host directory into a guest.
type Mount struct {
	Host, Guest string
	ReadOnly    bool
	Note        string // such as "from devcell.toml"
}

// GitAccess says what git can do inside a cell.
type GitAccess string

// What git can do inside.
const (
	GitReadWrite GitAccess = "read-write"
	GitReadOnly  GitAccess = "read-only" // commits happen on the host
	GitNone      GitAccess = "none"
)
