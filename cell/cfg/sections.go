// Package cfg reads devcell.toml: what a cell is.
//
// The rule it keeps: loading a file executes nothing, reads nothing outside the
// two files, and gives a project's file no power that the user has not approved.
package cfg

// CellConfig is the effective devcell.toml.
type CellConfig struct {
	Cell    CellSection       `toml:"cell"`
	Docker  DockerSection     `toml:"docker"`
	LLM     LLMSection        `toml:"llm"`
	Git     GitSection        `toml:"git"`
	Secrets map[string]string `toml:"secrets"` // variable name → source
	Env     map[string]string `toml:"env"`
	Mise    map[string]string `toml:"mise"`
}

// CellSection is [cell].
type CellSection struct {
	Stack          string   `toml:"stack"`
	Modules        []string `toml:"modules"`
	Packages       []string `toml:"packages"`
	Image          string   `toml:"image"`
	Volumes        []string `toml:"volumes"`
	Ports          []string `toml:"ports"`
	Timezone       string   `toml:"timezone"`
	Locale         string   `toml:"locale"`
	Hostname       string   `toml:"hostname"`
	Engine         string   `toml:"engine"`
	OS             string   `toml:"os"`
	DefaultCommand string   `toml:"default_command"`
	Workspace      string   `toml:"workspace"`
}

// DockerSection is [docker].
type DockerSection struct {
	MemLimit string `toml:"mem_limit"`
	CPULimit string `toml:"cpu_limit"`
	ShmSize  string `toml:"shm_size"`
}

// LLMSection is [llm].
type LLMSection struct {
	Provider               string `toml:"provider"`
	Model                  string `toml:"model"`
	SystemPrompt           string `toml:"system_prompt"`
	SystemPromptFile       string `toml:"system_prompt_file"`
	AppendSystemPrompt     string `toml:"append_system_prompt"`
	AppendSystemPromptFile string `toml:"append_system_prompt_file"`
}

// GitSection is [git].
type GitSection struct {
	AuthorName     string `toml:"author_name"`
	AuthorEmail    string `toml:"author_email"`
	CommitterName  string `toml:"committer_name"`
	CommitterEmail string `toml:"committer_email"`
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
