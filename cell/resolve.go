package cell

import (
	"context"
	"maps"
	"slices"
	"strings"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
)

// SecretMask stands in for the value of a secret wherever one is shown.
const SecretMask = "********"

// ResolveInput is what Resolve works with.
type ResolveInput struct {
	Effective *cfg.Effective
	Runner    proc.Runner
	Dir       string     // where commands run: the project directory
	Environ   []string   // of the host, complete
	Expand    cfg.Expand // shell.ExpandValue
	// Show resolves for a person to look at: nothing is executed, a secret is
	// SecretMask, and a value that needs a command keeps its text.
	Show bool
}

// Resolved is what a cell's configuration says at the moment of a launch.
type Resolved struct {
	Config  cfg.CellConfig // expanded
	Secrets Secrets
	Masked  []string // names in Config.Env whose values hold a secret, sorted
	Notes   []string // sentences for the user
}

// Resolve fetches the secrets of an effective configuration and expands its
// references, which may name them. It blocks on the commands that the
// configuration names. An error names keys and secrets, never values.
func Resolve(ctx context.Context, in ResolveInput) (Resolved, error) {
	if in.Show {
		return in.show(ctx), nil
	}
	secrets, notes, err := FetchSecrets(ctx, SecretInput{
		Section: in.Effective.Config().Secrets,
		Runner:  in.Runner,
		Dir:     in.Dir,
		Environ: in.Environ,
	})
	if err != nil {
		return Resolved{}, err
	}
	config, err := in.Effective.ExpandAll(ctx, append(slices.Clone(in.Environ), secrets.Pairs()...), in.Expand)
	if err != nil {
		return Resolved{}, err
	}
	r := Resolved{Config: config, Secrets: secrets, Notes: notes}
	if err := r.fillOpenRouterKey(in.Environ); err != nil {
		return Resolved{}, err
	}
	r.mask()
	return r, nil
}

// show resolves what can be resolved without executing anything; what cannot is a
// note.
func (in ResolveInput) show(ctx context.Context) Resolved {
	section := in.Effective.Config().Secrets
	r := Resolved{Secrets: make(Secrets)}
	for name := range section.Sources {
		r.Secrets[name] = SecretMask
	}
	if len(section.OnePassword.Documents) > 0 {
		r.Notes = append(r.Notes, "the fields of 1Password items become variables at launch")
	}
	expand := func(ctx context.Context, value string, environ []string) (string, error) {
		if strings.Contains(value, "$(") || strings.Contains(value, "`") {
			return value, nil
		}
		return in.Expand(ctx, value, environ)
	}
	var err error
	r.Config, err = in.Effective.ExpandAll(ctx, append(slices.Clone(in.Environ), r.Secrets.Pairs()...), expand)
	if err != nil {
		r.Notes = append(r.Notes, strings.Split(err.Error(), "\n")...)
	}
	if err := r.fillOpenRouterKey(in.Environ); err != nil {
		r.Notes = append(r.Notes, err.Error())
	} else if r.Secrets[openRouterKey] != "" {
		r.Secrets[openRouterKey] = SecretMask
	}
	r.mask()
	return r
}

// fillOpenRouterKey counts the key among the secrets, unless [env] sets it.
func (r Resolved) fillOpenRouterKey(environ []string) error {
	if r.Config.LLM.Provider != "openrouter" || r.Config.Env[openRouterKey] != "" {
		return nil
	}
	return FillOpenRouterKeyFrom(r.Secrets, func(name string) string { return lookup(environ, name) })
}

// mask finds the variables of [env] that hold the value of a secret.
func (r *Resolved) mask() {
	for _, name := range slices.Sorted(maps.Keys(r.Config.Env)) {
		if r.Secrets.in(r.Config.Env[name]) {
			r.Masked = append(r.Masked, name)
		}
	}
}

// in says that text holds the value of a secret.
func (s Secrets) in(text string) bool {
	for _, value := range s {
		if value != "" && strings.Contains(text, value) {
			return true
		}
	}
	return false
}
