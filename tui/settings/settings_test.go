package settings

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestNoFileIsTheDefaults(t *testing.T) {
	s, err := Load(filepath.Join(t.TempDir(), "config.toml"))
	if err != nil || !reflect.DeepEqual(s, Settings{}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSettingsAreRead(t *testing.T) {
	s, err := Parse("config.toml", `
[screen]
theme = "mine"
sort = "name"
[keys]
quit = ["q", "ctrl-x"]
pin = []
[themes.mine]
waiting = "yellow bold"
[agents.custom.aider]
command = ["aider", "--session", "{session}"]
settle = "1s"
asking = '\(Y\)es'
[tmux]
detach = ["C-]"]
history = 500
`)
	if err != nil {
		t.Fatal(err)
	}
	if s.Screen.Theme != "mine" || len(s.Keys["quit"]) != 2 || s.Keys["pin"] == nil || s.Themes["mine"]["waiting"] != "yellow bold" ||
		s.Agents.Custom["aider"].Command[2] != "{session}" || s.Tmux.History != 500 {
		t.Errorf("%+v", s)
	}
}

func TestFaultsNameFileLineAndColumn(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[screen\n", "c.toml:1:"},
		{"[screen]\ntheme = \n", "c.toml:2:9"},
		{"[screen]\n  themes = \"x\"\n", "c.toml:2:3: screen.themes: unknown setting; there are theme,"},
		{"[scren]\ntheme = \"x\"\nsort = \"y\"\n", "c.toml:1:2: scren"},
		{"[screen]\nascii = \"yes\"\n", "c.toml:2:1: screen.ascii:"},
		{"[screen]\nsort = \"size\"\n", `c.toml:2:1: screen.sort: "size" is none of attention, name, created`},
		{"[keys]\nquit = \"q\"\n", "c.toml:2:1: keys.quit:"},
		{"[keys]\nquit = [\"\"]\n", "c.toml:2:1: keys.quit:"},
		{"[agents.custom.x]\nsettle = \"soon\"\ncommand = [\"x\"]\n", "c.toml:2:1: agents.custom.x.settle:"},
		{"[agents.custom.x]\nsettle = \"1s\"\n", "c.toml:1:2: agents.custom.x: needs a command"},
		{"[agents.custom.x]\ncommand = [\"x\"]\nready = \"(\"\n", "c.toml:3:1: agents.custom.x.ready:"},
		{"[agents.custom.x]\ncommand = [\"x\"]\nbusy = \"[\"\n", "c.toml:3:1: agents.custom.x.busy:"},
		{"[agents.custom.x]\ncommand = [\"x\"]\nasking = \"*\"\n", "c.toml:3:1: agents.custom.x.asking:"},
		{"[agents.custom.x]\ncommand = [\"x\"]\nheadless = []\n", "c.toml:3:1: agents.custom.x.headless:"},
		{"[agents.custom.x]\ncommand = [\"x\"]\ninterrupt = [\"\"]\n", "c.toml:3:1: agents.custom.x.interrupt:"},
		{"[agents.custom.x]\ncommand = [\"x\"]\nbussy = \"x\"\n", "c.toml:3:1: agents.custom.x.bussy: unknown setting"},
		{"[tmux]\nsocket = \"/tmp/x\"\n", "c.toml:2:1: tmux.socket:"},
		{"a = 1\na = 2\n", "c.toml:2:"},
	} {
		_, err := Parse("c.toml", c.text)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s…", c.text, err, c.want)
		}
	}
}

func TestTableThatNobodyKnowsIsOneFault(t *testing.T) {
	_, err := Parse("c.toml", "[scren]\ntheme = \"x\"\nsort = \"y\"\n")
	if err == nil || strings.Count(err.Error(), "\n") != 0 {
		t.Errorf("%v", err)
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	_, err := Parse("c.toml", "[tmux]\nhistory = -1\n[screen]\nsort = \"size\"\nnope = 1\n")
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNoFileIsRefusedBeforeItIsRead(t *testing.T) {
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
	big := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big); err == nil {
		t.Error("a huge file was read")
	}
}
