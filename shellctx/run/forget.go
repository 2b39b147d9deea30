package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Forget removes the shell log of a slot for good, or with slot below 0 that of
// a whole cell: its rows, and the files with whole outputs. What still runs is
// not looked for; its slot is to have ended.
func (s *Service) Forget(ctx context.Context, cell string, slot int) error {
	spills, err := s.store.forget(ctx, cell, slot)
	if err != nil {
		return fmt.Errorf("forget the shell log of %s: %w", cell, err)
	}
	var failed []error
	for _, path := range spills {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("forget a command's output: %w", err))
		}
	}
	return errors.Join(failed...)
}

// forget removes the rows and returns the files that they named.
func (s *store) forget(ctx context.Context, cell string, slot int) (spills []string, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	rows, err := tx.QueryContext(ctx, `DELETE FROM executions WHERE cell = ?1 AND (slot = ?2 OR ?2 < 0) RETURNING spill`, cell, slot)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var path string
		if err := rows.Scan(&path); err != nil {
			return nil, err
		}
		if path != "" {
			spills = append(spills, path)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM shell_directories WHERE cell = ?1 AND (slot = ?2 OR ?2 < 0)`, cell, slot); err != nil {
		return nil, err
	}
	return spills, tx.Commit()
}
