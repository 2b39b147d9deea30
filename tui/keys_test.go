package tui_test

import (
	"os"
	"strings"
	"testing"

	"cellmux/tui"
	"cellmux/tui/tuitest"
)

func TestTheKeysPageIsFresh(t *testing.T) {
	const path = "../docs/keys.md"
	if *update {
		if err := os.WriteFile(path, []byte(tui.KeysDocument()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != tui.KeysDocument() {
		t.Errorf("%s is stale: go test ./tui -run KeysPage -update writes it", path)
	}
}

func TestAPlusIsShownAsThePlusItIs(t *testing.T) {
	page := tui.KeysDocument()
	for _, row := range []string{"| `+` | `zoom-in` |", "| `-` | `last` |", "| `ctrl-d` | `half-down` |"} {
		if !strings.Contains(page, row) {
			t.Errorf("the keys page has no row %s", row)
		}
	}
}

func TestTheBuiltInKeysDoNotClash(t *testing.T) {
	if err := tui.CheckKeys(nil); err != nil {
		t.Error(err)
	}
}

func TestKeysOfTheUserAreCheckedAtLoad(t *testing.T) {
	for name, c := range map[string]struct {
		keys map[string][]string
		want string // part of the error; "" none
	}{
		"another key":            {map[string][]string{"stop": {"X"}}, ""},
		"two presses":            {map[string][]string{"stop": {"c c"}}, ""},
		"taken away":             {map[string][]string{"pin": {}}, ""},
		"swapped":                {map[string][]string{"stop": {"d"}, "delete": {"x"}}, ""},
		"clash":                  {map[string][]string{"stop": {"d"}}, `stop and delete both want "d" in the list`},
		"clash with a prefix":    {map[string][]string{"stop": {"g"}}, `stop wants "g" in the list, which begins a longer binding`},
		"takes the way out":      {map[string][]string{"attach": {"q"}}, `attach in the list and quit anywhere both want "q"`},
		"would do nothing":       {map[string][]string{"quit": {"x"}}, `stop in the list and quit anywhere both want "x"`},
		"unknown name":           {map[string][]string{"explode": {"e"}}, "explode: no binding has this name"},
		"a key nobody can press": {map[string][]string{"stop": {"ctrl-enter"}}, "plain terminals cannot send"},
		"no key":                 {map[string][]string{"stop": {"hyper"}}, `"hyper" is no key`},
		"no way out":             {map[string][]string{"quit": {}}, "quit: must keep a key"},
		"empty":                  {map[string][]string{"stop": {""}}, "an empty key"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tui.CheckKeys(c.keys)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAnOverriddenKeyIsUsedAndShownEverywhere(t *testing.T) {
	settings := tui.Settings{Keys: map[string][]string{"help": {"H"}, "stop": {"c c"}, "restart": {"ctrl-e"}}}
	tuitest.Run(t, tuitest.Sample(), tuitest.Options{Settings: settings}, func(ui *tuitest.UI) {
		ui.Row("H help").Row("cc stop").Row("stopped", "(ctrl-e: ")
		ui.Press("1", "j", "j", "x").NotCalled("Stop").Press("c").Row("c-").Press("c").Called("Stop api-auth:1")
		ui.Press("?").NoRow("Keys in the list").Press("H").Row("Keys in the list")
	})
}

func TestHelpSaysWhyABindingIsOff(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press("?").Row("Keys in the list")
		golden(t, ui, "help-120x36")
		ui.Press("G").Row("Back from an attached pane: ctrl-q, F12").Press("esc").NoRow("Keys in the list")
		ui.Press("f1").Row("Keys in the list").Press("q")
		if ui.Quit() {
			t.Fatal("q in a box quit cellmux")
		}
	})
}

func TestThePaletteHasEveryActionAndSaysWhyOneIsOff(t *testing.T) {
	screen(t, func(ui *tuitest.UI) {
		ui.Press(":").Row("Commands").Type("trust").Row(":trust", "nothing of its project file waits")
		ui.Press("enter").Row(":trust: nothing of its project file waits").Press("esc")
		ui.Press("ctrl+p").Type("show-info").Press("enter").Row("Reference", "api-auth")
		ui.Press("ctrl+p")
		golden(t, ui, "palette-120x36")
	})
}
