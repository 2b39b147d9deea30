package cfg

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/sahilm/fuzzy"
)

// layer is one source of values. Layers are merged from the lowest to the
// highest; what each of them names wins over what is there.
type layer struct {
	name string // "global file", "project file", "environment", "flag"
	tree map[string]any
	doc  *document // nil for the environment and flags
	text bool      // every value is a string, to be parsed for its field
	// origin names the source of one key, such as a variable.
	origin map[string]string
}

func (l layer) problem(key toml.Key, format string, args ...any) Problem {
	p := Problem{Key: key.String(), Message: fmt.Sprintf(format, args...)}
	if l.doc != nil {
		p.File, p.Position = l.doc.path, l.doc.position(key)
	} else if name := l.origin[key.String()]; name != "" {
		p.Key = l.name + " " + name
	}
	return p
}

// merger merges layers into a CellConfig, and is the only code that sets a field
// of one. What a value's type, its tags and its layer say decides everything; no
// section has code of its own, so that no key can be forgotten.
//
//   - A key that the layer does not name keeps what it has.
//   - Strings, numbers and booleans are replaced, by false and "" too.
//   - Lists are united: entries already there stay, one with the same key
//     (a volume's path inside, a port's number inside, an entry's name) is
//     replaced in its place, others are added. An empty list clears.
//   - Tables are merged key by key.
type merger struct {
	config   *CellConfig
	origins  map[string]Origin
	home     string // for ~; "" leaves it
	problems []Problem
	notices  []Problem
}

func newMerger(config *CellConfig, home string) *merger {
	return &merger{config: config, origins: make(map[string]Origin), home: home}
}

func (m *merger) merge(l layer) {
	m.table(l, reflect.ValueOf(m.config).Elem(), l.tree, nil)
}

func (m *merger) fault(l layer, key toml.Key, format string, args ...any) {
	m.problems = append(m.problems, l.problem(key, format, args...))
}

// table merges the keys of tree into the section dst.
func (m *merger) table(l layer, dst reflect.Value, tree map[string]any, path toml.Key) {
	fields := fieldsOf(dst.Type())
	before := reflect.New(dst.Type()).Elem()
	before.Set(dst)
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		key := append(slices.Clone(path), name)
		f, ok := fieldFor(fields, name)
		if !ok {
			m.fault(l, key, "unknown key%s", suggestion(fields, name))
			continue
		}
		if hasNoMeaning(f.tag) && l.doc != nil {
			m.notices = append(m.notices, l.problem(key, "has no effect in cellmux"))
		}
		if f.name == "" {
			m.entry(l, dst.Field(f.index), name, tree[name], key, f.tag)
			continue
		}
		m.value(l, dst.Field(f.index), tree[name], key, f.tag)
	}
	m.clear(dst, before, fields, tree, path)
}

// clear drops values that belong to another value which this layer replaced: the
// model of a provider that is no longer the provider, the prompt file below a
// prompt text.
func (m *merger) clear(dst, before reflect.Value, fields []field, tree map[string]any, path toml.Key) {
	for _, f := range fields {
		by := f.tag.Get("cleared")
		if by == "" {
			continue
		}
		g, _ := fieldFor(fields, by)
		_, named := tree[by]
		_, own := tree[f.name]
		if named && !own && !dst.Field(g.index).Equal(before.Field(g.index)) {
			dst.Field(f.index).SetZero()
			delete(m.origins, append(slices.Clone(path), f.name).String())
		}
	}
}

// suggestion names the nearest key of a section.
func suggestion(fields []field, name string) string {
	var names []string
	for _, f := range fields {
		if f.name != "" {
			names = append(names, f.name)
		}
	}
	if found := fuzzy.Find(name, names); len(found) > 0 {
		return "; did you mean " + found[0].Str + "?"
	}
	for _, known := range names {
		if len(fuzzy.Find(known, []string{name})) > 0 {
			return "; did you mean " + known + "?"
		}
	}
	return ""
}

// value merges one value into the field dst.
func (m *merger) value(l layer, dst reflect.Value, v any, key toml.Key, tag reflect.StructTag) {
	if written, ok := v.(string); ok && l.text {
		parsed, err := parseText(written, dst.Kind())
		if err != nil {
			m.fault(l, key, "%v", err)
			return
		}
		v = parsed
	}
	switch dst.Kind() {
	case reflect.Struct:
		if tree, ok := v.(map[string]any); ok {
			m.table(l, dst, tree, key)
			return
		}
	case reflect.Map:
		if tree, ok := v.(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(tree)) {
				m.entry(l, dst, name, tree[name], append(slices.Clone(key), name), tag)
			}
			return
		}
	case reflect.Slice:
		m.list(l, dst, v, key, tag)
		return
	case reflect.String:
		if s, ok := v.(string); ok {
			if s, ok = m.checked(l, s, key, tag); ok {
				dst.SetString(s)
				m.note(l, key)
			}
			return
		}
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			dst.SetBool(b)
			m.note(l, key)
			return
		}
	case reflect.Int:
		if n, ok := v.(int64); ok {
			dst.SetInt(n)
			m.note(l, key)
			return
		}
	case reflect.Float64:
		switch n := v.(type) {
		case int64:
			dst.SetFloat(float64(n))
			m.note(l, key)
			return
		case float64:
			dst.SetFloat(n)
			m.note(l, key)
			return
		}
	}
	m.mismatch(l, key, dst.Type(), v)
}

// entry merges one entry of a free-form table.
func (m *merger) entry(l layer, dst reflect.Value, name string, v any, key toml.Key, tag reflect.StructTag) {
	if tag.Get("grammar") != "" {
		if err := checkVariableName(name); err != nil {
			m.fault(l, key, "%v", err)
			return
		}
	}
	entry := reflect.New(dst.Type().Elem()).Elem()
	if !dst.IsNil() {
		if old := dst.MapIndex(reflect.ValueOf(name)); old.IsValid() {
			entry.Set(old)
		}
	}
	faults := len(m.problems)
	m.value(l, entry, v, key, tag)
	if len(m.problems) > faults {
		return
	}
	merged := reflect.MakeMap(dst.Type()) // a copy: the old one may belong to another configuration
	for k, old := range dst.Seq2() {
		merged.SetMapIndex(k, old)
	}
	merged.SetMapIndex(reflect.ValueOf(name), entry)
	dst.Set(merged)
}

// list merges a list of strings or of tables.
func (m *merger) list(l layer, dst reflect.Value, v any, key toml.Key, tag reflect.StructTag) {
	var items []any
	switch list := v.(type) {
	case []any:
		items = list
	case []map[string]any:
		for _, table := range list {
			items = append(items, table)
		}
	default:
		m.mismatch(l, key, dst.Type(), v)
		return
	}
	m.note(l, key)
	if len(items) == 0 {
		dst.Set(reflect.MakeSlice(dst.Type(), 0, 0))
		return
	}
	united := reflect.AppendSlice(reflect.MakeSlice(dst.Type(), 0, dst.Len()+len(items)), dst)
	for i, item := range items {
		itemKey := append(slices.Clone(key), strconv.Itoa(i))
		entry := reflect.New(dst.Type().Elem()).Elem()
		faults := len(m.problems)
		if tree, ok := item.(map[string]any); ok && entry.Kind() == reflect.Struct {
			m.table(l, entry, tree, itemKey)
		} else if s, ok := item.(string); ok && entry.Kind() == reflect.String {
			if s, ok := m.checked(l, s, itemKey, tag); ok {
				entry.SetString(s)
				m.origins[itemOrigin(key, s)] = m.originOf(l, itemKey)
			}
		} else {
			m.mismatch(l, itemKey, entry.Type(), item)
		}
		if len(m.problems) > faults {
			continue
		}
		united = unite(united, entry, tag)
	}
	dst.Set(united)
}

// unite puts entry in the place of the one that it stands for, or at the end.
func unite(list, entry reflect.Value, tag reflect.StructTag) reflect.Value {
	identity := itemIdentity(entry, tag)
	for i := range list.Len() {
		if itemIdentity(list.Index(i), tag) == identity {
			list.Index(i).Set(entry)
			return list
		}
	}
	return reflect.Append(list, entry)
}

func itemIdentity(entry reflect.Value, tag reflect.StructTag) string {
	if entry.Kind() == reflect.Struct {
		f, _ := fieldFor(fieldsOf(entry.Type()), tag.Get("key"))
		return entry.Field(f.index).String()
	}
	return grammarOf(tag).identity(entry.String())
}

// itemOrigin is the name under which the origin of one list entry is kept: the
// index of an entry changes when lists are united.
func itemOrigin(key toml.Key, item string) string { return key.String() + "\x00" + item }

// checked returns the string as it is kept, or reports why it cannot be.
func (m *merger) checked(l layer, s string, key toml.Key, tag reflect.StructTag) (string, bool) {
	if strings.ContainsRune(s, 0) {
		m.fault(l, key, "holds a NUL character, which no environment and no command line can carry")
		return "", false
	}
	if words := strings.Fields(tag.Get("oneof")); len(words) > 0 && s != "" && !slices.Contains(words, s) {
		m.fault(l, key, "%s is none of %s", QuoteTOML(s), strings.Join(words, ", "))
		return "", false
	}
	dir := ""
	if l.doc != nil {
		dir = l.doc.dir
	}
	if tag.Get("path") == "file" && s != "" {
		s = absolute(s, dir, m.home)
	}
	kept, err := grammarOf(tag).check(s, dir, m.home)
	if err != nil {
		m.fault(l, key, "%v", err)
		return "", false
	}
	return kept, true
}

func (m *merger) note(l layer, key toml.Key) { m.origins[key.String()] = m.originOf(l, key) }

func (m *merger) originOf(l layer, key toml.Key) Origin {
	o := Origin{Layer: l.name, Name: l.origin[key.String()]}
	if l.doc != nil {
		o.File, o.Position = l.doc.path, l.doc.position(key)
	}
	return o
}

func (m *merger) mismatch(l layer, key toml.Key, want reflect.Type, got any) {
	hint := ""
	if want.Kind() == reflect.String && typeName(got) != "a list" && typeName(got) != "a table" {
		hint = "; put it in quotes"
	}
	m.fault(l, key, "is %s and must be %s%s", typeName(got), kindName(want), hint)
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return "a list of strings"
		}
		return "a list of tables"
	}
	return "a table"
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "true or false"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case time.Time:
		return "a date"
	case []any, []map[string]any:
		return "a list"
	}
	return "a table"
}

// parseText reads a value that came as text, from a variable or a flag. A list is
// separated by commas.
func parseText(s string, kind reflect.Kind) (any, error) {
	switch kind {
	case reflect.String:
		return s, nil
	case reflect.Bool:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return nil, fmt.Errorf("%s must be true or false", QuoteTOML(s))
		}
		return b, nil
	case reflect.Int:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s must be a whole number", QuoteTOML(s))
		}
		return n, nil
	case reflect.Slice:
		var list []any
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("cannot be set here")
}
