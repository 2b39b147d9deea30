package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestLogIsPrivateJSONLinesThatAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "cellmux.log")
	for range 2 {
		log, closer, err := OpenLog(path)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("action", "action", "open api:0")
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	if len(lines) != 2 {
		t.Fatalf("%d lines after two openings, want 2", len(lines))
	}
	for _, line := range lines {
		var entry map[string]any
		if err := json.Unmarshal(line, &entry); err != nil || entry["action"] != "open api:0" {
			t.Errorf("line %q: %v", line, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestLogKeepsOnePredecessor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cellmux.log")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), maxLog+1), 0o600); err != nil {
		t.Fatal(err)
	}
	log, closer, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("started")
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path + ".1"); err != nil || info.Size() != maxLog+1 {
		t.Errorf("the predecessor: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 1000 {
		t.Errorf("the new file: %v", err)
	}
}
