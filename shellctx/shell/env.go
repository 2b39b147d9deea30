package shell

import (
	"maps"
	"slices"
	"strings"
)

// EnvMarkers returns the variables that tell a program that cellmux runs it, for
// tools that want to know whether an agent's shell is calling them. NewShell and
// the `!` use case set them; Run and ExpandValue leave the environment to their
// caller. The slice is the caller's own.
func EnvMarkers() []string {
	return []string{"CELLMUX=1", "AGENT=cellmux", "AI_AGENT=cellmux"}
}

// Unattended returns variables that keep programs from asking a user who cannot
// answer, for commands without a terminal: credentials and editors fail at once
// and pagers print. The slice is the caller's own.
func Unattended() []string {
	return []string{
		"TERM=xterm-256color",
		"PAGER=cat", "GIT_PAGER=cat", "JJ_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat",
		"EDITOR=false", "VISUAL=false", "GIT_EDITOR=false", "JJ_EDITOR=false",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "SUDO_ASKPASS=",
		"SSH_ASKPASS_REQUIRE=never", "DEBIAN_FRONTEND=noninteractive",
	}
}

// variables is an environment by name.
type variables map[string]string

// parseEnv reads KEY=VALUE pairs; the last of a name wins, and what has no name
// is dropped, as programs do.
func parseEnv(env []string) variables {
	vars := make(variables, len(env))
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			vars[name] = value
		}
	}
	return vars
}

// list is sorted, so that equal environments are equal lists.
func (v variables) list() []string {
	env := make([]string, 0, len(v))
	for _, name := range slices.Sorted(maps.Keys(v)) {
		env = append(env, name+"="+v[name])
	}
	return env
}
