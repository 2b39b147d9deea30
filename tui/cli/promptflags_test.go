package cli

import (
	"strings"
	"testing"

	"cellmux/cell"
	"cellmux/engine/fleet"
)

func TestPromptFlagsReachWhatOpenStarts(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{Status: fleet.Stopped})}
	got := call(t, w, nil, "open", "api", "--system-prompt-file", "base.md", "--append-system-prompt", "be terse")
	want := cell.ResolveOpts{FlagFile: "/src/api/base.md", AppendFlagInline: "be terse"}
	if got.code != ExitOK || w.prompts.FlagFile != want.FlagFile || w.prompts.AppendFlagInline != want.AppendFlagInline ||
		w.prompts.FlagInline != "" || w.prompts.AppendFlagFile != "" {
		t.Errorf("%+v, %+v", got, w.prompts)
	}
}

func TestPromptFlagsAreRefusedWhereTheyCannotHold(t *testing.T) {
	w := &world{snap: apiCell("/src/api", fleet.Slot{Status: fleet.Idle, Pane: "%1"})}
	for _, args := range [][]string{
		{"open", "api:0", "--system-prompt", "x"},
		{"send", "api:0", "text", "--append-system-prompt-file", "x"},
	} {
		if got := call(t, w, nil, args...); got.code != ExitUsage || !strings.Contains(got.stderr, "runs already") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	for _, args := range [][]string{
		{"open", "api", "--system-prompt", "x", "--system-prompt-file", "y"},
		{"send", "api:0", "text", "--append-system-prompt", "x", "--append-system-prompt-file", "y"},
	} {
		got := call(t, nil, nil, args...)
		if got.code != ExitUsage || !strings.Contains(got.stderr, args[len(args)-4]+" and "+args[len(args)-2]+" are mutually exclusive") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
