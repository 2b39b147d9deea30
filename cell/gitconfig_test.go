package cell

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cellmux/cell/proc"
)

func TestGitConfigInReadsRealSettings(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git: " + err.Error())
	}
	home, here := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = Ada\n\temail = ada@x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	init := exec.Command("git", "init", "-q", here)
	init.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := os.OpenFile(filepath.Join(here, ".git/config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("[user]\n\temail = work@x\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	lookup := GitConfigIn(t.Context(), proc.New(), here, append(init.Env, "GIT_DIR=/nowhere", "GIT_CONFIG_NOSYSTEM=1"))
	for key, want := range map[string]string{"user.name": "Ada", "user.email": "work@x", "user.signingkey": "", "no such key": ""} {
		if got := lookup(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	missing := GitConfigIn(t.Context(), proc.New(), here, []string{"PATH=/nowhere"})
	if got := missing("user.name"); got != "" {
		t.Errorf("without git: %q", got)
	}
}
