package convo

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"cellmux/shellctx"
	"cellmux/shellctx/protocol"
)

// ErrOtherMessage is returned when a message's ID is stored with another
// content.
var ErrOtherMessage = errors.New("another message has this ID")

// ErrNoMessage is returned for a message that does not exist.
var ErrNoMessage = errors.New("there is no such message")

// store is the tables. Its transactions hold the write lock from the start, so
// that IDs are given out in the order of the commits: what is behind an ID that
// was read does not appear later.
type store struct {
	db    *sql.DB
	now   func() time.Time
	crash func(step string)

	buffers sync.Pool // of *encoded

	mu       sync.Mutex
	prepared map[string]*sql.Stmt
	runs     [maxRun + 1]string // the statement that inserts so many, once it was asked for
}

func (s *store) transact(ctx context.Context, what string, change func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := change(tx); err != nil {
		return err
	}
	s.crash("before the commit of " + what)
	if err := tx.Commit(); err != nil {
		return err
	}
	s.crash("after the commit of " + what)
	return nil
}

// append stores messages in one transaction. With queue they get a row in the
// outbox too.
func (s *store) append(ctx context.Context, t Target, messages []protocol.ChatMessage, queue bool) ([]Entry, error) {
	// Encoding needs no lock that others wait for.
	encoded := s.buffer()
	defer s.keep(encoded)
	bodies, err := encoded.encode(messages)
	if err != nil {
		return nil, err
	}
	if !queue && len(messages) > 0 && len(messages) <= maxRun && len(encoded.json) <= maxRunBytes {
		if entries, stored := s.appendFresh(ctx, t, messages, encoded); stored {
			return entries, nil
		}
	}
	var entries []Entry
	err = s.transact(ctx, "the messages", func(tx *sql.Tx) error {
		conversation, err := s.conversationOf(ctx, tx, t)
		if err != nil {
			return err
		}
		var fresh []int
		entries, fresh, err = s.insert(ctx, tx, conversation, t, messages, bodies)
		if err != nil || !queue {
			return err
		}
		return enqueue(ctx, tx, conversation, entries, fresh)
	})
	return entries, err
}

// conversationOf returns the row of a session, making it at its first message.
func (s *store) conversationOf(ctx context.Context, tx *sql.Tx, t Target) (int64, error) {
	if t.Session == "" {
		return 0, errors.New("the target has no session ID")
	}
	find, err := s.statement(ctx, tx, `SELECT id, agent FROM convo_conversations WHERE session = ?`)
	if err != nil {
		return 0, err
	}
	var id int64
	var agent string
	err = find.QueryRowContext(ctx, t.Session).Scan(&id, &agent)
	switch {
	case err == nil && (agent == t.Agent || t.Agent == ""):
		return id, nil
	case err == nil:
		_, err = tx.ExecContext(ctx, `UPDATE convo_conversations SET agent = ? WHERE id = ?`, t.Agent, id)
		return id, err
	case !errors.Is(err, sql.ErrNoRows):
		return 0, err
	}
	err = tx.QueryRowContext(ctx, `INSERT INTO convo_conversations (session, cell, slot, agent) VALUES (?, ?, ?, ?) RETURNING id`,
		t.Session, t.Cell, t.Slot, t.Agent).Scan(&id)
	return id, err
}

// statement is a prepared statement in a transaction.
func (s *store) statement(ctx context.Context, tx *sql.Tx, text string) (*sql.Stmt, error) {
	prepared, err := s.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	return tx.StmtContext(ctx, prepared), nil
}

// prepare returns a statement that each connection prepares once.
func (s *store) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	prepared, known := s.prepared[text]
	if !known {
		var err error
		if prepared, err = s.db.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
		if s.prepared == nil {
			s.prepared = map[string]*sql.Stmt{}
		}
		s.prepared[text] = prepared
	}
	return prepared, nil
}

// insertSizes are the numbers of rows that one statement inserts; one with many
// rows costs a third of as many with one.
var insertSizes = []int{64, 8, 1}

// insert stores messages that are not stored yet. It returns the entries of all,
// and which of them are new.
func (s *store) insert(ctx context.Context, tx *sql.Tx, conversation int64, t Target, messages []protocol.ChatMessage, bodies [][]byte) (entries []Entry, added []int, err error) {
	stored := s.now().UnixMilli()
	entries = make([]Entry, len(messages))
	for at := 0; at < len(messages); {
		size := insertSizes[slices.IndexFunc(insertSizes, func(n int) bool { return n <= len(messages)-at })]
		rows := make([]any, 0, 4*size)
		for i := at; i < at+size; i++ {
			rows = append(rows, conversation, stored, messages[i].ID, bodies[i])
		}
		highest, err := s.statement(ctx, tx, `SELECT coalesce(max(id), 0) FROM convo_messages`)
		if err != nil {
			return nil, nil, err
		}
		var newest int64
		if err := highest.QueryRowContext(ctx).Scan(&newest); err != nil {
			return nil, nil, err
		}
		insert, err := s.statement(ctx, tx, `INSERT INTO convo_messages (conversation, stored, message, body) VALUES (?, ?, ?, CAST(? AS TEXT))`+
			strings.Repeat(`, (?, ?, ?, CAST(? AS TEXT))`, size-1)+` ON CONFLICT DO NOTHING`)
		if err != nil {
			return nil, nil, err
		}
		result, err := insert.ExecContext(ctx, rows...)
		if err != nil {
			return nil, nil, err
		}
		inserted, err := result.RowsAffected()
		if err != nil {
			return nil, nil, err
		}
		last, err := result.LastInsertId()
		if err != nil {
			return nil, nil, err
		}
		for i := at; i < at+size; i++ {
			if inserted == int64(size) {
				added = append(added, i)
				entries[i] = fresh(t, messages[i], last-int64(at+size-1-i), stored)
				continue
			}
			if entries[i], err = stands(ctx, tx, conversation, messages[i], bodies[i]); err != nil {
				return nil, nil, err
			}
			if entries[i].Seq > newest {
				added = append(added, i)
			}
		}
		at += size
	}
	return entries, added, nil
}

// enqueue gives fresh messages a row in the outbox. One that was stored before
// had its row then, or is history.
func enqueue(ctx context.Context, tx *sql.Tx, conversation int64, entries []Entry, fresh []int) error {
	for _, i := range fresh {
		e := &entries[i]
		context := shellctx.IsContextOnly(e.Message)
		e.Delivery = Queued
		if context {
			e.Delivery = Saved
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO convo_outbox (message, conversation, context, state, open, updated) VALUES (?, ?, ?, ?, 1, ?)`,
			e.Seq, conversation, context, e.Delivery, e.Stored.UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}

// stands returns the stored message of an ID, which must be this one.
func stands(ctx context.Context, tx *sql.Tx, conversation int64, m protocol.ChatMessage, body []byte) (Entry, error) {
	entries, err := query(ctx, tx, selectEntries+` WHERE m.conversation = ? AND m.message = ?`, conversation, m.ID)
	if err != nil {
		return Entry{}, err
	}
	if len(entries) != 1 {
		return Entry{}, ErrNoMessage
	}
	// A caller that tries again may have read its clock again.
	same := entries[0].Message
	same.CreatedAt = m.CreatedAt
	if stored, err := same.Encode(); err != nil || !bytes.Equal(stored, body) {
		return Entry{}, fmt.Errorf("%s: %w", m.ID, ErrOtherMessage)
	}
	return entries[0], nil
}

const (
	selectColumns = `
	SELECT m.id, c.session, c.cell, c.slot, c.agent, m.run, m.lengths, m.body, CASE m.first_stored WHEN 0 THEN m.stored ELSE m.first_stored END,
		coalesce(o.state, ''), coalesce(o.reason, ''), coalesce(o.steering, 0)`

	selectEntries = selectColumns + `
	FROM convo_messages m
	JOIN convo_conversations c ON c.id = m.conversation
	LEFT JOIN convo_outbox o ON o.message = m.id`

	// The messages of a session ?1, run by run; CROSS keeps SQLite to that order,
	// in which the rows need no sorting.
	selectRuns = selectColumns + `
	FROM convo_conversations c
	CROSS JOIN convo_messages r ON r.conversation = c.id AND r.run > 0
	CROSS JOIN convo_messages m
	LEFT JOIN convo_outbox o ON o.message = m.id
	WHERE c.session = ?1`

	// The ?3 messages below the ID ?2, newest first.
	selectBelow = selectRuns + ` AND r.id < ?2 AND m.id >= r.id AND m.id < min(r.id + r.run, ?2)
	ORDER BY r.id DESC, m.id DESC LIMIT ?3`

	// The ?3 messages from the ID ?2 on, oldest first. That ID may lie within a run.
	selectFrom = selectRuns + ` AND r.id >= coalesce((SELECT max(id) FROM convo_messages WHERE conversation = c.id AND run > 0 AND id <= ?2), 0)
		AND m.id >= max(r.id, ?2) AND m.id < r.id + r.run
	ORDER BY r.id, m.id LIMIT ?3`
)

// rowsQuerier is a database or a transaction.
type rowsQuerier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func query(ctx context.Context, from rowsQuerier, statement string, args ...any) ([]Entry, error) {
	rows, err := from.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var entries []Entry
	var bodies []body
	for rows.Next() {
		var e Entry
		var b body
		var stored int64
		if err := rows.Scan(&e.Seq, &e.Session, &e.Cell, &e.Slot, &e.Agent, &b.run, &b.lengths, &b.text, &stored, &e.Delivery, &e.Reason, &e.Steering); err != nil {
			return nil, err
		}
		b.id, e.Stored = e.Seq, time.UnixMilli(stored)
		entries, bodies = append(entries, e), append(bodies, b)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	unpack := unpacker{from: from}
	for i := range entries {
		if entries[i].Message, err = unpack.message(ctx, bodies[i]); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (s *store) page(ctx context.Context, session string, before int64, n int) ([]Entry, error) {
	newest := before <= 0
	if newest {
		before = math.MaxInt64
	}
	entries, err := query(ctx, s.db, selectBelow, session, before, n)
	if err != nil {
		return nil, err
	}
	slices.Reverse(entries)
	if newest {
		partial, err := s.partial(ctx, session)
		if err != nil {
			return nil, err
		}
		entries = append(entries, partial...)
	}
	return entries, nil
}

// partial is the answer of a headless turn as far as it has come.
func (s *store) partial(ctx context.Context, session string) ([]Entry, error) {
	var text string
	e := Entry{Session: session, Partial: true}
	var updated int64
	err := s.db.QueryRowContext(ctx, `
		SELECT o.partial, c.cell, c.slot, c.agent, o.updated FROM convo_outbox o JOIN convo_conversations c ON c.id = o.conversation
		WHERE o.open = 1 AND o.partial <> '' AND o.conversation = (SELECT id FROM convo_conversations WHERE session = ?)
		ORDER BY o.message DESC LIMIT 1`, session).Scan(&text, &e.Cell, &e.Slot, &e.Agent, &updated)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	e.Stored = time.UnixMilli(updated)
	e.Message = protocol.NewText("", protocol.Assistant, text, e.Stored)
	return []Entry{e}, err
}

func (s *store) around(ctx context.Context, session string, seq int64, n int) ([]Entry, error) {
	entries, err := query(ctx, s.db, selectBelow, session, seq, n)
	if err != nil {
		return nil, err
	}
	slices.Reverse(entries)
	after, err := query(ctx, s.db, selectFrom, session, seq, n)
	return append(entries, after...), err
}

func (s *store) entry(ctx context.Context, seq int64) (Entry, error) {
	entries, err := query(ctx, s.db, selectEntries+` WHERE m.id = ?`, seq)
	if err == nil && len(entries) == 0 {
		err = ErrNoMessage
	}
	if err != nil {
		return Entry{}, err
	}
	return entries[0], nil
}

func (s *store) open(ctx context.Context) ([]Entry, error) {
	return query(ctx, s.db, selectEntries+`
		WHERE m.id IN (SELECT message FROM convo_outbox WHERE open = 1 AND context = 0) ORDER BY m.id`)
}

func (s *store) forget(ctx context.Context, session string) error {
	return s.transact(ctx, "the removal", func(tx *sql.Tx) error {
		var conversation int64
		err := tx.QueryRowContext(ctx, `SELECT id FROM convo_conversations WHERE session = ?`, session).Scan(&conversation)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		const messages = `SELECT m.id FROM convo_messages r CROSS JOIN convo_messages m
			WHERE r.conversation = ? AND r.run > 0 AND m.id >= r.id AND m.id < r.id + r.run`
		for _, statement := range []string{
			`DELETE FROM convo_search WHERE rowid IN (` + messages + ` AND m.id <= (SELECT message FROM convo_indexed))`,
			`DELETE FROM convo_outbox WHERE conversation = ?`,
			`DELETE FROM convo_messages WHERE id IN (` + messages + `)`,
			`DELETE FROM convo_conversations WHERE id = ?`,
		} {
			if _, err := tx.ExecContext(ctx, statement, conversation); err != nil {
				return err
			}
		}
		return nil
	})
}
