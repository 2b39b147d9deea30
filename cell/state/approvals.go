package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Approve notes that the user approved a project file (absolute path) with the
// given hash. A file has one approved hash at a time.
func (db *DB) Approve(ctx context.Context, file, hash string) error {
	_, err := db.sql.ExecContext(ctx, `INSERT INTO state_approvals (file, hash, at) VALUES (?, ?, ?)
		ON CONFLICT (file) DO UPDATE SET hash = excluded.hash, at = excluded.at`, file, hash, moment(db.now()))
	if err != nil {
		return fmt.Errorf("note the approval of %s: %w", file, Explain(err))
	}
	return nil
}

// Approved returns the hash that the user approved for a file, "" for none.
func (db *DB) Approved(ctx context.Context, file string) (string, error) {
	var hash string
	err := db.sql.QueryRowContext(ctx, `SELECT hash FROM state_approvals WHERE file = ?`, file).Scan(&hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read the approval of %s: %w", file, Explain(err))
	}
	return hash, nil
}

// Revoke forgets the approval of a file.
func (db *DB) Revoke(ctx context.Context, file string) error {
	if _, err := db.sql.ExecContext(ctx, `DELETE FROM state_approvals WHERE file = ?`, file); err != nil {
		return fmt.Errorf("revoke the approval of %s: %w", file, Explain(err))
	}
	return nil
}
