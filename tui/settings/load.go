// Package settings reads config.toml: how the screen behaves.
//
// The rule it keeps: a setting that is wrong is an error with its file, line and
// column, and what would be right; it is never half applied and never guessed.
package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"cellmux/cell/cfg"
)

// maxFile bounds what is read, in bytes.
const maxFile = 1 << 20

// Load reads the file at path. A file that is not there gives the defaults. The
// error is a *cfg.Error with every fault of the file.
func Load(path string) (Settings, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{}, nil
	}
	if err != nil {
		return Settings{}, fmt.Errorf("read the settings: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return Settings{}, fmt.Errorf("read the settings: %s is no file of at most 1 MiB", path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return Settings{}, fmt.Errorf("read the settings: %w", err)
	}
	return Parse(path, string(content))
}

// Parse reads the text of the file called name.
func Parse(name, text string) (Settings, error) {
	var s Settings
	faults := &faults{file: name}
	meta, err := toml.Decode(text, &s)
	if err != nil {
		faults.decoding(text, err)
		return Settings{}, faults.err()
	}
	faults.places = cfg.KeyPositions(text)
	for _, key := range meta.Undecoded() {
		if _, parentToo := faults.unknown[parent(key)]; parentToo {
			continue // a table that nobody knows is one fault, not one for each key
		}
		faults.add(key, "unknown setting%s", suggestion(key))
	}
	s.check(faults)
	if err := faults.err(); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// check looks at what the types alone do not say.
func (s Settings) check(f *faults) {
	checkValues(f, toml.Key{"screen"}, s.Screen)
	for name, c := range s.Agents.Custom {
		at := toml.Key{"agents", "custom", name}
		if len(c.Command) == 0 || c.Command[0] == "" {
			f.add(at, "needs a command: a program and its arguments")
		}
		if c.Headless != nil && (len(c.Headless) == 0 || c.Headless[0] == "") {
			f.add(append(slices.Clone(at), "headless"), "needs a program and its arguments")
		}
		if slices.Contains(c.Interrupt, "") {
			f.add(append(slices.Clone(at), "interrupt"), "an empty key; tmux's names are Escape, C-c, …")
		}
		if c.Settle != "" {
			if d, err := time.ParseDuration(c.Settle); err != nil || d < 0 {
				f.add(append(slices.Clone(at), "settle"), `%q is no duration: write "300ms" or "1s"`, c.Settle)
			}
		}
		for key, expression := range map[string]string{"ready": c.Ready, "busy": c.Busy, "asking": c.Asking} {
			if _, err := regexp.Compile(expression); err != nil {
				f.add(append(slices.Clone(at), key), "%v", err)
			}
		}
		if !agentName.MatchString(name) {
			f.add(at, "the name of an agent is of a-z, 0-9 and dashes")
		}
	}
	if s.Tmux.History < 0 {
		f.add(toml.Key{"tmux", "history"}, "%d is negative", s.Tmux.History)
	}
	if strings.ContainsAny(s.Tmux.Socket, "/\x00") {
		f.add(toml.Key{"tmux", "socket"}, "%q is a name for tmux -L, not a path", s.Tmux.Socket)
	}
	for key, keys := range s.Keys {
		if slices.Contains(keys, "") {
			f.add(toml.Key{"keys", key}, "an empty key; an empty list takes the binding away")
		}
	}
}

var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// checkValues checks the fields of a section that take one of several words.
func checkValues(f *faults, section toml.Key, v any) {
	value := reflect.ValueOf(v)
	for i := range value.NumField() {
		field := value.Type().Field(i)
		words := strings.Split(field.Tag.Get("values"), ",")
		if word := value.Field(i); field.Tag.Get("values") != "" && word.String() != "" && !slices.Contains(words, word.String()) {
			f.add(append(slices.Clone(section), field.Tag.Get("toml")), "%q is none of %s", word, strings.Join(words, ", "))
		}
	}
}

// faults gathers what is wrong with one file.
type faults struct {
	file    string
	places  map[string]cfg.Position
	unknown map[string]bool
	found   []cfg.Problem
}

func (f *faults) add(key toml.Key, format string, args ...any) {
	if f.unknown == nil {
		f.unknown = map[string]bool{}
	}
	f.unknown[key.String()] = true
	f.found = append(f.found, cfg.Problem{
		File: f.file, Position: f.places[key.String()], Key: key.String(), Message: fmt.Sprintf(format, args...),
	})
}

// lastKey is how the decoder names the key of a value with a wrong type; it
// gives a place for faults of syntax alone.
var lastKey = regexp.MustCompile(`^toml: line (\d+) \(last key "(.*)"\): `)

func (f *faults) decoding(text string, err error) {
	var syntax toml.ParseError
	if errors.As(err, &syntax) {
		f.found = append(f.found, cfg.Problem{
			File: f.file, Position: place(text, syntax.Position.Start), Message: syntax.Message,
		})
		return
	}
	problem := cfg.Problem{File: f.file, Message: err.Error()}
	if found := lastKey.FindStringSubmatch(err.Error()); found != nil {
		problem.Key = found[2]
		problem.Position = cfg.KeyPositions(text)[problem.Key]
		problem.Message = strings.TrimPrefix(err.Error(), found[0])
	}
	f.found = append(f.found, problem)
}

// place turns an offset in bytes into a line and a column. (The decoder's own
// line is one too far where it stumbles over the end of a line.)
func place(text string, offset int) cfg.Position {
	before := text[:min(offset, len(text))]
	line := strings.LastIndexByte(before, '\n') + 1
	return cfg.Position{Line: strings.Count(before, "\n") + 1, Col: utf8.RuneCountInString(before[line:]) + 1}
}

func (f *faults) err() error {
	if len(f.found) == 0 {
		return nil
	}
	slices.SortStableFunc(f.found, func(a, b cfg.Problem) int { return a.Line - b.Line })
	return &cfg.Error{Problems: f.found}
}

func parent(key toml.Key) string { return key[:max(len(key)-1, 0)].String() }

// suggestion names the setting that was perhaps meant.
func suggestion(key toml.Key) string {
	t := reflect.TypeOf(Settings{})
	for _, part := range key[:len(key)-1] {
		field, has := fieldOf(t, part)
		if !has {
			return ""
		}
		t = field.Type
		if t.Kind() != reflect.Struct {
			return ""
		}
	}
	var names []string
	for i := range t.NumField() {
		names = append(names, t.Field(i).Tag.Get("toml"))
	}
	return "; there are " + strings.Join(names, ", ")
}

func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("toml") == name {
			return t.Field(i), true
		}
	}
	return reflect.StructField{}, false
}
