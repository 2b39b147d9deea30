package cfg

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// Effective is the merged configuration of a cell: approved, and not expanded
// yet. It is a value that nobody changes, safe for concurrent use.
type Effective struct {
	BaseDir     string    // where relative paths of an unfiled prompt start: the project directory
	ProjectFile string    // path of the project's file, with links resolved; "" there is none
	Pending     *Pending  // what of it waits for approval; nil nothing
	Notices     []Problem // deprecated keys and keys without effect, once each

	config  CellConfig
	origins map[string]Origin
}

// In is the same configuration for another project directory, which must have no
// file of its own.
func (e *Effective) In(projectDir string) *Effective {
	other := *e
	other.BaseDir = projectDir
	return &other
}

// Config returns a copy of the configuration with its references unexpanded.
func (e *Effective) Config() CellConfig {
	copied, _ := mapStrings(e.config, func(_ toml.Key, _ reflect.StructTag, s string) (string, error) { return s, nil })
	return copied
}

// Origin says where a value came from.
type Origin struct {
	Layer string // "default", "global file", "project file", "environment", "flag"
	File  string // path, for the two files
	Name  string // the variable or flag
	Position
}

// String is one phrase: "project file /src/api/devcell.toml:3".
func (o Origin) String() string {
	switch {
	case o.File != "" && o.Line > 0:
		return fmt.Sprintf("%s %s:%d", o.Layer, o.File, o.Line)
	case o.File != "":
		return o.Layer + " " + o.File
	case o.Name != "":
		return o.Layer + " " + o.Name
	case o.Layer == "":
		return "default"
	}
	return o.Layer
}

// Value is one effective value, for display.
type Value struct {
	Key    string // dotted
	Text   string // as TOML
	Origin Origin
}

// Values lists every value that a source set, in the order of the file's
// sections. The sources of secrets are among them; the secrets are not, since
// nothing was fetched.
func (e *Effective) Values() []Value { return valuesOf(e.config, e.origins, nil) }

// valuesOf lists the values of c that have an origin. why, when it is not nil,
// is told the tags of each.
func valuesOf(c CellConfig, origins map[string]Origin, why func(Value, reflect.StructTag)) []Value {
	var values []Value
	var walk func(v reflect.Value, key toml.Key, tag reflect.StructTag)
	walk = func(v reflect.Value, key toml.Key, tag reflect.StructTag) {
		switch v.Kind() {
		case reflect.Struct:
			for _, f := range fieldsOf(v.Type()) {
				sub := slices.Clone(key)
				if f.name != "" {
					sub = append(sub, f.name)
				}
				walk(v.Field(f.index), sub, inherited(tag, f.tag))
			}
		case reflect.Map:
			names := make([]string, 0, v.Len())
			for name := range v.Seq() {
				names = append(names, name.String())
			}
			for _, name := range slices.Sorted(slices.Values(names)) {
				walk(v.MapIndex(reflect.ValueOf(name)), append(slices.Clone(key), name), tag)
			}
		default:
			origin, ok := origins[key.String()]
			if !ok {
				return
			}
			value := Value{key.String(), tomlText(v), origin}
			values = append(values, value)
			if why != nil {
				why(value, tag)
			}
		}
	}
	walk(reflect.ValueOf(c), nil, "")
	return values
}

// inherited is the tag of a key inside a section: its own, or else the section's
// word about what it does.
func inherited(section, own reflect.StructTag) reflect.StructTag {
	for _, name := range []string{"acts", "meaning"} {
		if own.Get(name) == "" && section.Get(name) != "" {
			own += reflect.StructTag(" " + name + ":" + strconv.Quote(section.Get(name)))
		}
	}
	return own
}

// tomlText writes a value as TOML on one line.
func tomlText(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return QuoteTOML(v.String())
	case reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = tomlText(v.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case reflect.Struct:
		var pairs []string
		for _, f := range fieldsOf(v.Type()) {
			pairs = append(pairs, f.name+" = "+tomlText(v.Field(f.index)))
		}
		return "{ " + strings.Join(pairs, ", ") + " }"
	}
	return fmt.Sprint(v)
}

// mapStrings returns a deep copy of c in which each string is what change makes
// of it. Every error is kept; a string with an error stays as it was.
func mapStrings(c CellConfig, change func(key toml.Key, tag reflect.StructTag, s string) (string, error)) (CellConfig, []error) {
	var errs []error
	var walk func(v reflect.Value, key toml.Key, tag reflect.StructTag) reflect.Value
	walk = func(v reflect.Value, key toml.Key, tag reflect.StructTag) reflect.Value {
		result := reflect.New(v.Type()).Elem()
		result.Set(v)
		switch v.Kind() {
		case reflect.String:
			s, err := change(key, tag, v.String())
			if err != nil {
				errs = append(errs, err)
				return result
			}
			result.SetString(s)
		case reflect.Struct:
			for _, f := range fieldsOf(v.Type()) {
				sub := slices.Clone(key)
				if f.name != "" {
					sub = append(sub, f.name)
				}
				result.Field(f.index).Set(walk(v.Field(f.index), sub, f.tag))
			}
		case reflect.Slice:
			if v.IsNil() {
				break
			}
			result.Set(reflect.MakeSlice(v.Type(), 0, v.Len()))
			for i := range v.Len() {
				result.Set(reflect.Append(result, walk(v.Index(i), key, tag)))
			}
		case reflect.Map:
			if v.IsNil() {
				break
			}
			result.Set(reflect.MakeMap(v.Type()))
			entries := maps.Collect(v.Seq2())
			names := slices.SortedFunc(maps.Keys(entries), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			for _, name := range names {
				result.SetMapIndex(name, walk(entries[name], append(slices.Clone(key), name.String()), tag))
			}
		}
		return result
	}
	return walk(reflect.ValueOf(c), nil, "").Interface().(CellConfig), errs
}
