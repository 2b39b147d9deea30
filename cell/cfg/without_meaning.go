package cfg

// The sections below belong to the format and mean nothing to cellmux: a file
// that has them is read, checked for its types, and told so once.

// BuildSection is [build].
type BuildSection struct {
	Memory  string `toml:"memory"`
	CPUs    string `toml:"cpus"`
	MaxJobs int    `toml:"max_jobs"`
	Cores   int    `toml:"cores"`
	Threads int    `toml:"threads"`
}

// NixSection is [nix].
type NixSection struct {
	Image   string `toml:"image"`
	NixHome string `toml:"nixhome"`
}

// GUISection is [gui].
type GUISection struct {
	Enabled    bool    `toml:"enabled"`
	WM         string  `toml:"wm"`
	Resolution string  `toml:"resolution"`
	Scale      float64 `toml:"scale"`
}

// AWSSection is [aws].
type AWSSection struct {
	ReadOnly bool `toml:"read_only"`
}

// StealthSection is [stealth].
type StealthSection struct {
	Arch     string `toml:"arch"`
	Platform string `toml:"platform"`
}

// PackagesSection is [packages].
type PackagesSection struct {
	Nix    NixPackagesSection `toml:"nix"`
	Node   map[string]string  `toml:"node"`
	Python map[string]string  `toml:"python"`
}

// NixPackagesSection is [packages.nix].
type NixPackagesSection struct {
	Unstable []string `toml:"unstable"`
	Edge     []string `toml:"edge"`
}

// WireGuardSection is one [[wireguard]].
type WireGuardSection struct {
	Name    string `toml:"name"`
	Enabled bool   `toml:"enabled"`
	Config  string `toml:"config"`
}
