package engine_test

import (
	"slices"
	"testing"

	"cellmux/cell/cfg"
	"cellmux/engine"
)

// [llm] stands above the host's own variables, and its key is a secret.
func TestTheModelOfACellReachesItsAgent(t *testing.T) {
	values := engine.Values{
		Config:  cfg.CellConfig{LLM: cfg.LLMSection{Provider: "openrouter", Model: "x/y"}},
		Secrets: []string{"OPENROUTER_API_KEY=sk-or-canary"},
	}
	h := newHouse(t, "claude", func(o *engine.OpenerOptions) { o.Configs = configs{values: values} })
	env, err := h.opener.Environment(t.Context(), engine.OpenRequest{Cell: h.cell, Agent: "claude"})
	if err != nil {
		t.Fatal(err)
	}
	seen := engine.LastWins(env.Pairs())
	for _, want := range []string{"ANTHROPIC_BASE_URL=https://openrouter.ai/api", "ANTHROPIC_API_KEY=", "ANTHROPIC_AUTH_TOKEN=sk-or-canary", "ANTHROPIC_MODEL=x/y"} {
		if !slices.Contains(seen, want) {
			t.Errorf("%s is not in %q", want, seen)
		}
	}
	if !slices.Contains(env.Secrets(), "ANTHROPIC_AUTH_TOKEN") {
		t.Errorf("the key is no secret: %q", env.Secrets())
	}
}
