package agent

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDocumentationIsThatOfTheDeclarations(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "agents.md")
	if os.Getenv("CELLMUX_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(Documentation()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != Documentation() {
		t.Error("docs/agents.md is stale: run CELLMUX_UPDATE=1 go test ./engine/agent -run Documentation")
	}
}
