package cell

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cellmux/cell/cfg"
)

func dockerCell(t *testing.T) cfg.Config {
	return cfg.Config{
		Workspace: "main", WorkspaceHome: t.TempDir(), Cell: "api", Slot: 2,
		ProjectDir: "/home/ada/src/api", Engine: "docker", HostUser: "ada",
		Guest: cfg.Guest{
			Isolated: true, Kind: "Docker container", Hostname: "cell-api", Home: "/home/ada", ProjectDir: "/home/ada/src/api",
			Mounts: []cfg.Mount{{Host: "/home/ada/src/api", Guest: "/home/ada/src/api"}, {Host: "/data", Guest: "/data", ReadOnly: true, Note: "from devcell.toml"}},
			Git:    cfg.GitReadOnly, Limits: []string{"4 GiB of memory"},
		},
	}
}

func hostCell(t *testing.T) cfg.Config {
	c := dockerCell(t)
	c.Engine = "host"
	c.Guest = cfg.Guest{Home: "/home/ada", ProjectDir: c.ProjectDir, Git: cfg.GitReadWrite}
	return c
}

func TestWritePromptFileReturnsThePathOfTheGuest(t *testing.T) {
	c := dockerCell(t)
	got, err := WritePromptFile(c, "x.md", "text")
	if err != nil || got != "/home/ada/.devcell/prompts/api-2/x.md" {
		t.Errorf("docker: %q, %v", got, err)
	}
	onHost := filepath.Join(c.WorkspaceHome, ".devcell/prompts/api-2/x.md")
	if text, err := os.ReadFile(onHost); err != nil || string(text) != "text" {
		t.Errorf("content %q, %v", text, err)
	}
	h := hostCell(t)
	want := filepath.Join(h.WorkspaceHome, ".devcell/prompts/api-2/x.md")
	if got, err := WritePromptFile(h, "x.md", "text"); err != nil || got != want {
		t.Errorf("host: %q, %v; want %q", got, err, want)
	}
}

func TestPromptFilesArePrivate(t *testing.T) {
	c := dockerCell(t)
	dir := filepath.Join(c.WorkspaceHome, ".devcell/prompts/api-2")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := WritePromptFile(c, "x.md", "secret"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, "x.md"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

func TestPromptFilesOfTwoCellsDoNotCollide(t *testing.T) {
	a := dockerCell(t)
	b := a
	b.Cell = "api-2" // the same project, opened as a second cell
	pathA, errA := WriteOverlayPrompt(a, cfg.CellConfig{}, ResolveOpts{AppendFlagInline: "for a"})
	pathB, errB := WriteOverlayPrompt(b, cfg.CellConfig{}, ResolveOpts{AppendFlagInline: "for b"})
	if errA != nil || errB != nil || pathA == pathB {
		t.Fatalf("%q %v, %q %v", pathA, errA, pathB, errB)
	}
	text, err := os.ReadFile(filepath.Join(a.WorkspaceHome, ".devcell/prompts/api-2", OverlayPromptFile))
	if err != nil || !strings.HasSuffix(string(text), "\nfor a\n") {
		t.Errorf("cell a reads %q, %v", text, err)
	}
}

func TestPromptFileSurvivesFiftyWritersAtOnce(t *testing.T) {
	c := dockerCell(t)
	full := func(i int) string { return strings.Repeat(fmt.Sprintf("writer %02d\n", i), 5000) }
	var writers sync.WaitGroup
	for i := range 50 {
		writers.Go(func() {
			if _, err := WritePromptFile(c, "x.md", full(i)); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	dir := filepath.Join(c.WorkspaceHome, ".devcell/prompts/api-2")
	text, err := os.ReadFile(filepath.Join(dir, "x.md"))
	if err != nil {
		t.Fatal(err)
	}
	var last int
	if _, err := fmt.Sscanf(string(text), "writer %d", &last); err != nil || string(text) != full(last) {
		t.Errorf("the file is not the whole work of one writer: %d bytes, %v", len(text), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("temporary files are left: %v, %v", entries, err)
	}
}

func TestPromptFileIsNotWrittenThroughALinkOutOfTheHome(t *testing.T) {
	outside := t.TempDir()
	for name, link := range map[string]string{"folder": ".devcell", "app folder": ".devcell/prompts/api-2"} {
		t.Run(name, func(t *testing.T) {
			c := dockerCell(t)
			at := filepath.Join(c.WorkspaceHome, link)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, at); err != nil {
				t.Fatal(err)
			}
			if _, err := WritePromptFile(c, "x.md", "text"); err == nil {
				t.Error("want an error")
			}
			if entries, _ := os.ReadDir(outside); len(entries) != 0 {
				t.Errorf("written outside: %v", entries)
			}
		})
	}
	c := dockerCell(t)
	victim := filepath.Join(outside, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(c.WorkspaceHome, ".devcell/prompts/api-2")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "x.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := WritePromptFile(c, "x.md", "text"); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(victim); string(text) != "mine" {
		t.Errorf("the link's target became %q", text)
	}
}

func TestPromptFileNamesStayInsideTheirFolder(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc/passwd"} {
		if _, err := WritePromptFile(dockerCell(t), name, ""); err == nil {
			t.Errorf("name %q was taken", name)
		}
	}
	for _, cell := range []string{"", "..", "../x", "a/b"} {
		c := dockerCell(t)
		c.Cell = cell
		if _, err := WritePromptFile(c, "x.md", ""); err == nil {
			t.Errorf("cell %q was taken", cell)
		}
	}
}

func TestBasePromptIsVerbatimOrAbsent(t *testing.T) {
	c := dockerCell(t)
	file := filepath.Join(c.WorkspaceHome, ".devcell/prompts/api-2", BasePromptFile)
	path, err := WriteBasePrompt(c, ResolveOpts{FlagInline: "x"})
	if err != nil || path != "/home/ada/.devcell/prompts/api-2/system-prompt.md" {
		t.Errorf("%q, %v", path, err)
	}
	if text, _ := os.ReadFile(file); string(text) != "x" {
		t.Errorf("base file holds %q", text)
	}
	if path, err := WriteBasePrompt(c, ResolveOpts{}); err != nil || path != "" {
		t.Errorf("unconfigured: %q, %v", path, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the base prompt of an earlier launch is still there")
	}
}

func TestOverlayIsContextThenPrompt(t *testing.T) {
	c := dockerCell(t)
	context := ContainerContext(c, cfg.CellConfig{})
	for prompt, want := range map[string]string{
		"":             context,
		"be terse":     context + "\nbe terse\n",
		"be terse\n\n": context + "\nbe terse\n",
	} {
		if got, err := AssembleOverlayPrompt(c, cfg.CellConfig{}, ResolveOpts{AppendFlagInline: prompt}); err != nil || got != want {
			t.Errorf("%q gives %q, %v", prompt, got, err)
		}
	}
}
