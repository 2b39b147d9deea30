// Package cell holds what a guest sees, the same on every engine: its
// environment, its prompts, its conversation, and the shell quoting that hands
// them over.
//
// The rule it keeps: engines decide how a value travels, never what it is. It
// touches the world in two places alone, prompt files and git's settings;
// everything else is a function of its arguments.
package cell
