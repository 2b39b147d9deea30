package cfg

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"
)

// The names of a project's file. The old one is read where the other is missing.
const (
	ProjectFileName    = "devcell.toml"
	oldProjectFileName = ".devcell.toml"
)

// ProjectFileNames are the names of a project's file, in the order in which they
// are looked for.
func ProjectFileNames() []string { return []string{ProjectFileName, oldProjectFileName} }

// maxFileSize bounds a file, in bytes: a repository may hold anything under the
// name, and reading it must stay cheap.
const maxFileSize = 256 << 10

// document is a file that was read and parsed, and no more: its values have no
// effect yet.
type document struct {
	path    string // absolute
	dir     string // where its relative paths start
	hash    string // of its bytes, hexadecimal SHA-256
	text    string
	tree    map[string]any
	lines   lineIndex
	offsets map[string]int
}

// position of a key, or of the nearest table around it that the file names.
func (d *document) position(key toml.Key) Position {
	for n := len(key); n > 0; n-- {
		if offset, ok := d.offsets[key[:n].String()]; ok {
			return d.lines.position(offset)
		}
	}
	return Position{}
}

// openGlobal opens the user's own file, which may be a link to anywhere.
func openGlobal(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// openProject opens a project's file. A link that leads out of the project is
// refused, and a named pipe does not block: the project may be hostile.
func openProject(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// readDocument reads and parses what open returns. A file that does not exist is
// nil without a problem.
func readDocument(path string, open func() (*os.File, error)) (*document, []Problem) {
	fault := func(format string, args ...any) (*document, []Problem) {
		return nil, []Problem{{File: path, Message: fmt.Sprintf(format, args...)}}
	}
	f, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return fault("cannot be opened: %v", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fault("cannot be read: %v", err)
	}
	if !info.Mode().IsRegular() {
		return fault("is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return fault("cannot be read: %v", err)
	}
	if len(data) > maxFileSize {
		return fault("holds more than %d KiB", maxFileSize>>10)
	}
	return parseDocument(path, string(data))
}

// parseDocument parses text; the problem of one that is no TOML has its place.
func parseDocument(path, text string) (*document, []Problem) {
	sum := sha256.Sum256([]byte(text))
	d := &document{path: path, dir: filepath.Dir(path), hash: hex.EncodeToString(sum[:]), text: text}
	if _, err := toml.Decode(text, &d.tree); err != nil {
		problem := Problem{File: path, Message: err.Error()}
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			// The decoder puts some errors of a text with \r\n on line 0.
			problem.Position = Position{Line: max(1, syntax.Position.Line), Col: max(1, syntax.Position.Col)}
			problem.Message = strings.TrimSuffix(syntax.Message, ".")
			if syntax.LastKey != "" {
				problem.Message += " (after the key " + syntax.LastKey + ")"
			}
		}
		return nil, []Problem{problem}
	}
	d.lines, d.offsets = newLineIndex(text), keyOffsets(text)
	return d, nil
}
