package cell

import (
	"errors"
	"os"
)

const openRouterKey = "OPENROUTER_API_KEY"

// FillOpenRouterKey puts OPENROUTER_API_KEY into env, for cells with
// [llm] provider = "openrouter". It is called after secrets are resolved: a
// value that is already there stays, an empty placeholder is filled from the
// environment of cellmux. On an error env is untouched.
func FillOpenRouterKey(env map[string]string) error {
	return FillOpenRouterKeyFrom(env, os.Getenv)
}

// FillOpenRouterKeyFrom is FillOpenRouterKey with the host's environment handed
// in.
func FillOpenRouterKeyFrom(env map[string]string, getenv func(string) string) error {
	if env[openRouterKey] != "" {
		return nil
	}
	if env == nil {
		return errors.New("fill " + openRouterKey + ": there is no environment to put it into")
	}
	key := getenv(openRouterKey)
	if key == "" {
		return errors.New(`[llm] provider = "openrouter" requires OPENROUTER_API_KEY: export it, or name its source under [secrets] in devcell.toml`)
	}
	env[openRouterKey] = key
	return nil
}
