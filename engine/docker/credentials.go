package docker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cellmux/cell"
	"cellmux/engine"
)

// credentialsScript receives a file on its standard input, unless there is one.
const credentialsScript = `umask 077
[ ! -e "$HOME/.claude/.credentials.json" ] || exit 0
mkdir -p "$HOME/.claude" && cat >"$HOME/.claude/.credentials.json"`

// PrepareAgent brings claude's login into a workspace home once, as a file over
// standard input, so that it is in no argument and no layer of an image. Where
// CLAUDE_CODE_OAUTH_TOKEN is set, it is the login, and ~/.claude is not opened.
// A login that the user has removed inside is not brought back.
func (d *Docker) PrepareAgent(ctx context.Context, c engine.Cell, agent string) error {
	if known, _ := cell.KnownAgent(agent); known != "claude" || d.getenv("CLAUDE_CODE_OAUTH_TOKEN") != "" || d.o.Home == "" {
		return nil
	}
	digest := sha256.Sum256([]byte(c.WorkspaceHome))
	done := filepath.Join(d.o.StateDir, "credentials", hex.EncodeToString(digest[:8]))
	if _, err := os.Lstat(done); err == nil {
		return nil
	}
	login, err := os.ReadFile(filepath.Join(d.o.Home, ".claude", ".credentials.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the user logs in inside
	}
	if err != nil {
		return fmt.Errorf("read claude's login: %w", err)
	}
	result, err := d.runWith(ctx, slow, bytes.NewReader(login), "exec", "--interactive", "--user", d.user(c.Name),
		"--env", "HOME="+d.home(), d.containerName(c.Name), "sh", "-c", credentialsScript)
	if err := d.judge("bring claude's login into workspace "+c.Workspace, result, err); err != nil {
		return err
	}
	return d.generate(done, "")
}
