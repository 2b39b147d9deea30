package cfg

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/config.md anew")

const pagePath = "../../docs/config.md"

// docs/config.md is made from the comments and tags of the sections, so that it
// cannot say anything else than what is read.
func TestConfigPageIsFresh(t *testing.T) {
	page := configPage(t)
	if *update {
		if err := os.WriteFile(pagePath, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(pagePath)
	if err != nil || !bytes.Equal(have, page) {
		t.Errorf("docs/config.md is stale (%v): run go test ./cell/cfg -run TestConfigPageIsFresh -update", err)
	}
}

func TestEveryKeyWithMeaningIsExplained(t *testing.T) {
	comments := sectionComments(t)
	var walk func(rt reflect.Type, meaning string)
	walk = func(rt reflect.Type, meaning string) {
		for i := range rt.NumField() {
			f := rt.Field(i)
			none := meaning == "none" || hasNoMeaning(f.Tag)
			if !none && comments[rt.Name()+"."+f.Name] == "" {
				t.Errorf("%s.%s has no comment", rt.Name(), f.Name)
			}
			if f.Type.Kind() == reflect.Struct && !none {
				walk(f.Type, f.Tag.Get("meaning"))
			}
		}
	}
	walk(reflect.TypeFor[CellConfig](), "")
}

// sectionComments reads the doc comments of the section types, by "Type.Field".
func sectionComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "sections.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if st, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range st.Fields.List {
				for _, name := range f.Names {
					comments[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
				}
			}
		}
		return true
	})
	return comments
}

func configPage(t *testing.T) []byte {
	p := &page{comments: sectionComments(t)}
	p.line("<!-- Made from cell/cfg by its tests; change the comments there. -->")
	p.line("# devcell.toml")
	p.line("")
	p.line("What a cell is. The user's own file is `$XDG_CONFIG_HOME/devcell/devcell.toml` (else below `~/.config`); a project's is `devcell.toml` in its")
	p.line("directory and stands above it; host variables and command-line flags stand above both. `cellmux config` prints each value and where it came from,")
	p.line("`cellmux config check` finds mistakes; neither executes anything.")
	p.line("")
	p.line("- A key that the project's file does not name keeps the value of the user's file. Lists are united; an explicit empty list clears.")
	p.line("- A project's file has no effect until it is approved (`cellmux trust`), and again after each change. One thing alone is taken before that: an")
	p.line("  engine that isolates more than the one chosen without it.")
	p.line("- `$VAR`, `${VAR:-default}` and `$(command)` are expanded at launch in every string but prompts, sources of secrets and `default_command`. A string")
	p.line("  without `$` and backquote is taken as it is. A plain reference to a variable that is unset or empty is an error.")
	p.line("- `~` is the home directory; a relative path starts at the directory of the file that holds it.")
	p.section("", reflect.TypeFor[CellConfig]())
	p.line("")
	p.line("## Accepted, and without effect in cellmux")
	p.line("")
	p.line("These belong to the format. A file that has them loads, and says so once.")
	p.line("")
	for _, name := range p.none {
		p.line("- `%s`", name)
	}
	p.line("")
	p.line("## Deprecated, still read")
	p.line("")
	p.line("| old | now |")
	p.line("| --- | --- |")
	for _, d := range deprecations {
		p.line("| `%s` | %s |", d.old, instead(d.new))
	}
	for _, prefix := range slices.Sorted(func(yield func(string) bool) {
		for prefix := range retiredPrefixes {
			if !yield(prefix) {
				return
			}
		}
	}) {
		now := retiredPrefixes[prefix]
		if now != "" {
			now = "cell." + now + "…"
		}
		p.line("| `cell.%s…` | %s |", prefix, instead(now))
	}
	p.line("| `cell.engine = \"qemu\"` | `\"winkit\"` |")
	p.line("| the file name `%s` | `%s` |", oldProjectFileName, ProjectFileName)
	return p.text.Bytes()
}

func instead(key string) string {
	if key == "" {
		return "no effect"
	}
	return "`" + key + "`"
}

type page struct {
	text     bytes.Buffer
	comments map[string]string
	none     []string
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// section writes the keys of a section, then the sections inside it.
func (p *page) section(name string, rt reflect.Type) {
	heading := false
	for i := range rt.NumField() {
		f := rt.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		full := strings.TrimPrefix(name+"."+key, ".")
		if hasNoMeaning(f.Tag) {
			if name == "" {
				full = "[" + full + "]"
			}
			p.none = append(p.none, full)
			continue
		}
		if f.Type.Kind() == reflect.Struct || name == "" || isTableOfSections(f.Type) {
			continue
		}
		if !heading {
			p.table()
			heading = true
		}
		if key == "" {
			key = "NAME"
		}
		p.row(key, f, p.comments[rt.Name()+"."+f.Name])
	}
	for i := range rt.NumField() {
		f := rt.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		full := strings.TrimPrefix(name+"."+key, ".")
		comment := p.comments[rt.Name()+"."+f.Name]
		switch {
		case hasNoMeaning(f.Tag):
		case f.Type.Kind() == reflect.Struct:
			p.heading(full, comment)
			p.section(full, f.Type)
		case isTableOfSections(f.Type):
			p.heading(full+".NAME", comment)
			p.section(full+".NAME", f.Type.Elem())
		case name == "":
			p.heading(full, comment)
		}
	}
}

func isTableOfSections(rt reflect.Type) bool {
	return rt.Kind() == reflect.Map && rt.Elem().Kind() == reflect.Struct
}

func (p *page) heading(name, comment string) {
	p.line("")
	p.line("## [%s]", name)
	p.line("")
	p.line("%s", comment)
}

func (p *page) table() {
	p.line("")
	p.line("| key | type | default | |")
	p.line("| --- | --- | --- | --- |")
}

func (p *page) row(key string, f reflect.StructField, comment string) {
	kind := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Slice: "list of strings", reflect.Map: "string"}[f.Type.Kind()]
	if words := f.Tag.Get("oneof"); words != "" {
		kind = "`" + strings.Join(strings.Fields(words), "` `") + "`"
	}
	def := f.Tag.Get("default")
	if def != "" {
		def = "`" + def + "`"
	}
	if variable := f.Tag.Get("env"); variable != "" {
		comment += " Host variable: `" + variable + "`."
	}
	p.line("| `%s` | %s | %s | %s |", key, kind, def, comment)
}
