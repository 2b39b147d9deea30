package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestADirectoryOfTheHostIsAskedAboutOnceForEveryAgent(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		w := newWorld(t, func(o *Options) {
			o.LookPath = func(program string) (string, error) { return "/usr/bin/" + program, nil }
		})
		name := w.cellWith(t)
		first, err := w.FirstContact(t.Context(), name, "")
		if err != nil || first.Directory != w.project || first.Agent != "Claude Code" || len(first.Asks) == 0 || first.File != "~/.claude.json" {
			t.Fatalf("%+v, %v", first, err)
		}
		if none, err := w.FirstContact(t.Context(), name, "opencode"); err != nil || len(none.Asks) != 0 {
			t.Errorf("of an agent that asks nothing: %+v, %v", none, err)
		}
		if err := w.AnswerFirstContact(t.Context(), first.Directory, trusted); err != nil {
			t.Fatal(err)
		}
		for _, agent := range []string{"", "claude", "codex", "gemini"} {
			if again, err := w.FirstContact(t.Context(), name, agent); err != nil || len(again.Asks) != 0 {
				t.Errorf("asked again for %q: %+v, %v", agent, again, err)
			}
		}
		if _, err := w.Open(t.Context(), name, "codex"); err != nil {
			t.Fatal(err)
		}
		if got := w.opener.requests[0].Trusted; got != trusted {
			t.Errorf("the launch is told %v, the user said %v", got, trusted)
		}
		// Another directory is another question.
		other := filepath.Join(filepath.Dir(w.project), "other")
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		second, err := w.NewCell(t.Context(), NewCell{ProjectDir: other})
		if err != nil {
			t.Fatal(err)
		}
		if ask, err := w.FirstContact(t.Context(), second, "claude"); err != nil || ask.Directory != other || !slices.Contains(ask.Asks, "whether you trust the directory") {
			t.Errorf("%+v, %v", ask, err)
		}
	}
}

func TestACellWithAHomeOfItsOwnIsArrangedWithoutAsking(t *testing.T) {
	w := newWorld(t)
	name := w.cellWith(t)
	if _, err := w.db.SQL().ExecContext(t.Context(), `UPDATE state_cells SET engine = 'docker' WHERE name = ?`, name); err != nil {
		t.Fatal(err)
	}
	if ask, err := w.FirstContact(t.Context(), name, "claude"); err != nil || len(ask.Asks) != 0 || ask.Directory != "" {
		t.Errorf("%+v, %v", ask, err)
	}
}
