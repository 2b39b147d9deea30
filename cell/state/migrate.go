package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Migrate brings a component's tables to the version len(steps): step i takes
// them from version i to i+1, and each runs once per database, in a transaction
// of its own, whichever process comes first. Steps are never changed after a
// release, only added to. A database beyond the last step is ErrNewer.
func (db *DB) Migrate(ctx context.Context, component string, steps []string) error {
	if version, ok := db.versions[component]; ok && version == len(steps) {
		return nil
	}
	version, err := db.version(ctx, component)
	if err != nil {
		return fmt.Errorf("read the version of %s: %w", component, Explain(err))
	}
	for version < len(steps) {
		err := db.transact(ctx, fmt.Sprintf("bring %s to version %d", component, version+1), func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, versionTable); err != nil {
				return err
			}
			// Another process may have been faster since version was read.
			current, err := readVersion(ctx, tx, component)
			if err != nil || current != version {
				return err
			}
			if _, err := tx.ExecContext(ctx, steps[version]); err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx,
				`INSERT INTO state_versions (component, version) VALUES (?, ?)
				 ON CONFLICT (component) DO UPDATE SET version = excluded.version`, component, version+1)
			return err
		})
		if err != nil {
			return err
		}
		if version, err = db.version(ctx, component); err != nil {
			return fmt.Errorf("read the version of %s: %w", component, Explain(err))
		}
	}
	if version > len(steps) {
		return fmt.Errorf("%w: %s has version %d, this cellmux knows %d; install the newer one again", ErrNewer, component, version, len(steps))
	}
	return nil
}

const versionTable = `CREATE TABLE IF NOT EXISTS state_versions (
	component TEXT PRIMARY KEY,
	version   INTEGER NOT NULL
) STRICT`

func (db *DB) version(ctx context.Context, component string) (int, error) {
	var tables int
	err := db.sql.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'state_versions'`).Scan(&tables)
	if err != nil || tables == 0 {
		return 0, err
	}
	return readVersion(ctx, db.sql, component)
}

// readVersions reads all at once what Migrate would ask for one by one. A
// database without the table has none; what else fails, Migrate tells.
func (db *DB) readVersions(ctx context.Context) {
	db.versions = map[string]int{}
	rows, err := db.sql.QueryContext(ctx, `SELECT component, version FROM state_versions`)
	if err != nil {
		return
	}
	defer rows.Close()
	for rows.Next() {
		var component string
		var version int
		if rows.Scan(&component, &version) == nil {
			db.versions[component] = version
		}
	}
}

type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func readVersion(ctx context.Context, from rowQuerier, component string) (int, error) {
	var version int
	err := from.QueryRowContext(ctx, `SELECT version FROM state_versions WHERE component = ?`, component).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return version, err
}
