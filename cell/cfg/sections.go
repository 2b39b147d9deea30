// Package cfg reads devcell.toml: what a cell is.
//
// The rule it keeps: loading a file executes nothing, reads nothing outside the
// two files, and gives a project's file no power that the user has not approved.
// The power is kept back by type: what waits for approval is a Pending, which can
// be shown and approved, and has no way to be expanded, resolved or run.
package cfg

// CellConfig is the effective devcell.toml. Its fields are the file's sections;
// docs/config.md is made from the comments and tags of this file:
//
//	toml      the key
//	default   the value where no source says otherwise
//	env       a host variable that stands above both files
//	oneof     the words that the key takes
//	grammar   the form of each string: volume, port, secret, variable
//	path      "file": ~ and paths relative to the file that holds them work
//	key       the field by which entries of a list are told apart
//	cleared   a key of the same section that, set in a higher source, clears this one
//	literal   "yes": never expanded
//	acts      what the value does once the file is approved, for the dialog
//	meaning   "none": accepted, and without effect
type CellConfig struct {
	// What the cell is made of, and where it runs.
	Cell CellSection `toml:"cell"`
	// Limits of a docker cell.
	Docker DockerSection `toml:"docker"`
	// The model that agents use, and the prompts that they are given.
	LLM LLMSection `toml:"llm"`
	// Who commits inside a cell.
	Git GitSection `toml:"git"`
	// Variables whose values are fetched at launch and never stored: NAME = "source".
	Secrets SecretsSection `toml:"secrets"`
	// Variables of every program in the cell: NAME = "value".
	Env map[string]string `toml:"env" grammar:"variable" acts:"sets variables that programs obey"`
	// Settings of mise, handed over as MISE_NAME: name = "value".
	Mise map[string]string `toml:"mise" grammar:"variable" acts:"sets variables that programs obey"`
	// How ports are published.
	Ports PortsSection `toml:"ports"`
	// What cellmux writes to the project's forge.
	Forge ForgeSection `toml:"forge"`

	Build     BuildSection       `toml:"build" meaning:"none"`
	Nix       NixSection         `toml:"nix" meaning:"none"`
	GUI       GUISection         `toml:"gui" meaning:"none"`
	AWS       AWSSection         `toml:"aws" meaning:"none"`
	Stealth   StealthSection     `toml:"stealth" meaning:"none"`
	Packages  PackagesSection    `toml:"packages" meaning:"none"`
	WireGuard []WireGuardSection `toml:"wireguard" key:"name" meaning:"none"`
}

// CellSection is [cell].
type CellSection struct {
	// Names what the cell's image or template is built with.
	Stack string `toml:"stack" default:"base"`
	// Modules in addition to the stack.
	Modules []string `toml:"modules"`
	// System packages of the image.
	Packages []string `toml:"packages" acts:"installs packages into the image"`
	// An image to use as it is, in place of a stack.
	Image string `toml:"image" acts:"runs an image of the project's choice"`
	// Directories of the host inside the cell: "/path", or "host:guest[:ro]". A
	// relative host path starts at the file's own directory.
	Volumes []string `toml:"volumes" grammar:"volume" acts:"shares directories of the host"`
	// Ports of the cell on the host: "3000", "8080:3000", "8080:" (a free port of
	// the host), each with "/udp" or an address in front, "0.0.0.0:8080:3000".
	Ports []string `toml:"ports" grammar:"port" acts:"opens ports on the host"`
	// Timezone inside, such as "Europe/Prague"; unset, the host's TZ.
	Timezone string `toml:"timezone"`
	// Locale inside; unset, the host's LANG, or en_US.UTF-8.
	Locale string `toml:"locale"`
	// Hostname inside; unset, "cell-" and the cell's name.
	Hostname string `toml:"hostname" env:"DEVCELL_HOSTNAME"`
	// What carries the cell; unset, what os says, else host. auto takes docker for
	// a known agent where a runtime answers, else host.
	Engine string `toml:"engine" oneof:"host docker tart winkit microvm auto" acts:"chooses how strongly the cell is isolated"`
	// The system inside, where engine is unset: linux is docker, macos is tart,
	// windows and winpe are winkit.
	OS string `toml:"os" oneof:"linux macos windows winpe" acts:"chooses how strongly the cell is isolated"`
	// What the network of an isolated cell reaches: everything, nothing, or the
	// hosts of network_allow alone. Where docker has no subnet left for it, it gets
	// one of 10.213.0.0/16 or 172.16.0.0/16 that nothing on this machine uses.
	Network string `toml:"network" oneof:"open none allowlist" acts:"chooses what the network reaches"`
	// Host names that a cell with network = "allowlist" reaches, on port 443.
	NetworkAllow []string `toml:"network_allow" acts:"chooses what the network reaches"`
	// Keeps the cell's guest up when its last pane has ended; unset, it goes down
	// then, unless something else runs in it.
	Background bool `toml:"background"`
	// What the first pane of a new cell runs: the name of an agent, of one that
	// config.toml declares ([agents.custom.NAME]) too. Any command may be declared there.
	DefaultCommand string `toml:"default_command" env:"DEVCELL_DEFAULT_COMMAND" literal:"yes" acts:"is run in the first pane"`
	// The persistent home that the cell shares with others of its workspace.
	Workspace string `toml:"workspace" acts:"chooses a home with what lies in it"`

	ImageTag         string   `toml:"image_tag" env:"IMAGE_TAG" meaning:"none"`
	Registry         string   `toml:"registry" env:"DEVCELL_REGISTRY" meaning:"none"`
	PerCellImage     bool     `toml:"per_cell_image" meaning:"none"`
	Flake            bool     `toml:"flake" env:"DEVCELL_FLAKE" meaning:"none"`
	MCPs             []string `toml:"mcps" meaning:"none"`
	MACAddress       string   `toml:"mac_address" meaning:"none"`
	KVM              bool     `toml:"kvm" env:"DEVCELL_KVM" meaning:"none"`
	StaleWarning     bool     `toml:"stale_warning" meaning:"none"`
	TartOCIImage     string   `toml:"tart_oci_image" meaning:"none"`
	TartSSHHost      string   `toml:"tart_ssh_host" meaning:"none"`
	TartSSHPort      int      `toml:"tart_ssh_port" meaning:"none"`
	TartSSHUser      string   `toml:"tart_ssh_user" meaning:"none"`
	TartSSHKey       string   `toml:"tart_ssh_key" meaning:"none"`
	WinkitWindowsISO string   `toml:"winkit_windows_iso" meaning:"none"`
	WinkitSSHPort    int      `toml:"winkit_ssh_port" meaning:"none"`
	WinkitCPUs       int      `toml:"winkit_cpus" meaning:"none"`
	WinkitMemoryGB   int      `toml:"winkit_memory_gb" meaning:"none"`
}

// DockerSection is [docker].
type DockerSection struct {
	// Memory, as docker run --memory takes it; "0" is unlimited.
	MemLimit string `toml:"mem_limit" default:"4g" env:"DEVCELL_DOCKER_MEM_LIMIT" acts:"chooses how much of the machine the cell may use"`
	// Processors, as docker run --cpus takes it; "0" is unlimited.
	CPULimit string `toml:"cpu_limit" default:"2" env:"DEVCELL_DOCKER_CPU_LIMIT" acts:"chooses how much of the machine the cell may use"`
	// Shared memory, as docker run --shm-size takes it.
	ShmSize string `toml:"shm_size" default:"1g" env:"DEVCELL_DOCKER_SHM_SIZE" acts:"chooses how much of the machine the cell may use"`

	Privileged bool     `toml:"privileged" env:"DEVCELL_DOCKER_PRIVILEGED" meaning:"none"`
	CapAdd     []string `toml:"cap_add" meaning:"none"`
}

// LLMSection is [llm].
type LLMSection struct {
	// Where models come from. openrouter needs OPENROUTER_API_KEY on the host or
	// under [secrets].
	Provider string `toml:"provider" acts:"chooses where conversations are sent"`
	// The model's name at the provider. A higher file that changes the provider
	// drops the model of a lower one.
	Model string `toml:"model" cleared:"provider" acts:"chooses where conversations are sent"`
	// Replaces the agent's own system prompt, which holds its tool and safety guidance.
	SystemPrompt string `toml:"system_prompt" cleared:"system_prompt_file" literal:"yes" acts:"replaces the agent's instructions"`
	// The same, from a file.
	SystemPromptFile string `toml:"system_prompt_file" cleared:"system_prompt" path:"file" acts:"reads a file as the agent's instructions"`
	// Is added after the agent's own prompt and the description of the cell.
	AppendSystemPrompt string `toml:"append_system_prompt" cleared:"append_system_prompt_file" literal:"yes" acts:"adds to the agent's instructions"`
	// The same, from a file.
	AppendSystemPromptFile string `toml:"append_system_prompt_file" cleared:"append_system_prompt" path:"file" acts:"reads a file as the agent's instructions"`
	// Providers of your own, [llm.providers.NAME].
	Providers map[string]ProviderSection `toml:"providers" acts:"chooses where conversations are sent"`
}

// ProviderSection is [llm.providers.NAME].
type ProviderSection struct {
	// Address of an OpenAI-compatible API, with or without "/v1".
	BaseURL string `toml:"base_url"`
	// The models that it offers.
	Models []string `toml:"models"`
}

// GitSection is [git].
type GitSection struct {
	// Author of commits made inside; unset, the host's identity.
	AuthorName string `toml:"author_name" acts:"names who commits"`
	// The author's address.
	AuthorEmail string `toml:"author_email" acts:"names who commits"`
	// Committer; unset, the author.
	CommitterName string `toml:"committer_name" acts:"names who commits"`
	// The committer's address; unset, the author's.
	CommitterEmail string `toml:"committer_email" acts:"names who commits"`
	// What a docker cell may do with the repository of a linked worktree: "ro"
	// leaves commits to the host, "rw" lets them happen inside.
	Worktree string `toml:"worktree" oneof:"ro rw" acts:"lets the cell write the repository that git on the host reads"`
}

// ResolvedCommitterName is the committer's name, which defaults to the author's.
func (g GitSection) ResolvedCommitterName() string {
	if g.CommitterName != "" {
		return g.CommitterName
	}
	return g.AuthorName
}

// ResolvedCommitterEmail is the committer's address, which defaults to the
// author's.
func (g GitSection) ResolvedCommitterEmail() string {
	if g.CommitterEmail != "" {
		return g.CommitterEmail
	}
	return g.AuthorEmail
}

// SecretsSection is [secrets].
type SecretsSection struct {
	// NAME = "source": env:VARIABLE of the host, file:PATH, cmd:COMMAND whose
	// output is the value, or op://VAULT/ITEM/FIELD of 1Password.
	Sources map[string]string `toml:",rest" grammar:"secret" literal:"yes" acts:"fetches a secret, cmd: by running a command"`
	// Items of 1Password, each of whose fields becomes a variable.
	OnePassword OnePasswordSection `toml:"onepassword"`
}

// OnePasswordSection is [secrets.onepassword].
type OnePasswordSection struct {
	// Names of items, read with `op item get`; later ones win.
	Documents []string `toml:"documents" literal:"yes" acts:"fetches secrets of 1Password"`
}

// PortsSection is [ports].
type PortsSection struct {
	// Address of the host on which ports are published.
	PublishIP string `toml:"publish_ip" default:"127.0.0.1" acts:"opens ports on the host"`
}

// ForgeSection is [forge].
type ForgeSection struct {
	// Whether a task's status is written to its issue as a label.
	CycleLabels bool `toml:"cycle_labels" acts:"writes to the project's forge in your name"`
}
