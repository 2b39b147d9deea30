package cell

import (
	"context"
	"os"
	"strings"

	"cellmux/cell/proc"
)

// GitConfigIn returns a lookup of host git settings as seen from dir, for
// EnvInput.GitConfig: "" where git is missing, the key is unset or git does not
// answer. environ is the environment that git gets. Each call starts a process
// and blocks for it, at most proc.DefaultTimeout.
func GitConfigIn(ctx context.Context, runner proc.Runner, dir string, environ []string) func(key string) string {
	return func(key string) string {
		result, err := runner.Run(ctx, proc.Cmd{
			Argv: []string{"git", "config", "--get", key},
			Dir:  dir,
			Env:  environ,
		})
		if err != nil || result.ExitCode != 0 {
			return ""
		}
		return strings.TrimSpace(string(result.Stdout))
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
