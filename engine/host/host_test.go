//go:build unix

package host_test

import (
	"testing"

	"cellmux/engine"
	"cellmux/engine/enginetest"
	"cellmux/engine/host"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func subject(t *testing.T) enginetest.Subject {
	return enginetest.Subject{
		Engine: host.New(host.Options{Home: t.TempDir(), Hostname: "this-machine"}),
		Cell: engine.Cell{
			Name: "proj", Workspace: "main", Kind: engine.Host,
			WorkspaceHome: t.TempDir(), ProjectDir: t.TempDir(),
		},
		Path: "/usr/local/bin:/usr/bin:/bin",
	}
}

func TestConformance(t *testing.T) { enginetest.Conformance(t, subject) }

func TestSecretsAreNowhereButInside(t *testing.T) { enginetest.Canaries(t, subject(t), nil) }

// The host is not isolated, and must never be described as if it were.
func TestGuestIsNotIsolated(t *testing.T) {
	h := host.New(host.Options{Home: "/home/ada", Hostname: "desk"})
	g := h.Guest(engine.Cell{ProjectDir: "/src/api"})
	if g.Isolated || g.Home != "/home/ada" || g.ProjectDir != "/src/api" || len(g.Mounts) != 0 {
		t.Errorf("Guest = %+v", g)
	}
}
