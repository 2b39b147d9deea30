package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runInstaller runs .ci/install on a machine that has only the given programs;
// each of them prints its name and arguments.
func runInstaller(t *testing.T, uid string, programs []string, needs ...string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	for _, name := range programs {
		double := "#!/bin/sh\necho ran: " + name + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(double), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "id"), []byte("#!/bin/sh\necho "+uid+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sed", "sh"} {
		real, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(sh, append([]string{filepath.Join(".ci", "install")}, needs...)...)
	cmd.Env = []string{"PATH=" + bin}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestInstallerChoosesThePackageManager(t *testing.T) {
	tests := []struct{ manager, want string }{
		{"apt-get", "ran: apt-get install -y --no-install-recommends tmux"},
		{"dnf", "ran: dnf install -y tmux"},
		{"pacman", "ran: pacman -S --noconfirm --needed tmux"},
		{"apk", "ran: apk add tmux"},
		{"brew", "ran: brew install tmux"},
	}
	for _, tt := range tests {
		t.Run(tt.manager, func(t *testing.T) {
			out, err := runInstaller(t, "0", []string{tt.manager}, "tmux")
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			said, did, found := strings.Cut(out, "\n")
			if !found || strings.TrimSpace(did) != tt.want {
				t.Errorf("did %q, want %q", did, tt.want)
			}
			if command := strings.TrimPrefix(tt.want, "ran: "); !strings.Contains(said, command) {
				t.Errorf("said %q before it acted, want the command %q in it", said, command)
			}
		})
	}
}

func TestInstallerDoesNothingWhenNothingIsMissing(t *testing.T) {
	out, err := runInstaller(t, "0", []string{"apt-get", "tmux"}, "tmux")
	if err != nil || out != "" {
		t.Errorf("got %q, %v; want no word and no error", out, err)
	}
}

func TestInstallerWithoutRootAndTerminalStopsWithTheCommand(t *testing.T) {
	out, err := runInstaller(t, "1000", []string{"apt-get", "sudo"}, "tmux")
	if err == nil {
		t.Error("it exited with 0")
	}
	if !strings.Contains(out, "sudo apt-get install -y --no-install-recommends tmux") {
		t.Errorf("it does not say what to type: %q", out)
	}
	if strings.Contains(out, "ran:") {
		t.Errorf("it ran something: %q", out)
	}
}

func TestInstallerWithoutAPackageManagerSaysSo(t *testing.T) {
	out, err := runInstaller(t, "0", nil, "tmux")
	if err == nil || !strings.Contains(out, "tmux") || !strings.Contains(out, "by hand") {
		t.Errorf("got %q, %v; want a sentence with a next step", out, err)
	}
}

func TestInstallerKnowsPackagesThatDifferFromTheirProgram(t *testing.T) {
	tests := []struct{ manager, program, want string }{
		{"apt-get", "cc", "gcc libc6-dev"},
		{"apk", "cc", "gcc musl-dev"},
		{"apt-get", "docker", "docker.io"},
		{"brew", "npm", "node"},
	}
	for _, tt := range tests {
		out, err := runInstaller(t, "0", []string{tt.manager}, tt.program)
		if err == nil && strings.HasSuffix(strings.TrimSpace(out), tt.want) {
			continue
		}
		t.Errorf("%s for %s: got %q, %v; want %q", tt.manager, tt.program, out, err, tt.want)
	}
}
