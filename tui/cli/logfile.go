package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// maxLog is the size at which a log file becomes its predecessor, in bytes; one
// predecessor is kept.
const maxLog = 4 << 20

// OpenLog opens the log file for appending, JSON lines, 0600. What it holds is
// for the user to send to somebody: no keystroke, prompt, command output or
// environment value is ever logged.
func OpenLog(path string) (*slog.Logger, io.Closer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the directory of the log: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		// Another cellmux may have just done the same: then there is nothing to
		// rename, and its file is the new one.
		if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("rotate the log: %w", err)
		}
	}
	// O_APPEND: several cellmux write whole lines to one file.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the log: %w", err)
	}
	logger := slog.New(slog.NewJSONHandler(file, nil)).With("pid", os.Getpid())
	return logger, file, nil
}
