//go:build unix

package cell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestPromptFilesAreUnreadableToASecondUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: only root can become a second user")
	}
	c := dockerCell(t)
	c.WorkspaceHome = filepath.Join(worldReadableDir(t), "main")
	if _, err := WritePromptFile(c, "x.md", "secret"); err != nil {
		t.Fatal(err)
	}
	// Readable parents, so that it is our own modes that keep the second user out.
	if err := os.Chmod(c.WorkspaceHome, 0o755); err != nil {
		t.Fatal(err)
	}
	cat := exec.Command("cat", filepath.Join(c.WorkspaceHome, ".devcell/prompts/api-2/x.md"))
	cat.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cat.CombinedOutput()
	if err == nil || strings.Contains(string(out), "secret") || !strings.Contains(string(out), "Permission denied") {
		t.Errorf("uid 65534 got %q, %v", out, err)
	}
}

// worldReadableDir is a temporary directory that every user can enter, which
// t.TempDir is not.
func worldReadableDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cellmux-prompts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
