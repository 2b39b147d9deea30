package cell

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cellmux/cell/cfg"
)

// The generated files.
const (
	BasePromptFile    = "system-prompt.md"           // replaces the agent's own prompt
	OverlayPromptFile = "additional-systemprompt.md" // container context and the append prompt
)

// promptDir is where prompt files live, below the workspace home and, through
// its mount, below the guest's. The project directory would not do: it keeps the
// host's permissions, and a guest with another uid could not enter it.
const promptDir = ".devcell/prompts"

// WritePromptFile writes content below the workspace home and returns the path
// at which the guest reads it. Files travel instead of argv because an argument
// is limited to 128 KiB on Linux and public in ps.
//
// There is one folder per app name, since the container context differs by cell
// and slot while the workspace home is shared. Folders are 0700, files 0600, and
// a reader sees the old content or the new, never a part. A guest can write its
// home, so a symbolic link there that leads out of it is refused.
func WritePromptFile(c cfg.Config, name, content string) (string, error) {
	if name == "" || name != filepath.Base(name) || name == "." || name == ".." {
		return "", fmt.Errorf("write prompt file %q: the name must be a plain file name", name)
	}
	app := c.AppName()
	if c.Cell == "" || strings.ContainsAny(c.Cell, `/\`) || strings.HasPrefix(c.Cell, ".") {
		return "", fmt.Errorf("write prompt file %s: %q is no cell name", name, c.Cell)
	}
	if !filepath.IsAbs(c.WorkspaceHome) {
		return "", fmt.Errorf("write prompt file %s: the workspace home %q is not an absolute path", name, c.WorkspaceHome)
	}
	if err := os.MkdirAll(c.WorkspaceHome, 0o700); err != nil {
		return "", fmt.Errorf("create the workspace home: %w", err)
	}
	home, err := os.OpenRoot(c.WorkspaceHome)
	if err != nil {
		return "", fmt.Errorf("open the workspace home: %w", err)
	}
	defer home.Close()
	dir := path.Join(promptDir, app)
	if err := makePrivate(home, dir); err != nil {
		return "", fmt.Errorf("create prompt dir %s: %w", filepath.Join(c.WorkspaceHome, dir), err)
	}
	file := path.Join(dir, name)
	if err := replaceFile(home, file, content); err != nil {
		return "", fmt.Errorf("write prompt file %s: %w", filepath.Join(c.WorkspaceHome, file), err)
	}
	if !c.Guest.Isolated {
		return filepath.Join(c.WorkspaceHome, filepath.FromSlash(file)), nil
	}
	return path.Join(c.Guest.Home, file), nil
}

// makePrivate creates dir below root, or narrows the one that is there.
func makePrivate(root *os.Root, dir string) error {
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := root.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm() == 0o700 {
		return nil
	}
	return root.Chmod(dir, 0o700)
}

// replaceFile replaces name in one step. Each writer has a temporary file of its
// own, so that the last of several to rename wins whole.
func replaceFile(root *os.Root, name, content string) (err error) {
	temporary := name + "." + rand.Text() + ".tmp"
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(temporary)
		}
	}()
	if _, err := f.WriteString(content); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return root.Rename(temporary, name)
}

// WriteBasePrompt writes the base prompt, verbatim, and returns the guest's path
// of it, or "" when none is configured: then no flag must be given, so that the
// agent keeps its own prompt. What an earlier launch wrote is removed then.
func WriteBasePrompt(c cfg.Config, opts ResolveOpts) (string, error) {
	text, err := ResolveSystemPrompt(opts)
	if err != nil {
		return "", err
	}
	if text == "" {
		return "", removePromptFile(c, BasePromptFile)
	}
	return WritePromptFile(c, BasePromptFile, text)
}

// WriteOverlayPrompt writes the overlay and returns the guest's path of it. It is
// never empty, so the file is always written.
func WriteOverlayPrompt(c cfg.Config, cellCfg cfg.CellConfig, opts ResolveOpts) (string, error) {
	text, err := AssembleOverlayPrompt(c, cellCfg, opts)
	if err != nil {
		return "", err
	}
	return WritePromptFile(c, OverlayPromptFile, text)
}

func removePromptFile(c cfg.Config, name string) error {
	home, err := os.OpenRoot(c.WorkspaceHome)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the workspace home: %w", err)
	}
	defer home.Close()
	err = home.Remove(path.Join(promptDir, c.AppName(), name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the prompt file of an earlier launch: %w", err)
	}
	return nil
}

// AssembleOverlayPrompt is the container context followed by the append prompt,
// which then ends in exactly one newline. The context is part of the overlay, not
// of the base, so that no base prompt can displace it.
func AssembleOverlayPrompt(c cfg.Config, cellCfg cfg.CellConfig, opts ResolveOpts) (string, error) {
	prompt, err := ResolveAppendPrompt(opts)
	if err != nil {
		return "", err
	}
	context := ContainerContext(c, cellCfg)
	prompt = strings.TrimRight(prompt, "\n")
	if prompt == "" {
		return context, nil
	}
	return context + "\n" + prompt + "\n", nil
}
