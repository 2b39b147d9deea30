package cfg

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// leafField is a key that holds a value, wherever it is: the entries of free-form
// tables and the fields of tables in lists are among them.
type leafField struct {
	key  toml.Key
	kind reflect.Kind
	tag  reflect.StructTag
	get  func(CellConfig) reflect.Value
}

// leafFields finds every field of CellConfig by reflection, independently of the
// merge.
func leafFields(t *testing.T) []leafField {
	t.Helper()
	var found []leafField
	var walk func(ft reflect.Type, key toml.Key, tag reflect.StructTag, get func(CellConfig) reflect.Value)
	walk = func(ft reflect.Type, key toml.Key, tag reflect.StructTag, get func(CellConfig) reflect.Value) {
		switch {
		case ft.Kind() == reflect.Struct:
			for i := range ft.NumField() {
				f := ft.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
				sub := slices.Clone(key)
				if name != "" {
					sub = append(sub, name)
				} else if f.Tag.Get("toml") != ",rest" {
					t.Fatalf("%v.%s has no key", ft, f.Name)
				}
				walk(f.Type, sub, f.Tag, func(c CellConfig) reflect.Value { return get(c).Field(i) })
			}
		case ft.Kind() == reflect.Map:
			walk(ft.Elem(), append(slices.Clone(key), "ENTRY"), tag, func(c CellConfig) reflect.Value {
				return entryOf(get(c), ft)
			})
		case ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct:
			// Lists of tables are united by name; TestListsOfTablesAreUnitedByName.
		default:
			found = append(found, leafField{key, ft.Kind(), tag, get})
		}
	}
	walk(reflect.TypeFor[CellConfig](), nil, "", func(c CellConfig) reflect.Value { return reflect.ValueOf(c) })
	if len(found) < 70 {
		t.Fatalf("only %d fields were found", len(found))
	}
	return found
}

func entryOf(m reflect.Value, mt reflect.Type) reflect.Value {
	if m.IsNil() {
		return reflect.Zero(mt.Elem())
	}
	if v := m.MapIndex(reflect.ValueOf("ENTRY")); v.IsValid() {
		return v
	}
	return reflect.Zero(mt.Elem())
}

// values returns two different values that the field takes, and what it is without
// one: as TOML and as kept.
func (f leafField) values(i int) any {
	switch f.kind {
	case reflect.Bool:
		return i == 1 // the project's false must win over a global true, too
	case reflect.Int:
		return int64(40 + i)
	case reflect.Float64:
		return 1.5 + float64(i)
	case reflect.Slice:
		switch f.tag.Get("grammar") {
		case "volume":
			return []any{fmt.Sprintf("/host%d:/guest%d", i, i)}
		case "port":
			return []any{fmt.Sprintf("%d:%d", 1000+i, 2000+i)}
		}
		return []any{fmt.Sprintf("item%d", i)}
	}
	if words := strings.Fields(f.tag.Get("oneof")); len(words) > 0 {
		return words[i]
	}
	if f.tag.Get("grammar") == "secret" {
		return fmt.Sprintf("env:NAME%d", i)
	}
	if f.tag.Get("path") == "file" {
		return fmt.Sprintf("/file%d", i)
	}
	return fmt.Sprintf("value%d", i)
}

func document1(t *testing.T, key toml.Key, value any) string {
	t.Helper()
	tree := make(map[string]any)
	setKey(tree, key, value)
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(tree); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A project's value wins, an absent one does not, an explicit empty list clears:
// for every field there is. Upstream merges field by field and forgets five.
func TestEveryFieldIsMerged(t *testing.T) {
	for _, f := range leafFields(t) {
		t.Run(f.key.String(), func(t *testing.T) {
			global := document1(t, f.key, f.values(1))
			project := document1(t, f.key, f.values(0))
			if got := f.get(load(t, files(t, global, "")).Config()); !f.holds(got, f.values(1)) {
				t.Errorf("an absent project value must leave the global one: %v", got)
			}
			e := load(t, files(t, global, project))
			if got := f.get(e.Config()); !f.holds(got, f.values(0)) {
				t.Errorf("the project's value must win: %v", got)
			}
			origin, ok := e.origins[f.key.String()]
			if !ok || origin.Layer != "project file" || origin.Line == 0 {
				t.Errorf("the value's origin is %v", origin)
			}
			if i := slices.IndexFunc(e.Values(), func(v Value) bool { return v.Key == f.key.String() }); i < 0 {
				t.Error("the value is not shown")
			}
			switch f.kind {
			case reflect.Slice:
				if got := f.get(e.Config()); got.Len() != 2 {
					t.Errorf("lists must be united: %v", got)
				}
				cleared := load(t, files(t, global, document1(t, f.key, []any{})))
				if got := f.get(cleared.Config()); got.Len() != 0 {
					t.Errorf("an explicit empty list must clear: %v", got)
				}
			case reflect.String:
				if f.tag.Get("grammar") == "secret" {
					break // no source is empty
				}
				emptied := load(t, files(t, global, document1(t, f.key, "")))
				if got := f.get(emptied.Config()); got.String() != "" {
					t.Errorf("an explicit empty string must win: %v", got)
				}
			}
		})
	}
}

func (f leafField) holds(got reflect.Value, want any) bool {
	if list, ok := want.([]any); ok {
		for i := range got.Len() {
			if got.Index(i).String() == list[0] {
				return true
			}
		}
		return false
	}
	return fmt.Sprint(got) == fmt.Sprint(want)
}

func TestListsOfTablesAreUnitedByName(t *testing.T) {
	got := load(t, files(t, "[[wireguard]]\nname='a'\nenabled=true\n[[wireguard]]\nname='b'", "[[wireguard]]\nname='a'\nconfig='x'\n[[wireguard]]\nname='c'")).Config().WireGuard
	want := []WireGuardSection{{Name: "a", Config: "x"}, {Name: "b"}, {Name: "c"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

func TestEntriesOfFreeFormTablesAreMergedByKey(t *testing.T) {
	c := load(t, files(t, "[env]\nA='1'\nB='1'\n[llm.providers.x]\nbase_url='u'\nmodels=['m']", "[env]\nB='2'\nC=''\n[llm.providers.x]\nmodels=['n']\n[llm.providers.y]\nbase_url='v'")).Config()
	if fmt.Sprint(c.Env) != "map[A:1 B:2 C:]" {
		t.Errorf("env %v", c.Env)
	}
	if fmt.Sprint(c.LLM.Providers) != "map[x:{u [m n]} y:{v []}]" {
		t.Errorf("providers %v", c.LLM.Providers)
	}
}

func TestAConfigIsNobodyElsesToChange(t *testing.T) {
	e := load(t, files(t, "[env]\nA='1'\n[cell]\nmodules=['x']", ""))
	c := e.Config()
	c.Env["A"], c.Cell.Modules[0] = "changed", "changed"
	if again := e.Config(); again.Env["A"] != "1" || again.Cell.Modules[0] != "x" {
		t.Errorf("%+v", again)
	}
}

func TestDeprecatedKeysWorkAndAreNamedOnce(t *testing.T) {
	for _, tt := range []struct {
		text, key string
		want      any
		got       func(CellConfig) any
	}{
		{"[op]\ndocuments=['x']", "op", "[x]", func(c CellConfig) any { return c.Secrets.OnePassword.Documents }},
		{"[secrets.op]\ndocuments=['x']", "secrets.op", "[x]", func(c CellConfig) any { return c.Secrets.OnePassword.Documents }},
		{"[ports]\nforward=['3000']", "ports.forward", "[3000]", func(c CellConfig) any { return c.Cell.Ports }},
		{"[[volumes]]\nmount='/a:/b'\n[[volumes]]\nmount='/c'", "volumes", "[/a:/b /c:/c]", func(c CellConfig) any { return c.Cell.Volumes }},
		{"[llm]\nuse_ollama=true", "llm.use_ollama", "ollama", func(c CellConfig) any { return c.LLM.Provider }},
		{"[llm]\nuse_openrouter=false", "llm.use_openrouter", "", func(c CellConfig) any { return c.LLM.Provider }},
		{"[llm]\nuse_openrouter=true\nprovider='ollama'", "llm.use_openrouter", "ollama", func(c CellConfig) any { return c.LLM.Provider }},
		{"[llm.models]\ndefault='m'", "llm.models.default", "m", func(c CellConfig) any { return c.LLM.Model }},
		{"[packages.nix]\nstable=['jq']", "packages.nix.stable", "[jq]", func(c CellConfig) any { return c.Cell.Packages }},
		{"[cell]\nengine='qemu'", "cell.engine", "winkit", func(c CellConfig) any { return c.Cell.Engine }},
		{"[cell]\nqemu_cpus=8", "cell.qemu_cpus", "8", func(c CellConfig) any { return c.Cell.WinkitCPUs }},
		{"[cell]\nvagrant_box='x'\nstack='y'", "cell.vagrant_box", "y", func(c CellConfig) any { return c.Cell.Stack }},
		{"[cell]\nthin=true", "cell.thin", "base", func(c CellConfig) any { return c.Cell.Stack }},
	} {
		e := load(t, files(t, "", tt.text))
		if got := fmt.Sprint(tt.got(e.Config())); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.text, got, tt.want)
		}
		var named []Problem
		for _, n := range e.Notices {
			if strings.Contains(n.Message, "deprecated") {
				named = append(named, n)
			}
		}
		if len(named) != 1 || named[0].Key != tt.key || named[0].Line == 0 {
			t.Errorf("%q: notices %v", tt.text, named)
		}
	}
}

func TestADeprecatedKeyOfTheWrongTypeIsAFaultWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"[cell]\nqemu_cpus='x'":   ":2:1: cell.winkit_cpus: is a string and must be a whole number",
		"volumes = 4":             ":1:1: cell.volumes: is a whole number and must be a list",
		"[[volumes]]\nmount = 4":  "cell.volumes.0: is a whole number",
		"[llm]\nuse_ollama = 'x'": "",
	} {
		e, err := Load(files(t, "", text))
		if want == "" {
			if err != nil || e.Config().LLM.Provider != "x" {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestTheOldFileNameIsReadAndNamed(t *testing.T) {
	s := files(t, "", "")
	writeFile(t, s.ProjectDir+"/"+oldProjectFileName, "[cell]\nstack='old'")
	e := load(t, s)
	if e.Config().Cell.Stack != "old" || len(e.Notices) != 1 || !strings.Contains(e.Notices[0].Message, "rename") {
		t.Errorf("%+v", e)
	}
	writeFile(t, s.ProjectDir+"/"+ProjectFileName, "[cell]\nstack='new'")
	if e := load(t, s); e.Config().Cell.Stack != "new" || len(e.Notices) != 0 {
		t.Errorf("%+v", e)
	}
}

func TestKeysWithoutMeaningAreAcceptedAndNamedOnce(t *testing.T) {
	e := load(t, files(t, "", "[nix]\nimage='x'\nnixhome='y'\n[cell]\nkvm=true\n[docker]\nprivileged=true\n[[wireguard]]\nname='a'\n[[wireguard]]\nname='b'"))
	var keys []string
	for _, n := range e.Notices {
		keys = append(keys, n.Key)
	}
	if got := strings.Join(keys, " "); got != "cell.kvm docker.privileged nix wireguard" {
		t.Errorf("got %s", got)
	}
}
