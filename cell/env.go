package cell

import (
	"maps"
	"slices"
	"strings"

	"cellmux/cell/cfg"
)

// DefaultLocale is LANG and LC_ALL where neither [cell] locale nor a usable
// host LANG says otherwise.
const DefaultLocale = "en_US.UTF-8"

// EnvInput is everything that GuestEnv and HostEnv decide from. Its zero value
// is usable: nil functions read nothing.
type EnvInput struct {
	WorkspaceName string              // DEVCELL_WORKSPACE and the deprecated DEVCELL_CELL_NAME; omitted when empty
	CellName      string              // app name: CELL_NAME and the deprecated APP_NAME; omitted when empty
	ProjectDir    string              // path inside: DEVCELL_PROJECT_DIR and the deprecated WORKSPACE; omitted when empty
	Git           cfg.GitSection      // [git]
	Timezone      string              // [cell] timezone
	Locale        string              // [cell] locale
	Env           map[string]string   // [env], already expanded
	Mise          map[string]string   // [mise]
	Getenv        func(string) string // looks a host variable up
	GitConfig     func(string) string // looks a host git setting up, as HostGitConfig does
}

// GuestEnv returns the KEY=VALUE pairs that every engine hands to its guest, in
// the fixed order of spec/cell.txt. Duplicates stay: the later pair wins, for
// docker run -e and for env(1) alike, so that [env] overrides all before it.
//
// TERM is not among them: it describes the terminal, and belongs to the pane.
func GuestEnv(in EnvInput) []string {
	return in.pairs("DEVCELL_CONTAINER", "1", "IS_SANDBOX", "1")
}

// HostEnv is GuestEnv for a cell of the host engine. It leaves
// DEVCELL_CONTAINER and IS_SANDBOX out: on the host they would be false, and
// IS_SANDBOX lifts claude's refusal to skip permissions as root.
func HostEnv(in EnvInput) []string { return in.pairs() }

// pairs lists in's variables; sandbox holds the names and values that claim an
// isolated guest.
func (in EnvInput) pairs(sandbox ...string) []string {
	var env []string
	add := func(namesAndValues ...string) {
		for i := 0; i < len(namesAndValues); i += 2 {
			env = append(env, namesAndValues[i]+"="+namesAndValues[i+1])
		}
	}
	if in.CellName != "" {
		add("CELL_NAME", in.CellName, "APP_NAME", in.CellName)
	}
	if in.WorkspaceName != "" {
		add("DEVCELL_WORKSPACE", in.WorkspaceName, "DEVCELL_CELL_NAME", in.WorkspaceName)
	}
	add(sandbox...)
	if in.ProjectDir != "" {
		add("DEVCELL_PROJECT_DIR", in.ProjectDir, "WORKSPACE", in.ProjectDir)
	}
	id := ResolveGitIdentity(in.Getenv, in.Git, in.GitConfig)
	add("GIT_AUTHOR_NAME", id.AuthorName, "GIT_AUTHOR_EMAIL", id.AuthorEmail,
		"GIT_COMMITTER_NAME", id.CommitterName, "GIT_COMMITTER_EMAIL", id.CommitterEmail)
	if tz := firstSet(in.Timezone, in.host("TZ")); tz != "" {
		add("TZ", tz)
	}
	locale := in.locale()
	add("LANG", locale, "LC_ALL", locale)
	for _, key := range slices.Sorted(maps.Keys(in.Env)) {
		add(key, in.Env[key])
	}
	for _, key := range slices.Sorted(maps.Keys(in.Mise)) {
		add("MISE_"+strings.ToUpper(key), in.Mise[key])
	}
	return env
}

// locale picks LANG. C and POSIX are refused because agents draw UTF-8; C.UTF-8
// is fine.
func (in EnvInput) locale() string {
	host := in.host("LANG")
	if host == "C" || host == "POSIX" {
		host = ""
	}
	return firstSet(in.Locale, host, DefaultLocale)
}

func (in EnvInput) host(name string) string {
	if in.Getenv == nil {
		return ""
	}
	return in.Getenv(name)
}

func firstSet(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
