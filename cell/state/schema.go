package state

// schema is the list of steps that Migrate takes for this package's tables.
// Times are milliseconds since 1970, 0 for never.
var schema = []string{`
-- A row outlives the cell that it names: neither the name nor a slot number is
-- given out again, because session IDs are derived from them.
CREATE TABLE state_names (
	name      TEXT PRIMARY KEY,
	next_slot INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE state_cells (
	name          TEXT PRIMARY KEY REFERENCES state_names (name),
	title         TEXT NOT NULL,
	workspace     TEXT NOT NULL,
	project_dir   TEXT NOT NULL,
	engine        TEXT NOT NULL,
	engine_reason TEXT NOT NULL DEFAULT '',
	pinned        INTEGER NOT NULL DEFAULT 0,
	archived      INTEGER NOT NULL DEFAULT 0,
	created       INTEGER NOT NULL,
	deleted       INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE state_slots (
	cell          TEXT NOT NULL REFERENCES state_cells (name) ON DELETE CASCADE,
	number        INTEGER NOT NULL,
	agent         TEXT NOT NULL,
	command       TEXT NOT NULL DEFAULT '', -- JSON array, or empty
	session       TEXT NOT NULL,
	agent_session TEXT NOT NULL DEFAULT '',
	title         TEXT NOT NULL DEFAULT '',
	stopped       INTEGER NOT NULL DEFAULT 0,
	archived      INTEGER NOT NULL DEFAULT 0,
	created       INTEGER NOT NULL,
	deleted       INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (cell, number)
) STRICT;

CREATE TABLE state_actions (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	kind   TEXT NOT NULL,
	cell   TEXT NOT NULL,
	slot   INTEGER NOT NULL, -- -1: the cell itself
	before TEXT NOT NULL,
	after  TEXT NOT NULL,
	at     INTEGER NOT NULL,
	undone INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE state_approvals (
	file TEXT PRIMARY KEY,
	hash TEXT NOT NULL,
	at   INTEGER NOT NULL
) STRICT;
`, `
ALTER TABLE state_slots ADD COLUMN notes TEXT NOT NULL DEFAULT ''; -- JSON array, or empty

CREATE TABLE state_left_sessions (
	cell    TEXT NOT NULL,
	number  INTEGER NOT NULL,
	session TEXT NOT NULL, -- the agent's own ID
	left_at INTEGER NOT NULL,
	PRIMARY KEY (cell, number, session),
	FOREIGN KEY (cell, number) REFERENCES state_slots (cell, number) ON DELETE CASCADE
) STRICT;
`, `
CREATE TABLE state_directories (
	directory TEXT PRIMARY KEY,
	trusted   INTEGER NOT NULL,
	at        INTEGER NOT NULL
) STRICT;
`, `
ALTER TABLE state_slots ADD COLUMN review INTEGER NOT NULL DEFAULT 0; -- its agent may change nothing
`}
