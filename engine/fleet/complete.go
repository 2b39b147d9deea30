package fleet

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cellmux/cell"
	"cellmux/engine"
)

// maxChoices bounds what Complete returns.
const maxChoices = 50

// Complete returns the lines that a `!` line may become when the word at the
// cursor (in bytes) is completed: earlier lines of the slot that begin with it,
// programs on PATH for a first word, and paths. It starts nothing. In a guest
// only earlier lines are known.
func (s *Shell) Complete(ctx context.Context, r Ref, line string, cursor int) ([]string, error) {
	request, err := s.request(ctx, r, false)
	if err != nil {
		return nil, err
	}
	cursor = min(max(cursor, 0), len(line))
	before, after := line[:cursor], line[cursor:]

	var choices []string
	if after == "" && strings.TrimSpace(before) != "" {
		earlier, err := s.service.Log(ctx, r.Cell, request.Slot, 200)
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(earlier) {
			if command := e.Record.Command; command != before && strings.HasPrefix(command, before) && !strings.Contains(command, "\n") {
				choices = append(choices, command)
			}
		}
	}
	if request.Cell.Kind == engine.Host {
		head, word := lastWord(before)
		var words []string
		if strings.TrimSpace(head) == "" && !strings.Contains(word, "/") && word != "" {
			words = programs(s.fleet.o.Path, word)
		}
		dir, _ := s.service.Directory(ctx, request.Cell, request.Slot, false)
		words = append(words, paths(dir, s.fleet.o.Home, word)...)
		for _, w := range words {
			choices = append(choices, head+w+after)
		}
	}
	return unique(choices, maxChoices), nil
}

// lastWord splits a line before the word that is being written. Quoting is not
// followed: a word with a quote in it completes to nothing.
func lastWord(line string) (head, word string) {
	at := strings.LastIndexAny(line, " \t;|&(<>=") + 1
	return line[:at], line[at:]
}

// programs are the executables on a PATH whose names begin with prefix.
func programs(path, prefix string) []string {
	var out []string
	for _, dir := range filepath.SplitList(path) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), prefix) || e.IsDir() {
				continue
			}
			if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.Mode()&0o111 != 0 {
				out = append(out, e.Name()+" ")
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// paths are the files that a half written path may mean, quoted for the shell.
func paths(dir, home, word string) []string {
	parent, prefix := filepath.Split(word)
	look := parent
	switch {
	case strings.HasPrefix(parent, "~/"):
		look = filepath.Join(home, parent[2:])
	case !filepath.IsAbs(parent):
		look = filepath.Join(dir, parent)
	}
	entries, err := os.ReadDir(look)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, prefix) || prefix == "" && strings.HasPrefix(name, ".") || strings.ContainsFunc(name, isControl) {
			continue
		}
		end := " "
		if info, err := os.Stat(filepath.Join(look, name)); err == nil && info.IsDir() {
			end = "/"
		}
		out = append(out, parent+cell.ShellQuote(name)+end)
	}
	return out
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

func unique(lines []string, most int) []string {
	seen := map[string]bool{}
	var out []string
	for _, l := range lines {
		if !seen[l] && len(out) < most {
			seen[l] = true
			out = append(out, l)
		}
	}
	return out
}
