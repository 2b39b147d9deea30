// Package e2e runs the built program in a private real tmux, as a user would:
// with an empty environment, a temporary home, and keys.
//
// The rule it keeps: it refuses a tmux server that it did not start, ends only
// what it started, and waits for what it expects instead of sleeping. Scripts
// are testdata/*.txtar; docs/contributing.md lists their commands.
package e2e
