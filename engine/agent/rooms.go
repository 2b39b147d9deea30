package agent

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cellmux/cell/cfg"
	"cellmux/engine"
)

// roomDir is the folder of a slot's agent files below the workspace home. The
// workspace home is mounted into every guest, so the agent's hooks can write
// there and cellmux can read it without entering the guest.
const roomDir = ".devcell/agents"

// rooms are the places that cellmux and an agent share.
type rooms struct {
	config    cfg.Config
	agentHome string // host path of the home in which the agent keeps its files
	slot      string // host path of this slot's folder
	spool     string // host path: hooks and plugins write here
}

func roomsOf(in engine.AgentInput) rooms {
	slot := SlotDir(in.Config)
	home := in.Home
	if home == "" {
		home = in.Config.WorkspaceHome
	}
	return rooms{config: in.Config, agentHome: home, slot: slot, spool: filepath.Join(slot, "spool")}
}

// SlotDir is the host path of the folder that a slot's agent and cellmux share.
// It lies below the workspace home, which a guest can write.
func SlotDir(c cfg.Config) string {
	return filepath.Join(c.WorkspaceHome, filepath.FromSlash(roomDir), c.AppName())
}

// inside is the path at which the agent sees a host path below the workspace
// home.
func (r rooms) inside(host string) string {
	if !r.config.Guest.Isolated {
		return host
	}
	rel, err := filepath.Rel(r.config.WorkspaceHome, host)
	if err != nil || !filepath.IsLocal(rel) {
		return host
	}
	return path.Join(r.config.Guest.Home, filepath.ToSlash(rel))
}

// outside is the host path of a path as the agent sees it. Inside a guest only
// what lies in its home can be reached from here.
func (r rooms) outside(inside string) (string, error) {
	if !r.config.Guest.Isolated {
		if !filepath.IsAbs(inside) {
			return "", fmt.Errorf("%q is not an absolute path", inside)
		}
		return filepath.Clean(inside), nil
	}
	rel, ok := strings.CutPrefix(path.Clean(inside), path.Clean(r.config.Guest.Home)+"/")
	if !ok || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%q lies outside of the guest's home %s", inside, r.config.Guest.Home)
	}
	return filepath.Join(r.config.WorkspaceHome, filepath.FromSlash(rel)), nil
}

// projectInside is the directory in which the agent works, as it sees it.
func (r rooms) projectInside() string {
	if r.config.Guest.Isolated && r.config.Guest.ProjectDir != "" {
		return r.config.Guest.ProjectDir
	}
	return r.config.ProjectDir
}

// make creates the slot's folders, private to the user.
func (r rooms) make() error {
	if !filepath.IsAbs(r.config.WorkspaceHome) {
		return fmt.Errorf("the workspace home %q is not an absolute path", r.config.WorkspaceHome)
	}
	if app := r.config.AppName(); r.config.Cell == "" || strings.ContainsAny(app, `/\`) || strings.HasPrefix(app, ".") {
		return fmt.Errorf("%q is no name of a slot", app)
	}
	if err := os.MkdirAll(r.config.WorkspaceHome, 0o700); err != nil {
		return fmt.Errorf("create the workspace home: %w", err)
	}
	return r.makeDir(r.spool)
}

// makeDir creates a folder below the workspace home without following a link
// out of it.
func (r rooms) makeDir(host string) error {
	root, err := os.OpenRoot(r.config.WorkspaceHome)
	if err != nil {
		return fmt.Errorf("open the workspace home: %w", err)
	}
	defer root.Close()
	rel, err := filepath.Rel(r.config.WorkspaceHome, host)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(rel, 0o700); err != nil {
		return fmt.Errorf("create %s: %w", host, err)
	}
	return nil
}

// write replaces a file below the workspace home in one step, 0600. A guest can
// write there, so a symbolic link that leads out is refused.
func (r rooms) write(host string, data []byte) (err error) {
	return replaceBelow(r.config.WorkspaceHome, host, data)
}

func replaceBelow(top, host string, data []byte) (err error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return fmt.Errorf("open %s: %w", top, err)
	}
	defer root.Close()
	rel, err := filepath.Rel(top, host)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(rel), 0o700); err != nil {
		return fmt.Errorf("create %s: %w", filepath.Dir(host), err)
	}
	temporary := rel + "." + rand.Text() + ".tmp"
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", host, err)
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = root.Rename(temporary, rel)
	}
	if err != nil {
		_ = root.Remove(temporary)
		return fmt.Errorf("write %s: %w", host, err)
	}
	return nil
}

// maxFile bounds what is read of a file that a guest or an agent wrote.
const maxFile = 1 << 20

// errTooLarge is a file that is larger than anything an agent writes there.
var errTooLarge = errors.New("the file is too large")

// readSmall reads a regular file of bounded size below top, following no link
// out of it. Anything else is an error.
func readSmall(top, host string) ([]byte, fs.FileInfo, error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	rel, err := filepath.Rel(top, host)
	if err != nil {
		return nil, nil, err
	}
	// A named pipe in a guest's home must not block its reader.
	info, err := root.Stat(rel)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file", host)
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxFile {
		return nil, nil, errTooLarge
	}
	return data, info, nil
}

// readJSON reads a small JSON file into v.
func readJSON(top, host string, v any) (fs.FileInfo, error) {
	data, info, err := readSmall(top, host)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return nil, err
	}
	return info, nil
}
