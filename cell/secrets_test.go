package cell

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/cell/proc/proctest"
	"cellmux/shellctx/shell"
)

func fetch(t *testing.T, runner proc.Runner, section cfg.SecretsSection, environ ...string) (Secrets, []string, error) {
	t.Helper()
	return FetchSecrets(t.Context(), SecretInput{section, runner, t.TempDir(), environ})
}

func sources(pairs ...string) cfg.SecretsSection {
	s := cfg.SecretsSection{Sources: make(map[string]string)}
	for i := 0; i < len(pairs); i += 2 {
		s.Sources[pairs[i]] = pairs[i+1]
	}
	return s
}

func TestSecretsComeFromTheirSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, notes, err := fetch(t, proc.New(), sources(
		"A", "env:HOST_A", "B", "file:"+file, "C", "cmd:printf '%s\n\n' \"from $WHERE\""),
		"HOST_A=from env", "WHERE=command", "PATH="+os.Getenv("PATH"))
	want := Secrets{"A": "from env", "B": "from file", "C": "from command"}
	if err != nil || len(notes) != 0 || !maps.Equal(got, want) {
		t.Errorf("got %q, %q, %v", got, notes, err)
	}
}

func TestOnePasswordIsAskedByReferenceAndByItem(t *testing.T) {
	runner := proctest.New(t)
	runner.Expect("op", "read", "--no-newline", "op://vault/item/field").Prints("by reference")
	runner.Expect("op", "item", "get", "First", "--format", "json", "--reveal", "--cache").
		Prints(`{"fields":[{"label":"USER","value":"ada"},{"label":"PASS","value":"one"},{"label":"not a name","value":"x"},{"label":"EMPTY","value":""}]}`)
	runner.Expect("op", "item", "get", "Second", "--format", "json", "--reveal", "--cache").
		Prints(`{"fields":[{"label":"PASS","value":"two"},{"label":"TOKEN","value":"hidden"}]}`)
	runner.Expect("op", "item", "get", "Gone", "--format", "json", "--reveal", "--cache").Exits(1, "canary", "canary")
	section := sources("TOKEN", "op://vault/item/field")
	section.OnePassword.Documents = []string{"First", "Second", "Gone", "--vault"}
	got, notes, err := fetch(t, runner, section)
	want := Secrets{"USER": "ada", "PASS": "two", "TOKEN": "by reference"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	if len(notes) != 2 || !strings.Contains(notes[0], `"Gone"`) || strings.Contains(strings.Join(notes, ""), "canary") {
		t.Errorf("notes %q", notes)
	}
}

func TestEveryFailedSecretIsNamedAndNoValueIs(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "huge")
	if err := os.WriteFile(huge, []byte(strings.Repeat("canary", maxSecretSize)), 0o600); err != nil {
		t.Fatal(err)
	}
	failing := map[string]string{
		"UNSET":   "env:NOWHERE",
		"EMPTY":   "env:HOST_EMPTY",
		"MISSING": "file:/nowhere/at/all",
		"DIR":     "file:" + t.TempDir(),
		"DEVICE":  "file:/dev/zero",
		"HUGE":    "file:" + huge,
		"STATUS":  "cmd:echo canary; echo canary >&2; exit 3",
		"SILENT":  "cmd:true",
		"LONG":    "cmd:yes canary | head -c 100000",
		"NUL":     `cmd:printf 'canary\0x'`,
		"NO_TOOL": "op://a/b/c",
	}
	secrets, _, err := fetch(t, proc.New(), cfg.SecretsSection{Sources: failing}, "HOST_EMPTY=", "PATH=/usr/bin:/bin")
	if err == nil || secrets != nil {
		t.Fatalf("got %q, %v", secrets, err)
	}
	for name := range failing {
		if !strings.Contains(err.Error(), "secret "+name+": ") {
			t.Errorf("%s is not named in\n%v", name, err)
		}
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the error holds a value:\n%v", err)
	}
}

func TestSecretsHaveADeadline(t *testing.T) {
	runner := proctest.New(t)
	runner.Expect("sh", "-c", "sleep 100").Hangs()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := FetchSecrets(ctx, SecretInput{sources("SLOW", "cmd:sleep 100"), runner, "/", nil})
	if err == nil || !strings.Contains(err.Error(), "secret SLOW") {
		t.Errorf("got %v", err)
	}
}

func TestSecretsCanBeSwitchedOff(t *testing.T) {
	for _, variable := range []string{"DEVCELL_NO_SECRETS=1", "DEVCELL_NO_1PASSWORD=Yes", "DEVCELL_NO_SECRETS=on"} {
		got, notes, err := fetch(t, proctest.New(t), sources("A", "cmd:false"), variable)
		if err != nil || len(got) != 0 || len(notes) != 1 {
			t.Errorf("%s: %q, %q, %v", variable, got, notes, err)
		}
	}
	if _, _, err := fetch(t, proctest.New(t), sources("A", "env:NOWHERE"), "DEVCELL_NO_SECRETS=0"); err == nil {
		t.Error("0 must not switch secrets off")
	}
}

// effective loads a project file that is approved.
func effective(t *testing.T, text string) *cfg.Effective {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, cfg.ProjectFileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store := cfg.NewApprovalStore(filepath.Join(dir, "trust"))
	e, err := cfg.Load(cfg.Sources{ProjectDir: dir, Approvals: store})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Approve(e.Pending.Path, e.Pending.Hash); err != nil {
		t.Fatal(err)
	}
	if e, err = cfg.Load(cfg.Sources{ProjectDir: dir, Approvals: store}); err != nil {
		t.Fatal(err)
	}
	return e
}

const withSecrets = `
[secrets]
DB_PASS = "cmd:printf canary"
[env]
URL = "postgres://u:${DB_PASS}@db/${NAME}"
WHOAMI = "$(printf me)"
PLAIN = "x"
`

func TestResolveExpandsOverSecretsAndKnowsWhoHoldsThem(t *testing.T) {
	r, err := Resolve(t.Context(), ResolveInput{
		Effective: effective(t, withSecrets), Runner: proc.New(), Dir: t.TempDir(),
		Environ: []string{"NAME=n", "PATH=" + os.Getenv("PATH")}, Expand: shell.ExpandValue,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"URL": "postgres://u:canary@db/n", "WHOAMI": "me", "PLAIN": "x"}
	if !maps.Equal(r.Config.Env, want) || !slices.Equal(r.Masked, []string{"URL"}) || r.Secrets["DB_PASS"] != "canary" {
		t.Errorf("%+v", r)
	}
}

func TestShowingExecutesNothing(t *testing.T) {
	r, err := Resolve(t.Context(), ResolveInput{
		Effective: effective(t, withSecrets+`MISSING = "$NOWHERE"`), Runner: proctest.New(t), Dir: t.TempDir(),
		Environ: []string{"NAME=n"}, Expand: shell.ExpandValue, Show: true,
	})
	if err != nil || r.Secrets["DB_PASS"] != SecretMask || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "NOWHERE") {
		t.Errorf("a reference that is missing must be a note: %+v, %v", r, err)
	}
	r, err = Resolve(t.Context(), ResolveInput{
		Effective: effective(t, withSecrets), Runner: proctest.New(t), Dir: t.TempDir(),
		Environ: []string{"NAME=n"}, Expand: shell.ExpandValue, Show: true,
	})
	want := map[string]string{"URL": "postgres://u:" + SecretMask + "@db/n", "WHOAMI": "$(printf me)", "PLAIN": "x"}
	if err != nil || !maps.Equal(r.Config.Env, want) || !slices.Equal(r.Masked, []string{"URL"}) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestOpenRouterKeyIsFilledAfterSecrets(t *testing.T) {
	e := effective(t, "[llm]\nprovider = 'openrouter'\n[secrets]\nOPENROUTER_API_KEY = 'env:MY_KEY'")
	in := ResolveInput{Effective: e, Runner: proctest.New(t), Dir: "/", Environ: []string{"MY_KEY=mine", "OPENROUTER_API_KEY=host"}, Expand: shell.ExpandValue}
	if r, err := Resolve(t.Context(), in); err != nil || r.Secrets["OPENROUTER_API_KEY"] != "mine" {
		t.Errorf("%+v, %v", r, err)
	}
	in.Effective = effective(t, "[llm]\nprovider = 'openrouter'")
	if r, err := Resolve(t.Context(), in); err != nil || r.Secrets["OPENROUTER_API_KEY"] != "host" {
		t.Errorf("%+v, %v", r, err)
	}
	in.Environ = nil
	if _, err := Resolve(t.Context(), in); err == nil || !strings.Contains(err.Error(), "OPENROUTER_API_KEY") {
		t.Errorf("got %v", err)
	}
}
