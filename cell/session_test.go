package cell

import (
	"slices"
	"testing"
)

func TestSessionIDVectors(t *testing.T) {
	for app, want := range map[string]string{
		"proj-0":      "7764de5a-9d42-52b6-b2f1-2b77273e0845",
		"myproject-3": "a443651f-32fd-51a3-aa8f-5c699cc722c0",
		"devcell-85":  "6610989e-2752-5f43-85e3-5974c5bf6ebc",
		"":            "9400075b-d5b5-556d-8b9c-b8f4074625f9",
	} {
		if got := SessionID(app); got != want {
			t.Errorf("SessionID(%q) = %s, want %s", app, got, want)
		}
	}
}

func TestStackTag(t *testing.T) {
	modules := []string{"plex", "linear"}
	for _, tt := range []struct {
		stack   string
		modules []string
		want    string
	}{
		{"ultimate", nil, "ultimate"},
		{"ultimate", []string{}, "ultimate"},
		{"dev", modules, "dev-linear-plex-2dbb8ea3"},
		{"dev", []string{"linear", "plex"}, "dev-linear-plex-2dbb8ea3"},
		{"base", []string{"go"}, "base-go-4cd0e21a"},
	} {
		if got := StackTag(tt.stack, tt.modules); got != tt.want {
			t.Errorf("StackTag(%q, %q) = %s, want %s", tt.stack, tt.modules, got, tt.want)
		}
	}
	if !slices.Equal(modules, []string{"plex", "linear"}) {
		t.Errorf("the caller's modules became %q", modules)
	}
	if StackTag("dev", []string{"a", "a"}) == StackTag("dev", []string{"a"}) {
		t.Error("a module named twice counts twice")
	}
}

func TestFillOpenRouterKey(t *testing.T) {
	host := getenv("OPENROUTER_API_KEY=from-host")
	env := map[string]string{"OPENROUTER_API_KEY": ""}
	if err := FillOpenRouterKeyFrom(env, host); err != nil || env["OPENROUTER_API_KEY"] != "from-host" {
		t.Errorf("placeholder: %v, %q", err, env)
	}
	env = map[string]string{"OPENROUTER_API_KEY": "from-secret"}
	if err := FillOpenRouterKeyFrom(env, host); err != nil || env["OPENROUTER_API_KEY"] != "from-secret" {
		t.Errorf("a resolved secret must stay: %v, %q", err, env)
	}
	env = map[string]string{"OTHER": "x"}
	if err := FillOpenRouterKeyFrom(env, getenv()); err == nil || len(env) != 1 {
		t.Errorf("no key anywhere: error %v, env %q; want an error and env untouched", err, env)
	}
	if err := FillOpenRouterKeyFrom(nil, host); err == nil {
		t.Error("a nil map must be an error, not a panic")
	}
}
