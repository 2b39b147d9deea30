package cfg

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// deprecation is a key that still works, under another name.
type deprecation struct {
	old, new string // dotted; new "" has no effect any more
	// convert turns the old value into the new one; nil keeps it. Not ok leaves
	// it to the new key's own check.
	convert func(old any) (any, bool)
}

var deprecations = []deprecation{
	{old: "op", new: "secrets.onepassword"},
	{old: "secrets.op", new: "secrets.onepassword"},
	{old: "ports.forward", new: "cell.ports"},
	{old: "volumes", new: "cell.volumes", convert: mountsOf},
	{old: "mcp.enabled", new: "cell.mcps"},
	{old: "cell.gui", new: "gui.enabled"},
	{old: "cell.nixhome", new: "nix.nixhome"},
	{old: "cell.thin"},
	{old: "llm.use_ollama", new: "llm.provider", convert: providerIfTrue("ollama")},
	{old: "llm.use_openrouter", new: "llm.provider", convert: providerIfTrue("openrouter")},
	{old: "llm.models.default", new: "llm.model"},
	{old: "llm.models.providers", new: "llm.providers"},
	{old: "packages.npm", new: "packages.node"},
	{old: "packages.nix.stable", new: "cell.packages"},
}

// retiredPrefixes begin keys of [cell] whose engines are gone or renamed.
var retiredPrefixes = map[string]string{
	"qemu_":    "winkit_",
	"vagrant_": "",
	"libvirt_": "",
}

func mountsOf(old any) (any, bool) {
	tables, ok := old.([]map[string]any)
	if !ok {
		return old, false
	}
	mounts := make([]any, 0, len(tables))
	for _, table := range tables {
		mounts = append(mounts, table["mount"])
	}
	return mounts, true
}

func providerIfTrue(provider string) func(any) (any, bool) {
	return func(old any) (any, bool) {
		on, ok := old.(bool)
		if !ok {
			return old, false
		}
		if !on {
			return nil, true
		}
		return provider, true
	}
}

// modernized returns the tree of a layer's document with its deprecated keys
// under their new names, and one notice for each of them. A new key that is
// written stands above its old name.
func modernized(l layer) (map[string]any, []Problem) {
	tree := cloneTree(l.doc.tree)
	var notices []Problem
	if filepath.Base(l.doc.path) == oldProjectFileName {
		notices = append(notices, Problem{File: l.doc.path, Message: "this name is deprecated: rename the file to " + ProjectFileName})
	}
	for _, d := range append(slices.Clone(deprecations), retired(tree)...) {
		oldKey := toml.Key(strings.Split(d.old, "."))
		value, ok := takeKey(tree, oldKey)
		if !ok {
			continue
		}
		instead := "remove it, it has no effect"
		if d.new != "" {
			instead = "write " + d.new
		}
		notices = append(notices, l.problem(oldKey, "is deprecated: %s", instead))
		if d.convert != nil {
			value, _ = d.convert(value)
		}
		newKey := toml.Key(strings.Split(d.new, "."))
		if d.new == "" || value == nil || hasKey(tree, newKey) {
			continue
		}
		setKey(tree, newKey, value)
		if offset, ok := l.doc.offsets[oldKey.String()]; ok {
			l.doc.offsets[newKey.String()] = offset
		}
	}
	if cell, ok := tree["cell"].(map[string]any); ok && cell["engine"] == "qemu" {
		cell["engine"] = "winkit"
		notices = append(notices, l.problem(toml.Key{"cell", "engine"}, "qemu is deprecated: write winkit"))
	}
	return tree, notices
}

// retired finds the keys of engines that are gone.
func retired(tree map[string]any) []deprecation {
	cell, _ := tree["cell"].(map[string]any)
	var found []deprecation
	for _, name := range slices.Sorted(maps.Keys(cell)) {
		for prefix, replacement := range retiredPrefixes {
			rest, ok := strings.CutPrefix(name, prefix)
			if !ok || strings.Contains(name, ".") {
				continue
			}
			d := deprecation{old: "cell." + name}
			if replacement != "" {
				d.new = fmt.Sprintf("cell.%s%s", replacement, rest)
			}
			found = append(found, d)
		}
	}
	return found
}

func cloneTree(tree map[string]any) map[string]any {
	clone := make(map[string]any, len(tree))
	for name, value := range tree {
		if table, ok := value.(map[string]any); ok {
			value = cloneTree(table)
		}
		clone[name] = value
	}
	return clone
}

// takeKey removes a key, and the tables that it leaves empty.
func takeKey(tree map[string]any, key toml.Key) (any, bool) {
	value, ok := tree[key[0]]
	if !ok {
		return nil, false
	}
	if len(key) == 1 {
		delete(tree, key[0])
		return value, true
	}
	table, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	taken, ok := takeKey(table, key[1:])
	if ok && len(table) == 0 {
		delete(tree, key[0])
	}
	return taken, ok
}

func hasKey(tree map[string]any, key toml.Key) bool {
	for i, part := range key {
		value, ok := tree[part]
		if !ok || i == len(key)-1 {
			return ok
		}
		if tree, ok = value.(map[string]any); !ok {
			return false
		}
	}
	return false
}
