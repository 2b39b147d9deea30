package cell

import (
	"slices"
	"strings"
	"testing"

	"cellmux/cell/cfg"
)

func getenv(pairs ...string) func(string) string {
	return func(name string) string { return lookup(pairs, name) }
}

func TestGuestEnvHasTheFixedOrder(t *testing.T) {
	got := GuestEnv(EnvInput{
		WorkspaceName: "work", CellName: "api-3", ProjectDir: "/src/api",
		Git:      cfg.GitSection{AuthorName: "Ada", AuthorEmail: "ada@example.org"},
		Timezone: "Europe/Prague", Locale: "cs_CZ.UTF-8",
		Env:  map[string]string{"ZED": "1", "EMPTY": "", "TZ": "UTC"},
		Mise: map[string]string{"node_version": "22", "go-flags": "x"},
	})
	want := []string{
		"CELL_NAME=api-3", "APP_NAME=api-3", "DEVCELL_WORKSPACE=work", "DEVCELL_CELL_NAME=work",
		"DEVCELL_CONTAINER=1", "IS_SANDBOX=1", "DEVCELL_PROJECT_DIR=/src/api", "WORKSPACE=/src/api",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
		"TZ=Europe/Prague", "LANG=cs_CZ.UTF-8", "LC_ALL=cs_CZ.UTF-8",
		"EMPTY=", "TZ=UTC", "ZED=1",
		"MISE_GO-FLAGS=x", "MISE_NODE_VERSION=22",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestGuestEnvOfNothingHoldsTheDefaultsAlone(t *testing.T) {
	want := []string{
		"DEVCELL_CONTAINER=1", "IS_SANDBOX=1",
		"GIT_AUTHOR_NAME=DevCell", "GIT_AUTHOR_EMAIL=devcell@devcell.io",
		"GIT_COMMITTER_NAME=DevCell", "GIT_COMMITTER_EMAIL=devcell@devcell.io",
		"LANG=en_US.UTF-8", "LC_ALL=en_US.UTF-8",
	}
	if got := GuestEnv(EnvInput{}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHostEnvClaimsNoSandbox(t *testing.T) {
	in := EnvInput{WorkspaceName: "w", CellName: "c-0", ProjectDir: "/p"}
	var want []string
	for _, pair := range GuestEnv(in) {
		if pair != "DEVCELL_CONTAINER=1" && pair != "IS_SANDBOX=1" {
			want = append(want, pair)
		}
	}
	if got := HostEnv(in); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimezoneAndLocaleTiers(t *testing.T) {
	for _, tt := range []struct {
		name             string
		timezone, locale string
		host             []string
		want             []string
	}{
		{"config wins", "UTC", "de_DE.UTF-8", []string{"TZ=Asia/Tokyo", "LANG=ja_JP.UTF-8"}, []string{"TZ=UTC", "LANG=de_DE.UTF-8", "LC_ALL=de_DE.UTF-8"}},
		{"host comes next", "", "", []string{"TZ=Asia/Tokyo", "LANG=ja_JP.UTF-8"}, []string{"TZ=Asia/Tokyo", "LANG=ja_JP.UTF-8", "LC_ALL=ja_JP.UTF-8"}},
		{"LANG=C is no locale", "", "", []string{"LANG=C"}, []string{"LANG=en_US.UTF-8", "LC_ALL=en_US.UTF-8"}},
		{"LANG=POSIX is no locale", "", "", []string{"LANG=POSIX"}, []string{"LANG=en_US.UTF-8", "LC_ALL=en_US.UTF-8"}},
		{"C.UTF-8 passes", "", "", []string{"LANG=C.UTF-8"}, []string{"LANG=C.UTF-8", "LC_ALL=C.UTF-8"}},
		{"host LC_ALL is ignored", "", "", []string{"LC_ALL=fr_FR.UTF-8"}, []string{"LANG=en_US.UTF-8", "LC_ALL=en_US.UTF-8"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := GuestEnv(EnvInput{Timezone: tt.timezone, Locale: tt.locale, Getenv: getenv(tt.host...)})
			got := slices.DeleteFunc(env, func(pair string) bool {
				return !strings.HasPrefix(pair, "TZ=") && !strings.HasPrefix(pair, "L")
			})
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
