package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
)

func TestMessageSaysTheUsersWord(t *testing.T) {
	w := &world{entry: convo.Entry{Seq: 412, Delivery: convo.Submitted}}
	if got := call(t, w, nil, "message", "again", "412"); got.code != 0 || got.stdout != "submitted\n" {
		t.Errorf("%+v", got)
	}
	if got := call(t, w, nil, "message", "drop", "7", "--json"); got.code != 0 || !strings.Contains(got.stdout, `"seq": 412`) {
		t.Errorf("%+v", got)
	}
	if want := []string{"say again 412", "say drop 7"}; !slices.Equal(w.asked, want) {
		t.Errorf("asked %q", w.asked)
	}
	for _, args := range [][]string{{"message"}, {"message", "repeat", "1"}, {"message", "again", "x"}, {"message", "again", "0"}} {
		if got := call(t, nil, nil, args...); got.code != ExitUsage {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestExportGoesToStandardOutputOrToAFileOfItsOwner(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{}, fleet.Slot{})}
	if got := call(t, w, nil, "export"); got.code != 0 || got.stdout != "exported\n" {
		t.Errorf("%+v", got)
	}
	file := filepath.Join(t.TempDir(), "out.jsonl")
	if got := call(t, w, nil, "export", "api:1", "-o", file); got.code != 0 || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	content, err := os.ReadFile(file)
	if err != nil || string(content) != "exported\n" {
		t.Errorf("%q, %v", content, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if want := []string{"export []", "export [api:1]"}; !slices.Equal(w.asked, want) {
		t.Errorf("asked %q", w.asked)
	}
}

func TestImportReadsAFileOrStandardInput(t *testing.T) {
	w := &world{}
	stdin := func(o *Options) { o.Stdin = strings.NewReader("lines") }
	if got := call(t, w, stdin, "import", "-"); got.code != 0 || got.stdout != "3 messages stored, 2 were there already\n" {
		t.Errorf("%+v", got)
	}
	file := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(file, []byte("file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := call(t, w, nil, "import", file, "--json"); got.code != 0 || !strings.Contains(got.stdout, `"known": 2`) {
		t.Errorf("%+v", got)
	}
	if want := []string{`import "lines"`, `import "file"`}; !slices.Equal(w.asked, want) {
		t.Errorf("asked %q", w.asked)
	}
	if got := call(t, nil, nil, "import", filepath.Join(t.TempDir(), "none")); got.code == 0 {
		t.Errorf("a file that is not there: %+v", got)
	}
}

func TestSearchSaysHowToGoOn(t *testing.T) {
	w := &world{hits: []convo.Hit{{Entry: convo.Entry{Seq: 31}}, {Entry: convo.Entry{Seq: 17}}}}
	if got := call(t, w, nil, "search", "npm", "-n", "2"); got.code != 0 || !strings.Contains(got.stderr, "--before 17") {
		t.Errorf("%+v", got)
	}
	if got := call(t, w, nil, "search", "npm", "-n", "3", "--before", "40"); got.code != 0 || w.query.Before != 40 || strings.Contains(got.stderr, "--before") {
		t.Errorf("%+v, %+v", got, w.query)
	}
	for _, args := range [][]string{{"-n", "0"}, {"--before", "-1"}, {"--before", "3", "--best"}} {
		if got := call(t, nil, nil, append([]string{"search", "npm"}, args...)...); got.code != ExitUsage {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestSearchTakesFiltersAmongTheWords(t *testing.T) {
	w := &world{}
	if got := call(t, w, nil, "search", "cell:api exit:!=0", "npm", "--agent", "codex", "-n", "5"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if q := w.query; q.Text != "npm" || q.Cell != "api" || q.Agent != "codex" || q.ExitNot == nil || *q.ExitNot != 0 || q.Limit != 5 {
		t.Errorf("%+v", q)
	}
	if got := call(t, nil, nil, "search", "exit:x"); got.code != ExitUsage || !strings.Contains(got.stderr, "exit:x") {
		t.Errorf("%+v", got)
	}
}

func TestRemovingForGoodIsAskedForByName(t *testing.T) {
	w := &world{}
	if got := call(t, w, nil, "rm", "--empty-trash", "--older", "720h"); got.code != 0 || !strings.Contains(got.stderr, "3 slots removed for good") {
		t.Errorf("%+v", got)
	}
	if want := []string{"empty the trash of 720h0m0s"}; !slices.Equal(w.asked, want) {
		t.Errorf("asked %q", w.asked)
	}
	for _, args := range [][]string{{"rm"}, {"rm", "--empty-trash", "api"}, {"rm", "--older", "1h", "api"}, {"rm", "--empty-trash", "--older", "-1h"}} {
		if got := call(t, nil, nil, args...); got.code != ExitUsage {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
