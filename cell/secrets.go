package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
)

// Bounds on fetching secrets. A password manager may ask for a fingerprint, so
// the deadline leaves time for a person.
const (
	secretTimeout  = time.Minute
	maxSecretSize  = 64 << 10 // bytes
	secretsAtATime = 4
)

// Secrets are variables whose values are secret, by name.
type Secrets map[string]string

// Pairs lists the secrets as KEY=VALUE, sorted by name.
func (s Secrets) Pairs() []string {
	pairs := make([]string, 0, len(s))
	for _, name := range slices.Sorted(maps.Keys(s)) {
		pairs = append(pairs, name+"="+s[name])
	}
	return pairs
}

// SecretInput is what FetchSecrets works with.
type SecretInput struct {
	Section cfg.SecretsSection // approved, or the user's own
	Runner  proc.Runner
	Dir     string   // where the commands run; absolute
	Environ []string // of the host: env: looks here, commands get it whole
}

// FetchSecrets fetches every secret of [secrets]. It blocks on the commands that
// the section names, at most a minute in all. Values are in the result alone:
// never in an argv, a note or an error, which name secrets and their sources.
//
// A source written as NAME = "…" must give a value. The items of [secrets.
// onepassword] are a convenience: one that cannot be read is a note.
// DEVCELL_NO_SECRETS or DEVCELL_NO_1PASSWORD, set to 1, true, yes or on, switches
// all of it off.
func FetchSecrets(ctx context.Context, in SecretInput) (Secrets, []string, error) {
	if len(in.Section.Sources) == 0 && len(in.Section.OnePassword.Documents) == 0 {
		return Secrets{}, nil, nil
	}
	for _, name := range []string{"DEVCELL_NO_SECRETS", "DEVCELL_NO_1PASSWORD"} {
		if isOn(lookup(in.Environ, name)) {
			return Secrets{}, []string{name + " is set: no secret was fetched"}, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	secrets, notes := in.items(ctx)
	named, err := in.named(ctx)
	if err != nil {
		return nil, notes, err
	}
	maps.Copy(secrets, named)
	return secrets, notes, nil
}

func isOn(value string) bool {
	switch strings.ToLower(value) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// named fetches the sources, a few at a time; every failure is reported.
func (in SecretInput) named(ctx context.Context) (Secrets, error) {
	names := slices.Sorted(maps.Keys(in.Section.Sources))
	values := make([]string, len(names))
	errs := make([]error, len(names))
	var running sync.WaitGroup
	places := make(chan struct{}, secretsAtATime)
	for i, name := range names {
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			value, err := in.fetch(ctx, in.Section.Sources[name])
			switch {
			case err != nil:
			case value == "":
				err = errors.New("its source gives an empty value")
			case strings.ContainsRune(value, 0):
				err = errors.New("its value holds a NUL character, which no environment can carry")
			}
			if err != nil {
				errs[i] = fmt.Errorf("secret %s: %w", name, err)
			}
			values[i] = value
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	secrets := make(Secrets)
	for i, name := range names {
		secrets[name] = values[i]
	}
	return secrets, nil
}

func (in SecretInput) fetch(ctx context.Context, source string) (string, error) {
	if name, ok := strings.CutPrefix(source, cfg.SecretEnv); ok {
		value := lookup(in.Environ, name)
		if value == "" {
			return "", fmt.Errorf("%s is not set on the host", name)
		}
		return value, nil
	}
	if path, ok := strings.CutPrefix(source, cfg.SecretFile); ok {
		return readSecret(path)
	}
	if command, ok := strings.CutPrefix(source, cfg.SecretCommand); ok {
		return in.run(ctx, "its command", "sh", "-c", command)
	}
	if strings.HasPrefix(source, cfg.SecretOnePassword) {
		return in.run(ctx, "op read", "op", "read", "--no-newline", source)
	}
	return "", errors.New("its source is none of env:, file:, cmd: and op://")
}

func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read its file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read its file: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read its file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecretSize+1))
	if err != nil {
		return "", fmt.Errorf("read its file: %w", err)
	}
	if len(data) > maxSecretSize {
		return "", fmt.Errorf("read its file: %s holds more than %d KiB", path, maxSecretSize>>10)
	}
	return trimNewlines(string(data)), nil
}

// run returns what a command prints. Of a failed one neither stream is repeated:
// both may hold the secret.
func (in SecretInput) run(ctx context.Context, what string, argv ...string) (string, error) {
	result, err := in.Runner.Run(ctx, proc.Cmd{
		Argv:      argv,
		Dir:       in.Dir,
		Env:       in.Environ,
		Timeout:   secretTimeout,
		MaxOutput: maxSecretSize,
	})
	switch {
	case errors.Is(err, proc.ErrNotFound):
		return "", fmt.Errorf("%s is not installed", argv[0])
	case errors.Is(err, proc.ErrTimeout) || errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("%s gave no answer within %v", what, secretTimeout)
	case err != nil:
		return "", fmt.Errorf("%s could not run: %w", what, err)
	case result.ExitCode != 0:
		return "", fmt.Errorf("%s failed with status %d; run it by hand to see why", what, result.ExitCode)
	case result.Dropped > 0:
		return "", fmt.Errorf("%s printed more than %d KiB", what, maxSecretSize>>10)
	}
	return trimNewlines(string(result.Stdout)), nil
}

func trimNewlines(s string) string { return strings.TrimRight(s, "\r\n") }

// items reads the items of 1Password. Each field whose label can name a variable
// becomes one; later items win.
func (in SecretInput) items(ctx context.Context) (Secrets, []string) {
	secrets := make(Secrets)
	var notes []string
	failed := 0
	for _, name := range in.Section.OnePassword.Documents {
		fields, err := in.item(ctx, name)
		if err != nil {
			failed++
			notes = append(notes, fmt.Sprintf("1Password item %q: %v", name, err))
			continue
		}
		maps.Copy(secrets, fields)
	}
	if n := len(in.Section.OnePassword.Documents); failed > 1 && failed == n {
		notes = append(notes, fmt.Sprintf("could not read any of %d 1Password items", n))
	}
	return secrets, notes
}

func (in SecretInput) item(ctx context.Context, name string) (Secrets, error) {
	if strings.HasPrefix(name, "-") {
		return nil, errors.New("a name that begins with - would be an option of op")
	}
	text, err := in.run(ctx, "op item get", "op", "item", "get", name, "--format", "json", "--reveal", "--cache")
	if err != nil {
		return nil, err
	}
	var item struct {
		Fields []struct{ Label, Value string }
	}
	if err := json.Unmarshal([]byte(text), &item); err != nil {
		return nil, errors.New("op printed something that is not JSON") // the error itself quotes the text
	}
	secrets := make(Secrets)
	for _, f := range item.Fields {
		if f.Value != "" && syntax.ValidName(f.Label) && !strings.ContainsRune(f.Value, 0) {
			secrets[f.Label] = f.Value
		}
	}
	return secrets, nil
}
