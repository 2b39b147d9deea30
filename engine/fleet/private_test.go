package fleet

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/run"
)

// The real stores, joined as main joins them: what "!!" ran is in the shell log
// and in no conversation, search or export, nor in a row from which one could
// be made later.
func TestPrivateCommandIsInTheShellLogAlone(t *testing.T) {
	w := newWorld(t)
	name := w.cellWith(t, "claude")
	ref := Ref{name, 0}
	ctx := t.Context()
	for component, steps := range map[string][]string{"convo": convo.Migrations(), "run": run.Migrations()} {
		if err := w.db.Migrate(ctx, component, steps); err != nil {
			t.Fatal(err)
		}
	}
	talks := convo.New(convo.Options{DB: w.db.SQL(), LockDir: t.TempDir()})
	talk := NewConversation(w.Fleet, talks)
	commands := run.New(run.Options{
		DB: w.db.SQL(), Runner: proc.New(), SpillDir: filepath.Join(t.TempDir(), "spill"),
		Env:      func(context.Context, engine.Cell, int, bool) ([]string, error) { return os.Environ(), nil },
		OnRecord: talk.Record,
	})
	t.Cleanup(func() { _ = commands.Close(context.WithoutCancel(ctx)) })
	shell := NewShell(w.Fleet, commands)
	for _, line := range []struct {
		text string
		mode run.Mode
	}{{"echo zebra-told", run.Context}, {"echo zebra-hidden; exit 3", run.Private}} {
		handle, err := shell.Start(ctx, ref, line.text, line.mode, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := handle.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// A later cellmux that makes up for what an earlier one left must not either.
	if _, err := commands.Recover(ctx); err != nil {
		t.Fatal(err)
	}

	log, err := shell.Log(ctx, ref, 10)
	if err != nil || len(log) != 2 {
		t.Fatalf("the shell log has %d, %v", len(log), err)
	}
	var logged strings.Builder
	for _, e := range log {
		logged.WriteString(e.Record.Command + e.Record.Output)
	}
	if !strings.Contains(logged.String(), "zebra-told\n") || !strings.Contains(logged.String(), "zebra-hidden\n") {
		t.Errorf("the shell log has %q", logged.String())
	}

	page, err := talk.Page(ctx, ref, 0, 10)
	if err != nil || len(page) != 1 {
		t.Errorf("the conversation has %d messages, %v", len(page), err)
	}
	three := 3
	for _, q := range []convo.Query{{Text: "hidden"}, {Text: "zebra-hidden"}, {Text: "hid*"}, {Exit: &three}} {
		if hits, err := talk.Search(ctx, q); err != nil || len(hits) != 0 {
			t.Errorf("%+v found %d, %v", q, len(hits), err)
		}
	}
	if hits, err := talk.Search(ctx, convo.Query{Text: "zebra"}); err != nil || len(hits) != 1 {
		t.Errorf("what was told is found %d times, %v", len(hits), err)
	}
	var export bytes.Buffer
	if err := talks.Export(ctx, &export); err != nil {
		t.Fatal(err)
	}
	if got := export.String(); !strings.Contains(got, "zebra-told") || strings.Contains(got, "hidden") {
		t.Errorf("the export is %s", got)
	}
}
