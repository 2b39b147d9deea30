package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellmux/tui/cli"
)

func TestFlagsThatExcludeEachOtherAreWrongUse(t *testing.T) {
	h := newHouse(t)
	for _, args := range [][]string{{"trust", "--yes", "--revoke"}, {"trust", "--yes", "--show"}, {"wait", "--nonsense"}} {
		if code, _, stderr := h.cellmux(args...); code != cli.ExitUsage || !strings.Contains(stderr, "--help") {
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
	}
}

func TestASecondCellOfADirectoryIsSaid(t *testing.T) {
	h := newHouse(t)
	if code, stdout, stderr := h.cellmux("new"); code != 0 || stdout != "api\n" || stderr != "" {
		t.Fatalf("exit code %d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, stderr := h.cellmux("new"); code != 0 || stdout != "api-2\n" || !strings.Contains(stderr, "is the cell api already; api-2 is another") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	sub := filepath.Join(h.home, "api", "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, stderr := h.cellmux("new", sub); stderr != "" {
		t.Errorf("a directory below is another one: %q", stderr)
	}
}

func TestAProjectFileIsApprovedBeforeItsDirectoryIsACell(t *testing.T) {
	h := newHouse(t)
	file := filepath.Join(h.home, "api", "devcell.toml")
	if err := os.WriteFile(file, []byte("[env]\nNOW = \"$(date)\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, given := range [][]string{{"trust"}, {"trust", filepath.Dir(file)}} {
		if code, stdout, stderr := h.cellmux(given...); code != cli.ExitRefused || !strings.Contains(stdout, "env.NOW") {
			t.Errorf("%q: exit code %d, %q, %q", given, code, stdout, stderr)
		}
	}
	h.must("trust", "--yes")
	if _, stdout, stderr := h.cellmux("trust"); stdout != "" || !strings.Contains(stderr, "Nothing of") {
		t.Errorf("%q, %q", stdout, stderr)
	}
	if list := h.must("ls", "--json"); strings.Contains(list, `"name": "api"`) {
		t.Errorf("approving made a cell: %s", list)
	}
	h.must("new")
	if list := h.must("ls", "--json"); strings.Contains(list, `"approval": "`) {
		t.Errorf("the approval did not hold for the cell: %s", list)
	}
	h.must("trust", "--revoke")
	if code, _, _ := h.cellmux("trust"); code != cli.ExitRefused {
		t.Errorf("exit code %d after the approval was taken back", code)
	}
	if code, _, _ := h.cellmux("trust", filepath.Join(h.home, "nothing")); code != cli.ExitNotFound {
		t.Errorf("exit code %d for a directory that is not there", code)
	}
}

func TestAPaneThatCannotBeOpenedLeavesNoSlotAndSaysWhatStays(t *testing.T) {
	h := newHouse(t)
	code, stdout, stderr := h.cellmux("open", ".", "--agent", "nosuch")
	if code == 0 || stdout != "" || !strings.Contains(stderr, "The cell api stays, without a pane") ||
		!strings.Contains(stderr, "no agent has that name; the agents are claude") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	if list := h.must("ls", "--json"); strings.Contains(list, `"ref"`) {
		t.Errorf("a slot was left behind: %s", list)
	}
	if got := h.must("open", ".", "--agent", "shell"); !strings.HasPrefix(got, "api:") {
		t.Errorf("%q", got)
	}
}

func TestSettingsThatTheScreenWouldRefuseAreRefusedByEverything(t *testing.T) {
	h := newHouse(t)
	file := filepath.Join(h.home, ".config", "cellmux", "config.toml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, said := range map[string]string{
		"[screen]\ntheme = 'nope'\n":                `no theme is called "nope"`,
		"[keys]\nattach = ['q']\n":                  `attach in the list and quit anywhere both want "q"`,
		"[keys]\nnosuch = ['q']\n":                  "[keys] nosuch: no binding has this name",
		"[screen]\ntheme = 'mine'\n[themes.mine]\n": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := h.cellmux("config", "check")
		if said == "" && code != 0 || said != "" && (code != cli.ExitFailed || !strings.Contains(stderr, file+": ") || !strings.Contains(stderr, said)) {
			t.Errorf("%q: exit code %d: %s", text, code, stderr)
		}
	}
}
