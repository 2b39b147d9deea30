//go:build linux

package docker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellmux/engine"
	"cellmux/engine/docker"
	"cellmux/engine/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func TestRealSecretsAreNowhereButInside(t *testing.T) {
	home := t.TempDir()
	putLogin(t, home, `{"token":"canary-of-the-login"}`)
	l := newLab(t, func(o *docker.Options) { o.Home = home })
	c := l.cell(nil)
	enginetest.Canaries(t, enginetest.Subject{Engine: l.engine, Cell: c}, func() map[string]string {
		all := map[string]string{"the state directory": ""}
		for _, id := range strings.Fields(l.docker("ps", "--all", "--quiet")) {
			all["docker inspect of the container "+id] = string(l.try("container", "inspect", id).Stdout)
			// A container that does not run, or is on its way out, has neither.
			all["docker logs of "+id] = string(l.try("logs", id).Stdout)
			all["docker top of "+id] = string(l.try("top", id, "-eo", "pid,args").Stdout)
		}
		for _, id := range strings.Fields(l.docker("image", "ls", "--quiet")) {
			all["docker inspect of the image "+id] = l.docker("image", "inspect", id)
		}
		all["the history of the image"] = l.docker("image", "history", "--no-trunc", testImage)
		err := filepath.WalkDir(l.o.StateDir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				content, _ := os.ReadFile(path)
				all["the state directory"] += path + string(content)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return all
	})
	login := filepath.Join(c.WorkspaceHome, ".claude/.credentials.json")
	if content, err := os.ReadFile(login); err != nil || string(content) != `{"token":"canary-of-the-login"}` {
		t.Errorf("the login inside: %q, %v", content, err)
	}
	info, err := os.Stat(login)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the login's mode is %v, %v; want 0600", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Dir(login)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory's mode is %v, %v; want 0700", info.Mode(), err)
	}
}

func putLogin(t *testing.T, home, text string) {
	t.Helper()
	dir := filepath.Join(home, ".claude")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".credentials.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The login goes in once: what is there already stays, and what the user has
// removed does not come back.
func TestRealLoginGoesInOnce(t *testing.T) {
	home := t.TempDir()
	putLogin(t, home, "login")
	l := newLab(t, func(o *docker.Options) { o.Home = home })
	c := l.cell(nil)
	inside := filepath.Join(c.WorkspaceHome, ".claude/.credentials.json")
	l.up(c)
	prepare := func(agent string) {
		t.Helper()
		if err := l.engine.PrepareAgent(l.ctx(), c, agent); err != nil {
			t.Fatal(err)
		}
	}
	prepare("codex")
	if _, err := os.Stat(inside); err == nil {
		t.Error("codex got claude's login")
	}
	prepare("claude")
	if content, _ := os.ReadFile(inside); string(content) != "login" {
		t.Errorf("the login is %q", content)
	}
	if err := os.Remove(inside); err != nil {
		t.Fatal(err)
	}
	prepare("claude")
	if _, err := os.Stat(inside); err == nil {
		t.Error("a login that the user removed came back")
	}

	other := l.cell(func(c *engine.Cell) { c.Name = "other" })
	putLogin(t, other.WorkspaceHome, "its own")
	l.up(other)
	if err := l.engine.PrepareAgent(l.ctx(), other, "claude"); err != nil {
		t.Fatal(err)
	}
	if content, _ := os.ReadFile(filepath.Join(other.WorkspaceHome, ".claude/.credentials.json")); string(content) != "its own" {
		t.Errorf("a login that was there became %q", content)
	}
}

// With a token, which is forwarded by name, ~/.claude is not even opened.
func TestRealTokenStandsInForTheLogin(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".claude/.credentials.json"), 0o700); err != nil { // reading it would fail
		t.Fatal(err)
	}
	l := newLab(t, func(o *docker.Options) {
		o.Home = home
		o.Environ = append(o.Environ, "CLAUDE_CODE_OAUTH_TOKEN=token")
	})
	c := l.cell(nil)
	l.up(c)
	if err := l.engine.PrepareAgent(l.ctx(), c, "claude"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(c.WorkspaceHome, ".claude")); err == nil {
		t.Error("something was copied")
	}
}
