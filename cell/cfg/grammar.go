package cfg

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
)

// grammar is the form of a string: how it is checked and kept, and what tells two
// entries of a list apart.
type grammar struct {
	check    func(s, dir, home string) (string, error)
	identity func(s string) string
}

func grammarOf(tag reflect.StructTag) grammar {
	g := grammar{
		check:    func(s, _, _ string) (string, error) { return s, nil },
		identity: func(s string) string { return s },
	}
	switch tag.Get("grammar") {
	case "volume":
		g.check, g.identity = checkVolume, volumeIdentity
	case "port":
		g.check, g.identity = checkPort, portIdentity
	case "secret":
		g.check = checkSecret
	}
	return g
}

// isTemplate says that s holds references, and gets its form by expansion only.
func isTemplate(s string) bool { return strings.ContainsAny(s, "$`") }

func checkVolume(s, dir, home string) (string, error) {
	host, rest, split := strings.Cut(s, ":")
	if !split {
		rest = host
	}
	if host != "" && !strings.HasPrefix(host, "$") {
		host = absolute(host, dir, home)
		if !split {
			rest = host
		}
		s = host + ":" + rest
	}
	if isTemplate(s) {
		return s, nil
	}
	_, err := ParseVolume(s)
	return s, err
}

func volumeIdentity(s string) string {
	if v, err := ParseVolume(s); err == nil {
		return v.Guest
	}
	return s
}

func checkPort(s, _, _ string) (string, error) {
	if isTemplate(s) {
		return s, nil
	}
	_, err := ParsePort(s)
	return s, err
}

func portIdentity(s string) string {
	if p, err := ParsePort(s); err == nil {
		return fmt.Sprint(p.Guest, "/", p.Protocol)
	}
	return s
}

// Schemes of a secret's source.
const (
	SecretEnv         = "env:"
	SecretFile        = "file:"
	SecretCommand     = "cmd:"
	SecretOnePassword = "op://"
)

// checkSecret never repeats the value: it may be the secret itself, put there by
// mistake.
func checkSecret(s, dir, home string) (string, error) {
	for _, scheme := range []string{SecretEnv, SecretFile, SecretCommand, SecretOnePassword} {
		rest, ok := strings.CutPrefix(s, scheme)
		if !ok {
			continue
		}
		if strings.TrimSpace(rest) == "" {
			return "", fmt.Errorf("names no source after %s", scheme)
		}
		if scheme == SecretFile {
			return scheme + absolute(rest, dir, home), nil
		}
		return s, nil
	}
	return "", errors.New("is no source of a secret: write env:VARIABLE, file:PATH, cmd:COMMAND or op://VAULT/ITEM/FIELD (a value itself does not belong in this file)")
}

func checkVariableName(name string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return fmt.Errorf("%s is no name of a variable", QuoteTOML(name))
	}
	return nil
}

// absolute resolves ~ and paths relative to dir. What begins with a reference, or
// has nothing to start at, stays.
func absolute(path, dir, home string) string {
	switch {
	case home != "" && path == "~":
		return home
	case home != "" && strings.HasPrefix(path, "~/"):
		return filepath.Join(home, path[2:])
	case dir == "" || filepath.IsAbs(path) || strings.HasPrefix(path, "~") || strings.HasPrefix(path, "$"):
		return path
	}
	return filepath.Join(dir, path)
}
