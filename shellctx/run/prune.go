package run

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// prune removes outputs kept on disk that are older than Limits.KeepFor, and of
// the others the oldest until they fit into Limits.KeepBytes. Records stay, with
// what they hold of the output. What still runs is left alone.
func (s *Service) prune(ctx context.Context) error {
	entries, err := os.ReadDir(s.opts.SpillDir)
	if os.IsNotExist(err) || s.opts.SpillDir == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for old output: %w", err)
	}
	rows, err := s.store.list(ctx, "WHERE handed = 0 AND ended = 0")
	if err != nil {
		return fmt.Errorf("look for old output: %w", err)
	}
	runs := make(map[string]bool, len(rows))
	for _, r := range rows {
		runs[r.ID] = true
	}
	type kept struct {
		id, path string
		size     int64
		written  time.Time
	}
	var files []kept
	for _, e := range entries {
		id, _, ok := strings.Cut(e.Name(), ".out") // ID.out, or ID.out.new of a crash
		info, err := e.Info()
		if !ok || err != nil || !info.Mode().IsRegular() || runs[id] {
			continue
		}
		files = append(files, kept{id, filepath.Join(s.opts.SpillDir, e.Name()), info.Size(), info.ModTime()})
	}
	slices.SortFunc(files, func(a, b kept) int { return cmp.Or(b.written.Compare(a.written), cmp.Compare(a.path, b.path)) })
	oldest, total := s.opts.Now().Add(-s.opts.Limits.KeepFor), int64(0)
	for _, f := range files {
		total += f.size
		if total <= s.opts.Limits.KeepBytes && !f.written.Before(oldest) {
			continue
		}
		if err := os.Remove(f.path); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("remove old output: %w", err)
		}
		if err := s.store.exec(ctx, "UPDATE executions SET spill = '' WHERE spill = ?", f.path); err != nil {
			return fmt.Errorf("note that old output was removed: %w", err)
		}
	}
	return nil
}
