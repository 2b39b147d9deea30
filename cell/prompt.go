// Package cell holds what a guest sees, the same on every engine: its
// environment, its prompts, its conversation, and the shell quoting that hands
// them over.
//
// The rule it keeps: engines decide how a value travels, never what it is.
package cell

import "cellmux/cell/cfg"

// ResolveOpts bundles every source of system prompts (spec/cell.txt).
type ResolveOpts struct {
	FlagFile, FlagInline             string
	EnvFile, EnvInline               string
	AppendFlagFile, AppendFlagInline string
	AppendEnvFile, AppendEnvInline   string
	CellCfg                          cfg.CellConfig
	CfgBaseDir                       string
}
