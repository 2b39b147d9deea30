package cfg

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// approveAll approves every file.
type approveAll struct{}

func (approveAll) Approved(string, string) bool { return true }

// files writes a global and a project file ("" is none) and returns sources that
// read both, the project's approved.
func files(t *testing.T, global, project string) Sources {
	t.Helper()
	dir := t.TempDir()
	s := Sources{GlobalFile: filepath.Join(dir, "config", "devcell.toml"), ProjectDir: filepath.Join(dir, "project"), Home: "/home/ada", Approvals: approveAll{}}
	for path, text := range map[string]string{s.GlobalFile: global, filepath.Join(s.ProjectDir, ProjectFileName): project} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			writeFile(t, path, text)
		}
	}
	return s
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, s Sources) *Effective {
	t.Helper()
	e, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// faults returns the problems of sources that must not load.
func faults(t *testing.T, s Sources) []Problem {
	t.Helper()
	e, err := Load(s)
	var faults *Error
	if !errors.As(err, &faults) || e != nil {
		t.Fatalf("got %v, %v; want a *cfg.Error", e, err)
	}
	return faults.Problems
}

func TestNoFileAtAllGivesTheDefaults(t *testing.T) {
	c := load(t, Sources{}).Config()
	if c.Cell.Stack != "base" || c.Docker.MemLimit != "4g" || c.Ports.PublishIP != "127.0.0.1" || c.Cell.Engine != "" {
		t.Errorf("%+v", c)
	}
	missing := files(t, "", "")
	if e := load(t, missing); e.Pending != nil || e.ProjectFile != "" || len(e.Notices) != 0 {
		t.Errorf("%+v", e)
	}
}

func TestLayersStandAboveEachOther(t *testing.T) {
	s := files(t, "[cell]\nhostname = 'global'\nstack = 'go'\n[docker]\nmem_limit = '1g'", "[cell]\nhostname = 'project'\nstack = 'node'")
	for _, tt := range []struct {
		environment, flag string
		want, origin      string
	}{
		{"", "", "project", "project file " + filepath.Join(s.ProjectDir, "devcell.toml") + ":2"},
		{"env", "", "env", "environment DEVCELL_HOSTNAME"},
		{"env", "flag", "flag", "flag --hostname"},
	} {
		s.Getenv = func(name string) string {
			if name == "DEVCELL_HOSTNAME" {
				return tt.environment
			}
			return ""
		}
		s.Flags = nil
		if tt.flag != "" {
			s.Flags = map[string]string{"cell.hostname": tt.flag}
		}
		e := load(t, s)
		if got := e.Config().Cell.Hostname; got != tt.want {
			t.Errorf("hostname %q, want %q", got, tt.want)
		}
		i := slices.IndexFunc(e.Values(), func(v Value) bool { return v.Key == "cell.hostname" })
		if i < 0 || !strings.HasSuffix(e.Values()[i].Origin.String(), tt.origin) {
			t.Errorf("origins: %+v, want %s", e.Values(), tt.origin)
		}
	}
	e := load(t, s)
	if c := e.Config(); c.Cell.Stack != "node" || c.Docker.MemLimit != "1g" || c.Docker.CPULimit != "2" {
		t.Errorf("%+v", c)
	}
}

func TestFaultsHaveTheirPlace(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown key", "[cell]\nstack = 'x'\n  stak = 'x'", "3:3: cell.stak: unknown key; did you mean stack?"},
		{"unknown table, once", "[onepassword]\na = 1\nb = 2", "1:2: onepassword: unknown key"},
		{"unknown dotted key", "cell.stack = 'x'\ndocker.host = 'x'", "2:1: docker.host: unknown key"},
		{"in an inline table", "llm = { provider = 'x',\n modl = 'y' }", "2:2: llm.modl"},
		{"type", "\n\n[docker]\nmem_limit = 4", "4:1: docker.mem_limit: is a whole number and must be a string; put it in quotes"},
		{"type of a table", "cell = 4", "1:1: cell: is a whole number and must be a table"},
		{"type in a list", "[cell]\nports = [\n '1',\n 2,\n]", "4:2: cell.ports.1: is a whole number and must be a string"},
		{"type in [env]", "[env]\n# comment\nPORT = 3000", "3:1: env.PORT: is a whole number"},
		{"quoted key", "[env]\n\"a=b\" = 'x'", "2:1: env.\"a=b\": \"a=b\" is no name"},
		{"entry of an array of tables", "[[wireguard]]\nname='a'\n[[wireguard]]\nnme = 'b'", "4:1: wireguard.1.nme: unknown key; did you mean name?"},
		{"after a long string", "[llm]\nsystem_prompt = \"\"\"\n[cell]\nstak = 1\n\"\"\"\nx = 1", "6:1: llm.x"},
		{"syntax", "[cell]\nstack = ", "2:"},
		{"engine", "[cell]\nengine = 'xen'", "2:1: cell.engine: \"xen\" is none of host, docker"},
		{"volume", "[cell]\nvolumes = ['/a:b']", "2:12: cell.volumes.0: volume \"/a:b\": the path inside"},
		{"port", "[cell]\nports = ['70000']", "2:10: cell.ports.0: port \"70000\""},
		{"NUL", "[env]\nA = \"\\u0000\"", "2:1: env.A: holds a NUL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := files(t, "", tt.text)
			problems := faults(t, s)
			if len(problems) != 1 {
				t.Errorf("got %d problems: %v", len(problems), problems)
			}
			want := filepath.Join(s.ProjectDir, "devcell.toml") + ":" + tt.want
			if got := problems[0].String(); !strings.Contains(got, want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestEveryFaultOfBothFilesIsReported(t *testing.T) {
	problems := faults(t, files(t, "[cell]\nstak = 1\ndocker_host = 2", "[mcp]\ndocker_host = 1\n[env]\nA = 1"))
	var keys []string
	for _, p := range problems {
		keys = append(keys, p.Key)
	}
	if got := strings.Join(keys, " "); got != "cell.docker_host cell.stak env.A mcp" {
		t.Errorf("got %s", got)
	}
}

func TestASecretWrittenIntoTheFileIsNotRepeatedInTheError(t *testing.T) {
	for _, p := range faults(t, files(t, "[secrets]\nGITHUB_TOKEN = 'ghp_canary'", "")) {
		if strings.Contains(p.String(), "canary") || !strings.Contains(p.String(), "secrets.GITHUB_TOKEN") {
			t.Error(p)
		}
	}
}

func TestTildeAndRelativePathsStartWhereTheFileLies(t *testing.T) {
	s := files(t, "[llm]\nsystem_prompt_file = 'base.md'\n[secrets]\nA = 'file:~/a'",
		"[llm]\nappend_system_prompt_file = '~/more.md'\n[cell]\nvolumes = ['~/data:/data:ro', './x:/x', '/same', '$HOME/y:/y']")
	c := load(t, s).Config()
	if got, want := c.LLM.SystemPromptFile, filepath.Join(filepath.Dir(s.GlobalFile), "base.md"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if c.LLM.AppendSystemPromptFile != "/home/ada/more.md" || c.Secrets.Sources["A"] != "file:/home/ada/a" {
		t.Errorf("%+v", c)
	}
	project, _ := filepath.EvalSymlinks(s.ProjectDir)
	want := []string{"/home/ada/data:/data:ro", project + "/x:/x", "/same:/same", "$HOME/y:/y"}
	if !slices.Equal(c.Cell.Volumes, want) {
		t.Errorf("got %q, want %q", c.Cell.Volumes, want)
	}
}

func TestListsAreUnitedByWhatTheyNameInside(t *testing.T) {
	c := load(t, files(t, "[cell]\nvolumes = ['/a:/data/', '/b:/b']\nports = ['8080:3000', '9000']\nmodules = ['go']",
		"[cell]\nvolumes = ['/c:/data', '/d:/d']\nports = ['8081:3000', '53:53/udp']\nmodules = ['go', 'node']")).Config()
	for _, tt := range []struct{ got, want []string }{
		{c.Cell.Volumes, []string{"/c:/data", "/b:/b", "/d:/d"}},
		{c.Cell.Ports, []string{"8081:3000", "9000", "53:53/udp"}},
		{c.Cell.Modules, []string{"go", "node"}},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestAValueTakesItsCompanionsWithIt(t *testing.T) {
	for _, tt := range []struct {
		name, global, project string
		want                  LLMSection
	}{
		{"another provider drops the model", "[llm]\nprovider='ollama'\nmodel='x'", "[llm]\nprovider='openrouter'", LLMSection{Provider: "openrouter"}},
		{"the same provider keeps it", "[llm]\nprovider='ollama'\nmodel='x'", "[llm]\nprovider='ollama'", LLMSection{Provider: "ollama", Model: "x"}},
		{"a model of its own stays", "[llm]\nprovider='ollama'\nmodel='x'", "[llm]\nprovider='openrouter'\nmodel='y'", LLMSection{Provider: "openrouter", Model: "y"}},
		{"text stands above a file", "[llm]\nsystem_prompt_file='/f'", "[llm]\nsystem_prompt='t'", LLMSection{SystemPrompt: "t"}},
		{"a file stands above text", "[llm]\nappend_system_prompt='t'", "[llm]\nappend_system_prompt_file='/f'", LLMSection{AppendSystemPromptFile: "/f"}},
		{"both in one file are a conflict for the resolver", "", "[llm]\nsystem_prompt='t'\nsystem_prompt_file='/f'", LLMSection{SystemPrompt: "t", SystemPromptFile: "/f"}},
	} {
		got := load(t, files(t, tt.global, tt.project)).Config().LLM
		if got.Provider != tt.want.Provider || got.Model != tt.want.Model || got.SystemPrompt != tt.want.SystemPrompt ||
			got.SystemPromptFile != tt.want.SystemPromptFile || got.AppendSystemPrompt != tt.want.AppendSystemPrompt || got.AppendSystemPromptFile != tt.want.AppendSystemPromptFile {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
