package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"cellmux/cell/proc"
)

// Desk is what lies around the screen: the system's clipboard, the user's
// editor, the log file.
type Desk struct {
	Runner  proc.Runner
	Environ []string // KEY=VALUE, complete
	TempDir string   // private, for the text that the editor edits
	LogFile string
}

func (d Desk) getenv(name string) string {
	value := ""
	for _, pair := range d.Environ {
		if v, found := strings.CutPrefix(pair, name+"="); found {
			value = v
		}
	}
	return value
}

// clipboards are the programs that take a text from standard input, in the
// order in which they are tried, with the variable that must be set for them.
var clipboards = []struct {
	variable string
	argv     []string
}{
	{"", []string{"pbcopy"}},
	{"WAYLAND_DISPLAY", []string{"wl-copy"}},
	{"DISPLAY", []string{"xclip", "-selection", "clipboard"}},
	{"DISPLAY", []string{"xsel", "--clipboard", "--input"}},
	{"", []string{"clip.exe"}},
}

// clipboardPatience bounds a clipboard program; some stay to serve the text.
const clipboardPatience = 3 * time.Second

// ErrNoClipboard says that this system has no clipboard; the terminal's own may
// work (OSC 52).
var ErrNoClipboard = errors.New("no clipboard program was found")

// Copy puts text on the system's clipboard.
func (d Desk) Copy(ctx context.Context, text string) error {
	for _, c := range clipboards {
		if c.variable != "" && d.getenv(c.variable) == "" {
			continue
		}
		result, err := d.Runner.Run(ctx, proc.Cmd{
			Argv: c.argv, Dir: "/", Env: d.Environ, Stdin: strings.NewReader(text),
			Timeout: clipboardPatience, LeavesDaemon: true,
		})
		if errors.Is(err, proc.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("copy with %s: %w", c.argv[0], err)
		}
		if result.ExitCode != 0 {
			return fmt.Errorf("copy with %s: exit code %d", c.argv[0], result.ExitCode)
		}
		return nil
	}
	return ErrNoClipboard
}

// Edit lends the terminal to the user's editor with a text. After the
// attachment has run, saved returns what was saved and removes the file.
func (d Desk) Edit(_ context.Context, text string) (Attachment, func() (string, error), error) {
	editor := d.getenv("VISUAL")
	if editor == "" {
		editor = d.getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	file, err := os.CreateTemp(d.TempDir, "message-*.md") // 0600
	if err != nil {
		return nil, nil, fmt.Errorf("write the text for the editor: %w", err)
	}
	name := file.Name()
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("write the text for the editor: %w", err), os.Remove(name))
	}
	// EDITOR may hold arguments, as everywhere; the file's name is no part of the
	// shell's text.
	a := &attachment{command: proc.Cmd{
		Argv: []string{"sh", "-c", editor + ` "$1"`, "sh", name}, Dir: d.TempDir, Env: d.Environ,
	}}
	saved := func() (string, error) {
		content, err := os.ReadFile(name)
		return string(content), errors.Join(err, os.Remove(name))
	}
	return a, saved, nil
}

// logTail bounds how much of the log file is read from its end, in bytes.
const logTail = 256 << 10

// Log returns the newest n lines of the log file, newest last.
func (d Desk) Log(_ context.Context, n int) ([]string, error) {
	file, err := os.Open(d.LogFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	from := max(info.Size()-logTail, 0)
	content, err := io.ReadAll(io.NewSectionReader(file, from, logTail))
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	if from > 0 { // the first line is perhaps the end of one
		_, content, _ = bytes.Cut(content, []byte("\n"))
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil, nil
	}
	return lines[max(len(lines)-n, 0):], nil
}
