package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// arrows is the import policy of docs/architecture.md. "a < b" means that b may
// import a, and all that a may import. Don't change it to make a build pass:
// an arrow is a decision, and belongs in docs/adr first.
const arrows = `
proc < cell/git < cell
cell/cfg < cell
proc, cell/cfg, cell, cell/lock < cell/state, cell/forge
cell/lock < convo, cell

proc < shell, convo
protocol < shellctx < shell, convo

proc, cell/git, cell/cfg, cell < engine
engine < engine/host, engine/docker, engine/tart, engine/winkit, engine/microvm, engine/tmux
engine, engine/tmux < engine/agent

shell, engine, shellctx, proc < run
run, convo < remote

cell/state, engine/tmux, engine/agent, engine/host, engine/docker, engine/tart, engine/winkit, engine/microvm, run, convo, cell/forge < engine/fleet

engine/fleet, engine, cell, cell/cfg, shellctx, protocol, run, convo < tui
engine/fleet, engine, cell, cell/cfg, shellctx, protocol, run, convo, tui/settings < tui/cli
engine/fleet < tui/settings
tui/input, tui/settings < tui
proc < tui/terminal
`

// short names that arrows uses for packages below longer paths.
var packagePath = map[string]string{
	"proc":     "cell/proc",
	"shell":    "shellctx/shell",
	"run":      "shellctx/run",
	"convo":    "shellctx/convo",
	"remote":   "shellctx/remote",
	"protocol": "shellctx/protocol",
}

// packagesFree may import anything: they are programs, or made for tests alone.
func isFree(path string) bool {
	if path == "" { // main wires everything
		return true
	}
	for _, part := range strings.Split(path, "/") {
		if strings.HasSuffix(part, "test") || part == "bench" || part == "e2e" || part == "testdata" {
			return true
		}
	}
	return false
}

type listedPackage struct {
	ImportPath string
	Imports    []string
}

func listPackages(t *testing.T) []listedPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listedPackage
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("go list answered something unreadable: %v", err)
		}
		packages = append(packages, p)
	}
}

// mayImport closes arrows transitively.
func mayImport(t *testing.T) map[string]map[string]bool {
	t.Helper()
	full := func(name string) string {
		name = strings.TrimSpace(name)
		if p, ok := packagePath[name]; ok {
			return p
		}
		return name
	}
	allowed := map[string]map[string]bool{}
	add := func(from, to string) {
		if allowed[to] == nil {
			allowed[to] = map[string]bool{}
		}
		allowed[to][from] = true
	}
	for line := range strings.Lines(arrows) {
		groups := strings.Split(strings.TrimSpace(line), "<")
		for i := 0; i+1 < len(groups); i++ {
			for from := range strings.SplitSeq(groups[i], ",") {
				for to := range strings.SplitSeq(groups[i+1], ",") {
					add(full(from), full(to))
				}
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for to, froms := range allowed {
			for from := range froms {
				for further := range allowed[from] {
					if !allowed[to][further] {
						allowed[to][further] = true
						changed = true
					}
				}
			}
		}
	}
	for to, froms := range allowed {
		if froms[to] {
			t.Fatalf("the arrows go in a circle through %s", to)
		}
	}
	return allowed
}

func TestPackagesImportOnlyAlongTheArrows(t *testing.T) {
	allowed := mayImport(t)
	for _, p := range listPackages(t) {
		path := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "cellmux"), "/")
		if isFree(path) {
			continue
		}
		for _, imported := range p.Imports {
			below, ours := strings.CutPrefix(imported, "cellmux/")
			if ours && !allowed[path][below] {
				t.Errorf("%s imports %s: no arrow allows it", path, below)
			}
		}
	}
}

func TestFencedPackagesStayInTheirRooms(t *testing.T) {
	fences := []struct {
		what   string
		match  func(imported string) bool
		rooms  []string
		reason string
	}{
		{
			what:   "os/exec",
			match:  func(s string) bool { return s == "os/exec" },
			rooms:  []string{"cell/proc", "shellctx/shell"},
			reason: "processes are started in one place, with a deadline and a reaper",
		},
		{
			what: "Charm's UI packages",
			match: func(s string) bool {
				return strings.HasPrefix(s, "github.com/charmbracelet/") && s != "github.com/charmbracelet/x/ansi"
			},
			rooms:  []string{"", "tui", "tui/*"},
			reason: "domain packages do not speak of screens",
		},
	}
	for _, p := range listPackages(t) {
		path := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "cellmux"), "/")
		if path != "" && isFree(path) {
			continue
		}
		for _, fence := range fences {
			if slices.ContainsFunc(fence.rooms, func(room string) bool {
				prefix, tree := strings.CutSuffix(room, "/*")
				return path == room || tree && strings.HasPrefix(path, prefix+"/")
			}) {
				continue
			}
			for _, imported := range p.Imports {
				if fence.match(imported) {
					t.Errorf("%s imports %s, which belongs to %q alone: %s", path, imported, fence.rooms, fence.reason)
				}
			}
		}
	}
}

func TestTheScreenTouchesNothingButItsPorts(t *testing.T) {
	forbidden := []string{
		"os", "os/exec", "net", "net/http", "database/sql", "modernc.org/sqlite",
		"cellmux/cell/state", "cellmux/engine/host", "cellmux/engine/docker", "cellmux/engine/tmux", "cellmux/engine/agent",
	}
	for _, p := range listPackages(t) {
		if p.ImportPath != "cellmux/tui" {
			continue
		}
		for _, imported := range p.Imports {
			if slices.Contains(forbidden, imported) {
				t.Errorf("tui imports %s; it asks its ports instead", imported)
			}
		}
	}
}

func TestTheWireFormIsADependencyFreeLeaf(t *testing.T) {
	for _, p := range listPackages(t) {
		if p.ImportPath != "cellmux/shellctx" && p.ImportPath != "cellmux/shellctx/protocol" {
			continue
		}
		for _, imported := range p.Imports {
			first, _, _ := strings.Cut(imported, "/")
			if strings.Contains(first, ".") || strings.HasPrefix(imported, "cellmux/") && imported != "cellmux/shellctx/protocol" {
				t.Errorf("%s imports %s; it may use the standard library and protocol alone", p.ImportPath, imported)
			}
		}
	}
}
