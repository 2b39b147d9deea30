package convo

// Migrations are the steps that make and change this package's tables, in
// order. Times are milliseconds since 1970.
func Migrations() []string {
	return []string{`
CREATE TABLE convo_conversations (
	id      INTEGER PRIMARY KEY,
	session TEXT NOT NULL UNIQUE,
	cell    TEXT NOT NULL,
	slot    INTEGER NOT NULL,
	agent   TEXT NOT NULL,
	ask     INTEGER NOT NULL DEFAULT 0 -- AskPolicy
) STRICT;

-- Rows are never changed. AUTOINCREMENT, because an ID that came back after a
-- deletion would be taken for indexed and for delivered.
CREATE TABLE convo_messages (
	id           INTEGER PRIMARY KEY AUTOINCREMENT,
	conversation INTEGER NOT NULL,
	message      TEXT NOT NULL,
	stored       INTEGER NOT NULL,
	body         TEXT NOT NULL -- protocol.ChatMessage, byte for byte
) STRICT;
CREATE UNIQUE INDEX convo_messages_message ON convo_messages (conversation, message);
CREATE INDEX convo_messages_order ON convo_messages (conversation); -- and id, as every index

-- What becomes of a user's message. A row is open while something can still
-- happen to it.
CREATE TABLE convo_outbox (
	message      INTEGER PRIMARY KEY, -- convo_messages.id
	conversation INTEGER NOT NULL,
	context      INTEGER NOT NULL,            -- 1: rides in front of others, is never typed alone
	state        TEXT NOT NULL,               -- Delivery
	open         INTEGER NOT NULL,
	step         TEXT NOT NULL DEFAULT '',    -- how far an attempt got
	reason       TEXT NOT NULL DEFAULT '',
	carrier      INTEGER NOT NULL DEFAULT 0,  -- of context: the message that it rode in front of
	payload      TEXT NOT NULL DEFAULT '',    -- the exact text, while its fate is open
	partial      TEXT NOT NULL DEFAULT '',    -- what a headless turn has answered so far
	steering     INTEGER NOT NULL DEFAULT 0,
	typed        INTEGER NOT NULL DEFAULT 0,  -- when the attempt began
	updated      INTEGER NOT NULL
) STRICT;
CREATE INDEX convo_outbox_open ON convo_outbox (conversation, message) WHERE open = 1;
CREATE INDEX convo_outbox_updated ON convo_outbox (updated);

-- The index has no copy of the text, and gets words that are cut and folded
-- already; its tokenizer only splits them at their spaces. It is filled behind the messages, not with
-- them: what has an ID up to convo_indexed.message is in it.
CREATE VIRTUAL TABLE convo_search USING fts5 (
	text, facets, content = '', contentless_delete = 1, tokenize = 'ascii'
);
CREATE TABLE convo_indexed (
	only    INTEGER PRIMARY KEY CHECK (only = 1),
	message INTEGER NOT NULL
) STRICT;
INSERT INTO convo_indexed VALUES (1, 0);
`, `
-- Of a message that was stored elsewhere before it was imported here: when
-- that was. stored grows with the IDs, and so does not tell it.
ALTER TABLE convo_messages ADD COLUMN first_stored INTEGER NOT NULL DEFAULT 0; -- 0: here
`, `
-- When the agent's newest turn ended that is known of: that can be told before
-- the proof that the turn's message was submitted.
ALTER TABLE convo_conversations ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
`, `
-- Messages that one statement stored are a run: they have consecutive IDs in one
-- conversation. The first has their number, and the bodies of all with the length
-- of each in bytes; the others have their distance from it, below zero, and no
-- body. The order of a conversation is that of its runs.
ALTER TABLE convo_messages ADD COLUMN run INTEGER NOT NULL DEFAULT 1;
ALTER TABLE convo_messages ADD COLUMN lengths TEXT NOT NULL DEFAULT '';
DROP INDEX convo_messages_order;
CREATE INDEX convo_messages_run ON convo_messages (conversation, id, run) WHERE run > 0;
-- With the ID first SQLite compares keys by their first column alone, which it
-- has a faster way for.
DROP INDEX convo_messages_message;
CREATE UNIQUE INDEX convo_messages_message ON convo_messages (message, conversation);
`, `
-- The words of the index, each once for each place where it is.
CREATE VIRTUAL TABLE convo_words USING fts5vocab (convo_search, 'instance');
`}
}
