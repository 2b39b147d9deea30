package cfg

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/BurntSushi/toml"
)

// Sources says where the configuration of a cell comes from. Zero fields are
// sources that do not exist.
type Sources struct {
	GlobalFile string              // path of the user's own file; it may be missing
	ProjectDir string              // where the project's file lies; it may be missing
	Home       string              // for ~
	Getenv     func(string) string // host environment
	Flags      map[string]string   // dotted key, such as "cell.engine", to value; lists by commas
	Approvals  Approvals           // nil approves nothing
}

// GlobalFile is the path of the user's own file: below $XDG_CONFIG_HOME, or
// below ~/.config where that is not set or not absolute.
func GlobalFile(getenv func(string) string, home string) string {
	base := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "devcell", "devcell.toml")
}

// Load reads the two files and merges the sources: defaults under the global file
// under the project's file under the environment under flags. It executes
// nothing, reads nothing but the two files, and writes nothing.
//
// A project's file that is not approved is checked like any other and has no
// effect, but for one: an engine that isolates more than the one chosen without
// it is taken, so that a project which asks for a sandbox never runs without.
// Effective.Pending then says what waits.
//
// The error is an *Error with every fault of every source.
func Load(s Sources) (*Effective, error) {
	config := CellConfig{}
	m := newMerger(&config, s.Home)
	e := &Effective{BaseDir: s.ProjectDir}
	m.merge(defaultLayer())

	if s.GlobalFile != "" {
		doc, problems := readDocument(s.GlobalFile, func() (*os.File, error) { return openGlobal(s.GlobalFile) })
		m.problems = append(m.problems, problems...)
		m.mergeFile("global file", doc)
	}
	project, problems := readProject(s.ProjectDir)
	m.problems = append(m.problems, problems...)
	if project != nil {
		e.ProjectFile = project.path
		if s.Approvals != nil && s.Approvals.Approved(project.path, project.hash) {
			m.mergeFile("project file", project)
		} else {
			e.Pending = m.withhold(project)
		}
	}
	environment := environmentLayer(s.Getenv)
	m.merge(environment)
	flags, problems := flagLayer(s.Flags)
	m.problems = append(m.problems, problems...)
	m.merge(flags)

	if len(m.problems) > 0 {
		return nil, &Error{m.problems}
	}
	e.config, e.origins, e.Notices = config, m.origins, m.notices
	return e, nil
}

// mergeFile merges a file's values, its deprecated keys under their new names.
func (m *merger) mergeFile(name string, doc *document) {
	if doc == nil {
		return
	}
	l := layer{name: name, doc: doc}
	var notices []Problem
	l.tree, notices = modernized(l)
	m.notices = append(m.notices, notices...)
	m.merge(l)
}

// withhold checks an unapproved file on a configuration of its own, and gives its
// engine effect where that isolates more.
func (m *merger) withhold(doc *document) *Pending {
	var asked CellConfig
	scratch := newMerger(&asked, m.home)
	scratch.mergeFile("project file", doc)
	m.problems = append(m.problems, scratch.problems...)
	m.notices = append(m.notices, scratch.notices...)
	if isolation(asked.Cell) > isolation(m.config.Cell) {
		m.config.Cell.Engine, m.config.Cell.OS = asked.Cell.Engine, asked.Cell.OS
		for _, key := range []string{"cell.engine", "cell.os"} {
			delete(m.origins, key)
			if origin, ok := scratch.origins[key]; ok {
				origin.Layer = "project file, before its approval"
				m.origins[key] = origin
			}
		}
	}
	return newPending(doc, asked, scratch.origins)
}

// isolation ranks what carries a cell by how strongly it isolates.
func isolation(c CellSection) int {
	switch c.Engine {
	case "microvm":
		return 4
	case "tart", "winkit":
		return 3
	case "docker":
		return 2
	case "auto":
		return 1
	case "host":
		return 0
	}
	switch c.OS {
	case "linux":
		return 2
	case "macos", "windows", "winpe":
		return 3
	}
	return 0
}

// readProject reads a project's file under its name, or under its old one.
func readProject(dir string) (*document, []Problem) {
	if dir == "" {
		return nil, nil
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // an approval is bound to the path: one directory, one path
	}
	for _, name := range ProjectFileNames() {
		doc, problems := readDocument(filepath.Join(dir, name), func() (*os.File, error) { return openProject(dir, name) })
		if doc != nil || len(problems) > 0 {
			return doc, problems
		}
	}
	return nil, nil
}

// leaf calls visit for every key that holds a value, sections and the tables of
// lists aside.
func leaf(t reflect.Type, path toml.Key, visit func(key toml.Key, f field)) {
	for _, f := range fieldsOf(t) {
		if f.name == "" {
			continue
		}
		key := append(slices.Clone(path), f.name)
		if ft := t.Field(f.index).Type; ft.Kind() == reflect.Struct {
			leaf(ft, key, visit)
		} else {
			visit(key, f)
		}
	}
}

// setKey puts a value into a tree of tables.
func setKey(tree map[string]any, key toml.Key, value any) {
	for _, part := range key[:len(key)-1] {
		table, ok := tree[part].(map[string]any)
		if !ok {
			table = make(map[string]any)
			tree[part] = table
		}
		tree = table
	}
	tree[key[len(key)-1]] = value
}

func defaultLayer() layer {
	l := layer{name: "default", tree: make(map[string]any), text: true}
	leaf(reflect.TypeFor[CellConfig](), nil, func(key toml.Key, f field) {
		if value := f.tag.Get("default"); value != "" {
			setKey(l.tree, key, value)
		}
	})
	return l
}

func environmentLayer(getenv func(string) string) layer {
	l := layer{name: "environment", tree: make(map[string]any), text: true, origin: make(map[string]string)}
	if getenv == nil {
		return l
	}
	leaf(reflect.TypeFor[CellConfig](), nil, func(key toml.Key, f field) {
		variable := f.tag.Get("env")
		if variable == "" {
			return
		}
		if value := getenv(variable); value != "" {
			setKey(l.tree, key, value)
			l.origin[key.String()] = variable
		}
	})
	return l
}

func flagLayer(flags map[string]string) (layer, []Problem) {
	l := layer{name: "flag", tree: make(map[string]any), text: true, origin: make(map[string]string)}
	known := make(map[string]toml.Key)
	leaf(reflect.TypeFor[CellConfig](), nil, func(key toml.Key, _ field) { known[key.String()] = key })
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		key, ok := known[name]
		if !ok {
			problems = append(problems, Problem{Key: "flag " + name, Message: "unknown key"})
			continue
		}
		setKey(l.tree, key, flags[name])
		l.origin[name] = "--" + key[len(key)-1]
	}
	return l, problems
}
