package engine

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellmux/cell/proc"
)

// A tmux pane inherits the environment of the tmux server, and what rides in
// new-session -e stays in ps for the server's life. So neither carries a value:
// a pane's command is "cellmux __pane FILE", and everything else is in FILE,
// which exists from the launch until the pane has read it.

// HandoffArgument is the hidden command of cellmux that runs a hand-off file.
const HandoffArgument = "__pane"

// HandoffMaxAge is how long a hand-off file may wait for its pane. An older one
// belongs to a pane that never came; CleanHandoffs removes it.
const HandoffMaxAge = 5 * time.Minute

// maxHandoff bounds a hand-off file, in bytes. Linux refuses argument lists and
// environments above 6 MiB; base64 in JSON adds a third.
const maxHandoff = 16 << 20

const handoffSuffix = ".launch"

// paneVariables describe the terminal that a program finds itself in. They are
// the pane's own and cannot be known when the launch is written.
var paneVariables = []string{"TERM", "TMUX", "TMUX_PANE"}

// handoffFile is the content of a hand-off file. Its words are bytes, since an
// argument or a variable need not be UTF-8, which JSON strings are.
type handoffFile struct {
	Version int      `json:"version"`
	Argv    [][]byte `json:"argv"`
	Dir     []byte   `json:"dir"`
	Env     [][]byte `json:"env"`
}

func toBytes(words []string) [][]byte {
	all := make([][]byte, len(words))
	for i, w := range words {
		all[i] = []byte(w)
	}
	return all
}

func toStrings(words [][]byte) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

const handoffVersion = 1

// RuntimeDir returns the directory for sockets and hand-off files:
// $XDG_RUNTIME_DIR/cellmux, else a directory of this user's own below the
// temporary directory. It creates it with mode 0700, and refuses one that is a
// symbolic link, is not ours, or that others may enter.
func RuntimeDir(getenv func(string) string) (string, error) {
	dir := filepath.Join(os.TempDir(), "cellmux-"+strconv.Itoa(os.Getuid()))
	if xdg := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(xdg) {
		if info, err := os.Stat(xdg); err == nil && info.IsDir() {
			dir = filepath.Join(xdg, "cellmux")
		}
	}
	if err := privateDir(dir); err != nil {
		return "", fmt.Errorf("runtime directory: %w", err)
	}
	return dir, nil
}

// privateDir creates dir with mode 0700 or checks that the one that is there is
// private. It never widens or narrows a directory that somebody else made.
func privateDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory: remove it", dir)
	}
	return checkPrivate(dir, info)
}

// WriteHandoff writes a launch to a new file in dir, which must be private
// (RuntimeDir), and returns its path. The file has mode 0600 and is complete
// when it has its name.
func WriteHandoff(dir string, l Launch) (path string, err error) {
	if len(l.Argv) == 0 {
		return "", errors.New("write a launch: it has no program")
	}
	content, err := json.Marshal(handoffFile{handoffVersion, toBytes(l.Argv), []byte(l.Dir), toBytes(l.Env)})
	if err != nil {
		return "", fmt.Errorf("write a launch: %w", err)
	}
	for _, word := range slices.Concat(l.Argv, l.Env, []string{l.Dir}) {
		if strings.ContainsRune(word, 0) {
			return "", errors.New("write a launch: an argument or a variable holds a zero byte, which no program can receive")
		}
	}
	path = filepath.Join(dir, rand.Text()+handoffSuffix)
	temporary := path + ".tmp"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("write a launch: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("write a launch: %w", err)
	}
	if err = os.Rename(temporary, path); err != nil {
		return "", fmt.Errorf("write a launch: %w", err)
	}
	return path, nil
}

// HandoffCommand is the argv of a pane that runs the hand-off file at path; self
// is the path of the cellmux program. It holds no value of the launch.
func HandoffCommand(self, path string) []string { return []string{self, HandoffArgument, path} }

// CleanHandoffs removes hand-off files in dir that are older than HandoffMaxAge
// at the time now. Files of other names stay.
func CleanHandoffs(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("clean up launch files: %w", err)
	}
	var all error
	for _, entry := range entries {
		if !strings.HasSuffix(strings.TrimSuffix(entry.Name(), ".tmp"), handoffSuffix) {
			continue
		}
		info, err := entry.Info()
		if err != nil || now.Sub(info.ModTime()) <= HandoffMaxAge {
			continue // its pane took it meanwhile, or may still
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			all = errors.Join(all, fmt.Errorf("clean up launch files: %w", err))
		}
	}
	return all
}

// HandoffError is why a hand-off did not become its program. Code is the exit
// status that a shell would give: 127 for a program that is missing, else 126.
type HandoffError struct {
	Code int
	Err  error
}

func (e *HandoffError) Error() string { return e.Err.Error() }
func (e *HandoffError) Unwrap() error { return e.Err }

// RunHandoff replaces this process by the launch in the file at path: it reads
// and removes the file, enters the directory, and executes the program with the
// launch's environment and the terminal's own variables, which it takes from
// getenv, and nothing else. A file that is not ours, or that others can read, is
// refused. It returns only on failure.
func RunHandoff(path string, getenv func(string) string) *HandoffError {
	launch, err := takeHandoff(path)
	if err != nil {
		return &HandoffError{126, err}
	}
	if launch.Dir != "" {
		if err := os.Chdir(launch.Dir); err != nil {
			return &HandoffError{126, fmt.Errorf("cannot enter the directory of this pane: %w", err)}
		}
	}
	env := handoffEnv(launch.Env, getenv)
	withProcess(env, os.Getpid()) // it stays what it is through the exec
	program, err := proc.LookPath(launch.Argv[0], env)
	if err != nil {
		code := 126
		if errors.Is(err, proc.ErrNotFound) {
			code = 127
		}
		return &HandoffError{code, fmt.Errorf("cannot start this pane's program: %w", err)}
	}
	return &HandoffError{126, fmt.Errorf("cannot start %s: %w", program, execute(program, launch.Argv, env))}
}

// handoffEnv is env with the terminal's own variables, which win over values
// that env may hold: env was computed where there was another terminal or none.
func handoffEnv(env []string, getenv func(string) string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(paneVariables, name)
	})
	for _, name := range paneVariables {
		if value := getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// takeHandoff reads a hand-off file and removes it, whatever it holds: one that
// was refused once must not lie around with its values.
func takeHandoff(path string) (Launch, error) {
	f, err := openNoFollow(path)
	if errors.Is(err, os.ErrNotExist) {
		return Launch{}, fmt.Errorf("the launch file of this pane is gone (it is read once); restart the slot from cellmux")
	}
	if err != nil {
		return Launch{}, fmt.Errorf("open the launch file of this pane: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return Launch{}, fmt.Errorf("look at the launch file of this pane: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Launch{}, fmt.Errorf("%s is not a launch file", path)
	}
	if err := checkPrivate(path, info); err != nil {
		return Launch{}, fmt.Errorf("refused launch file: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return Launch{}, fmt.Errorf("remove the launch file of this pane: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxHandoff+1))
	if err != nil {
		return Launch{}, fmt.Errorf("read the launch file of this pane: %w", err)
	}
	if len(content) > maxHandoff {
		return Launch{}, fmt.Errorf("the launch file of this pane holds more than %d MiB", maxHandoff>>20)
	}
	var file handoffFile
	if err := json.Unmarshal(content, &file); err != nil {
		// The error of package json may quote content, and content holds secrets.
		return Launch{}, errors.New("the launch file of this pane is damaged; restart the slot from cellmux")
	}
	if file.Version != handoffVersion || len(file.Argv) == 0 {
		return Launch{}, errors.New("the launch file of this pane is of another cellmux; restart the slot from cellmux")
	}
	return Launch{Argv: toStrings(file.Argv), Dir: string(file.Dir), Env: toStrings(file.Env)}, nil
}
