package cfg

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// Whatever a project's file holds, loading it ends in a configuration or in faults
// that each have a place in it.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		hostileProject,
		"[cell]\nstak = 1\nvolumes = [\n '/a', # x\n 2 ]",
		"a.\"b\\n\".'c' = \"\"\"\\\n x\"\"\"\"\n[x.'y z']\n'k' = {a = [1, {b = 'c'}], }\n",
		"[[wireguard]]\nname = 'a'\n[wireguard.x]\ny = 1\n[[wireguard]]\nconfig = '''\nx'''\n",
		"[op]\ndocuments=[1]\n[cell]\nqemu_x = 1979-05-27T07:32:00Z\nthin = nan",
		"[[volumes]]\nmount = 1\n[llm]\nuse_ollama = 0x1f",
		"\ufeff[cell]\r\nstack = 'x'\r\n", "[cell\n", "=", "\"\r\n", "[env]\n\"\" = 'x'\n\"a=b\" = 'y'",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, approved bool) {
		dir := t.TempDir()
		path := filepath.Join(dir, ProjectFileName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := Sources{ProjectDir: dir, Home: "/home/ada"}
		if approved {
			s.Approvals = approveAll{}
		}
		e, err := Load(s)
		if err == nil {
			e.Values()
			for _, n := range e.Notices {
				if n.Line < 1 || n.Line > strings.Count(text, "\n")+1 {
					t.Errorf("notice without a place: %v", n)
				}
			}
			return
		}
		var faults *Error
		if !errors.As(err, &faults) || len(faults.Problems) == 0 {
			t.Fatalf("got %v", err)
		}
		for _, p := range faults.Problems {
			if len(text) <= maxFileSize && (p.Line < 1 || p.Col < 1 || p.Line > strings.Count(text, "\n")+1) {
				t.Errorf("fault without a place: %v", p)
			}
		}
	})
}

// The scan must find each key that the decoder finds.
func FuzzKeyOffsets(f *testing.F) {
	for _, seed := range []string{
		"a = 1\n[b.c]\nd.e = 'x'\n[[f]]\ng = [1, [2, {h = '}'}]]\n[[f]]\n[f.i]\nj = \"\"\"]\"\"\"\"\"\n",
		"\"a.b\" . 'c d' = { e.f = \"\\\"\" , g = [ # x\n ] }\n",
		"[ a . b ] # x\nc=x'\r\nd=1979-05-27 07:32:00\n",
	} {
		f.Add(seed)
	}
	index := regexp.MustCompile(`\.[0-9]+(\.|$)`)
	f.Fuzz(func(t *testing.T, text string) {
		var tree map[string]any
		md, err := toml.Decode(text, &tree)
		if err != nil {
			return
		}
		found := make(map[string]bool)
		for name, offset := range keyOffsets(text) {
			found[name] = true
			for stripped := index.ReplaceAllString(name, "$1"); !found[stripped]; stripped = index.ReplaceAllString(stripped, "$1") {
				found[stripped] = true
			}
			if offset < 0 || offset > len(text) {
				t.Errorf("%s at %d of %d", name, offset, len(text))
			}
		}
		for _, key := range md.Keys() {
			if name := key.String(); !found[name] && !index.MatchString(name) {
				t.Errorf("%q is not found in %q", name, text)
			}
		}
	})
}
