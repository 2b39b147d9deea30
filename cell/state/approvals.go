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

// SetDirectoryTrust keeps the user's answer whether agents on this host need not
// ask about a project's directory (absolute).
func (db *DB) SetDirectoryTrust(ctx context.Context, directory string, trusted bool) error {
	_, err := db.sql.ExecContext(ctx, `INSERT INTO state_directories (directory, trusted, at) VALUES (?, ?, ?)
		ON CONFLICT (directory) DO UPDATE SET trusted = excluded.trusted, at = excluded.at`, directory, trusted, moment(db.now()))
	if err != nil {
		return fmt.Errorf("keep the answer about %s: %w", directory, Explain(err))
	}
	return nil
}

// DirectoryTrust is that answer; answered is false when the user was never asked.
func (db *DB) DirectoryTrust(ctx context.Context, directory string) (trusted, answered bool, err error) {
	err = db.sql.QueryRowContext(ctx, `SELECT trusted FROM state_directories WHERE directory = ?`, directory).Scan(&trusted)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("read the answer about %s: %w", directory, Explain(err))
	}
	return trusted, true, nil
}
