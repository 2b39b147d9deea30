//go:build unix

package enginetest_test

import (
	"testing"

	"cellmux/engine"
	"cellmux/engine/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func subject(t *testing.T) enginetest.Subject {
	return enginetest.Subject{
		Engine: enginetest.NewFake(),
		Cell: engine.Cell{
			Name: "proj", Workspace: "main", Kind: engine.Docker,
			WorkspaceHome: t.TempDir(), ProjectDir: t.TempDir(),
		},
		Path: "/usr/local/bin:/usr/bin:/bin",
	}
}

func TestConformanceOfTheFake(t *testing.T) { enginetest.Conformance(t, subject) }

func TestSecretsAreNowhereButInTheFakesGuest(t *testing.T) { enginetest.Canaries(t, subject(t), nil) }
