package cell

import "cellmux/cell/cfg"

// What a git identity says where no tier supplies a field.
const (
	DefaultGitName  = "DevCell"
	DefaultGitEmail = "devcell@devcell.io"
)

// GitSource names the tier that a GitIdentity came from.
type GitSource string

// The tiers, highest first.
const (
	GitSourceHostEnv   GitSource = "host env"
	GitSourceConfig    GitSource = "[git]"
	GitSourceGitConfig GitSource = "git config"
	GitSourceDefault   GitSource = "default"
)

// GitIdentity is the author and the committer that a guest commits as. No field
// of a resolved one is empty.
type GitIdentity struct {
	AuthorName     string
	AuthorEmail    string
	CommitterName  string
	CommitterEmail string
	Source         GitSource
}

// ResolveGitIdentity picks the guest's git identity. Tiers are taken whole
// (spec/cell.txt): the first one that sets anything wins, what it leaves empty
// becomes DefaultGitName or DefaultGitEmail, and a lower tier is not even
// asked. "Set" means not empty. Nil functions skip their tier.
//
//  1. the GIT_AUTHOR_* and GIT_COMMITTER_* variables of the host
//  2. [git], in which the committer defaults to the author
//  3. git config user.name and user.email, for author and committer alike
//  4. the defaults
func ResolveGitIdentity(getenv func(string) string, git cfg.GitSection, gitConfig func(string) string) GitIdentity {
	if getenv != nil {
		id := GitIdentity{
			AuthorName:     getenv("GIT_AUTHOR_NAME"),
			AuthorEmail:    getenv("GIT_AUTHOR_EMAIL"),
			CommitterName:  getenv("GIT_COMMITTER_NAME"),
			CommitterEmail: getenv("GIT_COMMITTER_EMAIL"),
			Source:         GitSourceHostEnv,
		}
		if id.anySet() {
			return id.filled()
		}
	}
	id := GitIdentity{
		AuthorName:     git.AuthorName,
		AuthorEmail:    git.AuthorEmail,
		CommitterName:  git.ResolvedCommitterName(),
		CommitterEmail: git.ResolvedCommitterEmail(),
		Source:         GitSourceConfig,
	}
	if id.anySet() {
		return id.filled()
	}
	if gitConfig != nil {
		name, email := gitConfig("user.name"), gitConfig("user.email")
		id := GitIdentity{name, email, name, email, GitSourceGitConfig}
		if id.anySet() {
			return id.filled()
		}
	}
	return GitIdentity{Source: GitSourceDefault}.filled()
}

func (id GitIdentity) anySet() bool {
	return firstSet(id.AuthorName, id.AuthorEmail, id.CommitterName, id.CommitterEmail) != ""
}

func (id GitIdentity) filled() GitIdentity {
	id.AuthorName = firstSet(id.AuthorName, DefaultGitName)
	id.AuthorEmail = firstSet(id.AuthorEmail, DefaultGitEmail)
	id.CommitterName = firstSet(id.CommitterName, DefaultGitName)
	id.CommitterEmail = firstSet(id.CommitterEmail, DefaultGitEmail)
	return id
}
