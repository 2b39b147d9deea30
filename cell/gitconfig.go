package cell

import (
	"context"
	"os"
	"strings"

	"cellmux/cell/git"
	"cellmux/cell/proc"
)

// GitConfigIn returns a lookup of host git settings as seen from dir, for
// EnvInput.GitConfig: "" where git is missing, the key is unset or git does not
// answer. environ is the environment that git gets, but for the variables that
// would point it at another repository. Each call starts a process and blocks for
// it, at most git.Timeout. Reading settings runs nothing of a repository.
func GitConfigIn(ctx context.Context, runner proc.Runner, dir string, environ []string) func(key string) string {
	return func(key string) string {
		value, err := git.Client{Runner: runner, Environ: environ}.Run(ctx, dir, "config", "--get", key)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(value)
	}
}

// HostGitConfig returns `git config --get <key>` as seen from the current
// directory, or "" when git is missing, does not answer or the key is unset.
func HostGitConfig(key string) string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return GitConfigIn(context.Background(), proc.New(), dir, os.Environ())(key)
}
