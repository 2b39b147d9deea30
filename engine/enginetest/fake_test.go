//go:build unix

package enginetest_test

import (
	"testing"

	"cellmux/engine"
	"cellmux/engine/enginetest"
)

func TestConformanceOfTheFake(t *testing.T) {
	enginetest.Conformance(t, func(t *testing.T) enginetest.Subject {
		return enginetest.Subject{
			Engine: enginetest.NewFake(),
			Cell: engine.Cell{
				Name: "proj", Workspace: "main", Kind: engine.Docker,
				WorkspaceHome: t.TempDir(), ProjectDir: t.TempDir(),
			},
			Path: "/usr/local/bin:/usr/bin:/bin",
		}
	})
}
