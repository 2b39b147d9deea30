package settings

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/settings.md anew")

const docsPage = "../../docs/settings.md"

// The page is made from the doc comments, so that it says what the code says.
func TestDocsPageIsFresh(t *testing.T) {
	want := page(t)
	if *update {
		if err := os.WriteFile(docsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/settings.md is stale: go test ./tui/settings -run TestDocsPageIsFresh -update")
	}
}

func TestEverySettingIsExplained(t *testing.T) {
	if text := page(t); strings.Contains(text, "|  |") {
		t.Error("a setting has no doc comment")
	}
}

func page(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "settings.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{} // "Type.Field" → text
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.TypeSpec)
		if !is {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			comments[spec.Name.Name+"."+field.Names[0].Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
		}
		return false
	})
	var b strings.Builder
	b.WriteString("# config.toml\n\nHow the screen behaves: `$XDG_CONFIG_HOME/cellmux/config.toml`, else `~/.config/cellmux/config.toml`. No setting is\nneeded. What is wrong in it is an error with its line and column; `cellmux config check` looks without starting\nanything. What a cell is stands in devcell.toml instead. (This page is generated from the code.)\n")
	section(&b, comments, reflect.TypeOf(Settings{}), "")
	return b.String()
}

// section writes the plain fields of a type as a table, then its sections.
func section(b *strings.Builder, comments map[string]string, of reflect.Type, name string) {
	var nested []reflect.StructField
	table := false
	for i := range of.NumField() {
		field := of.Field(i)
		kind := field.Type.Kind()
		if kind == reflect.Struct || kind == reflect.Map {
			nested = append(nested, field)
			continue
		}
		if !table {
			table = true
			b.WriteString("\n| setting | type | meaning |\n| --- | --- | --- |\n")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", field.Tag.Get("toml"), typeWord(field.Type), strings.ReplaceAll(comments[of.Name()+"."+field.Name], "|", "\\|"))
	}
	for _, field := range nested {
		title := field.Tag.Get("toml")
		if name != "" {
			title = name + "." + title
		}
		inner := field.Type
		if inner.Kind() == reflect.Map {
			inner = inner.Elem()
			if inner.Kind() == reflect.Struct || inner.Kind() == reflect.Map {
				title += ".NAME"
			}
		}
		fmt.Fprintf(b, "\n## [%s]\n\n%s\n", title, comments[of.Name()+"."+field.Name])
		if inner.Kind() == reflect.Struct {
			section(b, comments, inner, title)
		}
	}
}

func typeWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "number"
	case reflect.Slice:
		return "list"
	}
	return "text"
}
