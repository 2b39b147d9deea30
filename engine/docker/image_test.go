package docker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellmux/cell/cfg"
	"cellmux/engine"
)

func TestOursIsNamedByStackAndContent(t *testing.T) {
	name := func(s cfg.CellSection, base string) string {
		t.Helper()
		r, err := ours(s, base)
		if err != nil {
			t.Fatal(err)
		}
		return r.reference
	}
	plain := name(cfg.CellSection{}, "")
	if !strings.HasPrefix(plain, "cellmux/cell:base-") || len(plain) != len("cellmux/cell:base-")+12 {
		t.Errorf("called %s", plain)
	}
	a := name(cfg.CellSection{Stack: "dev", Modules: []string{"plex", "linear"}, Packages: []string{"b", "a", "a"}}, "")
	b := name(cfg.CellSection{Stack: "dev", Modules: []string{"linear", "plex"}, Packages: []string{"a", "b"}}, "")
	if a != b || !strings.HasPrefix(a, "cellmux/cell:dev-linear-plex-2dbb8ea3-") {
		t.Errorf("one image has two names, or the wrong one: %s, %s", a, b)
	}
	for what, other := range map[string]string{
		"another base":    name(cfg.CellSection{}, "debian:13"),
		"other packages":  name(cfg.CellSection{Packages: []string{"tree"}}, ""),
		"another agent":   name(cfg.CellSection{Modules: []string{"claude"}}, ""),
		"another content": name(cfg.CellSection{Stack: "go"}, ""),
	} {
		if other == plain {
			t.Errorf("%s has the name of the plain one", what)
		}
	}
	if got := name(cfg.CellSection{Stack: "x", Modules: []string{"a b/c:d", strings.Repeat("long", 60)}}, ""); len(got) > len("cellmux/cell:")+128 || strings.ContainsAny(got[len("cellmux/cell:"):], " /:") {
		t.Errorf("not a name that docker takes: %s", got)
	}
}

// A package's name reaches a shell in the Dockerfile.
func TestPackagesThatAreNoNamesAreRefused(t *testing.T) {
	for _, p := range []string{"a b", "$(id)", "a;b", "-o", "", "A", "a\nb"} {
		if r, err := ours(cfg.CellSection{Packages: []string{p}}, ""); err == nil {
			t.Errorf("%q was taken: %v", p, r.arguments)
		}
	}
}

func TestImageThatIsAnOptionIsRefused(t *testing.T) {
	c := engine.Cell{Config: cfg.CellConfig{Cell: cfg.CellSection{Image: "--privileged"}}}
	if r, err := New(Options{}).imageOf(c); err == nil || !strings.Contains(err.Error(), "no name of an image") {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestBuildSteps(t *testing.T) {
	for line, want := range map[string]engine.Progress{
		"Step 3/9 : RUN apt-get update": {Step: "RUN apt-get update", Done: 3, Total: 9, Unit: "steps"},
		"#7 [3/6] RUN apt-get update":   {Step: "RUN apt-get update", Done: 3, Total: 6, Unit: "steps"},
		"#12 [stage-1 2/4] COPY a b":    {Step: "COPY a b", Done: 2, Total: 4, Unit: "steps"},
	} {
		if got, ok := buildStep(line); !ok || got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
	for _, line := range []string{"#7 12.3 Reading package lists...", " ---> Running in 1234", "Step x"} {
		if got, ok := buildStep(line); ok {
			t.Errorf("%q is a step: %+v", line, got)
		}
	}
}

func TestDevcontainer(t *testing.T) {
	cases := map[string]struct {
		json string
		want string // part of the reference; "" is none
	}{
		"an image":                     {`{"image": "debian:12"}`, "debian:12"},
		"comments and commas":          {"{\n// why\n\"image\": \"debian:12\", /* x */\n}", "debian:12"},
		"a build":                      {`{"build": {"dockerfile": "Dockerfile"}}`, "cellmux/devcontainer:"},
		"features":                     {`{"image": "debian:12", "features": {"ghcr.io/x": {}}}`, ""},
		"compose":                      {`{"dockerComposeFile": "compose.yml"}`, ""},
		"another context":              {`{"build": {"dockerfile": "Dockerfile", "context": ".."}}`, ""},
		"a Dockerfile elsewhere":       {`{"build": {"dockerfile": "../Dockerfile"}}`, ""},
		"a Dockerfile that is missing": {`{"build": {"dockerfile": "None"}}`, ""},
		"an option for a name":         {`{"image": "--privileged"}`, ""},
		"nothing":                      {`{}`, ""},
		"no JSON":                      {`image: debian`, ""},
		"another type":                 {`{"image": ["debian"]}`, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			project := t.TempDir()
			put(t, filepath.Join(project, ".devcontainer/devcontainer.json"), c.json)
			put(t, filepath.Join(project, ".devcontainer/Dockerfile"), "FROM debian\n")
			d := New(Options{Approved: func(string, []byte) bool { return true }})
			r, ok := d.devcontainer(project)
			if ok != (c.want != "") || !strings.HasPrefix(r.reference, c.want) {
				t.Errorf("got %+v, %v; want %q", r, ok, c.want)
			}
		})
	}
}

// Both files are the project's, and both must have been approved.
func TestDevcontainerWaitsForApproval(t *testing.T) {
	project := t.TempDir()
	put(t, filepath.Join(project, ".devcontainer/devcontainer.json"), `{"build": {"dockerfile": "Dockerfile"}}`)
	put(t, filepath.Join(project, ".devcontainer/Dockerfile"), "FROM debian\n")
	for approved, want := range map[string]bool{"": false, "devcontainer.json": false, "Dockerfile": false, "devcontainer.json Dockerfile": true} {
		d := New(Options{Approved: func(path string, content []byte) bool {
			return len(content) > 0 && strings.Contains(approved, filepath.Base(path))
		}})
		if _, ok := d.devcontainer(project); ok != want {
			t.Errorf("with %q approved it counts: %v", approved, ok)
		}
	}
	if _, ok := New(Options{}).devcontainer(project); ok {
		t.Error("it counts where nobody can approve")
	}
}

func TestDevcontainerThatLeadsOutOfTheProject(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "devcontainer.json")
	put(t, outside, `{"image": "debian:12"}`)
	project := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(project, ".devcontainer.json")); err != nil {
		t.Fatal(err)
	}
	asked := 0
	d := New(Options{Approved: func(string, []byte) bool { asked++; return true }})
	if r, ok := d.devcontainer(project); ok || asked != 0 {
		t.Errorf("a file outside of the project counts: %+v", r)
	}
}
