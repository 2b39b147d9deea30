package cell

import (
	"testing"

	"cellmux/cell/cfg"
)

func TestGitIdentityTiersAreTakenWhole(t *testing.T) {
	full := cfg.GitSection{AuthorName: "A", AuthorEmail: "a@x", CommitterName: "C", CommitterEmail: "c@x"}
	settings := func(key string) string {
		return map[string]string{"user.name": "Grace", "user.email": "grace@x"}[key]
	}
	for _, tt := range []struct {
		name string
		host []string
		git  cfg.GitSection
		conf func(string) string
		want GitIdentity
	}{
		{"host env fills its holes with defaults, not from [git]", []string{"GIT_AUTHOR_NAME=Ada"}, full, settings,
			GitIdentity{"Ada", DefaultGitEmail, DefaultGitName, DefaultGitEmail, GitSourceHostEnv}},
		{"an empty host variable sets nothing", []string{"GIT_AUTHOR_NAME="}, full, settings,
			GitIdentity{"A", "a@x", "C", "c@x", GitSourceConfig}},
		{"[git] copies the author to the committer", nil, cfg.GitSection{AuthorEmail: "x"}, settings,
			GitIdentity{DefaultGitName, "x", DefaultGitName, "x", GitSourceConfig}},
		{"[git] does not copy the committer to the author", nil, cfg.GitSection{CommitterName: "C"}, settings,
			GitIdentity{DefaultGitName, DefaultGitEmail, "C", DefaultGitEmail, GitSourceConfig}},
		{"git config serves both roles", nil, cfg.GitSection{}, settings,
			GitIdentity{"Grace", "grace@x", "Grace", "grace@x", GitSourceGitConfig}},
		{"nothing anywhere", nil, cfg.GitSection{}, func(string) string { return "" },
			GitIdentity{DefaultGitName, DefaultGitEmail, DefaultGitName, DefaultGitEmail, GitSourceDefault}},
		{"nil functions", nil, cfg.GitSection{}, nil,
			GitIdentity{DefaultGitName, DefaultGitEmail, DefaultGitName, DefaultGitEmail, GitSourceDefault}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ResolveGitIdentity(getenv(tt.host...), tt.git, tt.conf); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestGitConfigIsNotAskedWhenAHigherTierWins(t *testing.T) {
	calls := 0
	count := func(string) string { calls++; return "x" }
	ResolveGitIdentity(getenv("GIT_COMMITTER_EMAIL=x"), cfg.GitSection{}, count)
	ResolveGitIdentity(nil, cfg.GitSection{CommitterName: "x"}, count)
	if calls != 0 {
		t.Errorf("git config was asked %d times", calls)
	}
}
