package convo

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
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
	var entries []Entry
	err := s.transact(ctx, "the messages", func(tx *sql.Tx) error {
		entries = make([]Entry, 0, len(messages))
		conversation, err := conversationOf(ctx, tx, t)
		if err != nil {
			return err
		}
		for _, m := range messages {
			entry, err := s.insert(ctx, tx, conversation, t, m, queue)
			if err != nil {
				return err
			}
			entries = append(entries, entry)
		}
		return nil
	})
	return entries, err
}

// conversationOf returns the row of a session, making it at its first message.
func conversationOf(ctx context.Context, tx *sql.Tx, t Target) (int64, error) {
	if t.Session == "" {
		return 0, errors.New("the target has no session ID")
	}
	var id int64
	var agent string
	err := tx.QueryRowContext(ctx, `SELECT id, agent FROM convo_conversations WHERE session = ?`, t.Session).Scan(&id, &agent)
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

func (s *store) insert(ctx context.Context, tx *sql.Tx, conversation int64, t Target, m protocol.ChatMessage, queue bool) (Entry, error) {
	body, err := m.Encode()
	if err != nil {
		return Entry{}, err
	}
	stored := s.now().UnixMilli()
	entry := Entry{Session: t.Session, Cell: t.Cell, Slot: t.Slot, Agent: t.Agent, Message: m, Stored: time.UnixMilli(stored)}
	err = tx.QueryRowContext(ctx, `INSERT INTO convo_messages (conversation, message, stored, body) VALUES (?, ?, ?, ?)
		ON CONFLICT DO NOTHING RETURNING id`, conversation, m.ID, stored, string(body)).Scan(&entry.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		return already(ctx, tx, conversation, m, body)
	}
	if err != nil || !queue {
		return entry, err
	}
	context := shellctx.IsContextOnly(m)
	entry.Delivery = Queued
	if context {
		entry.Delivery = Saved
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO convo_outbox (message, conversation, context, state, open, updated) VALUES (?, ?, ?, ?, 1, ?)`,
		entry.Seq, conversation, context, entry.Delivery, stored)
	return entry, err
}

// already returns the stored message of an ID that is taken.
func already(ctx context.Context, tx *sql.Tx, conversation int64, m protocol.ChatMessage, body []byte) (Entry, error) {
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

const selectEntries = `
	SELECT m.id, c.session, c.cell, c.slot, c.agent, m.body, m.stored,
		coalesce(o.state, ''), coalesce(o.reason, ''), coalesce(o.steering, 0)
	FROM convo_messages m
	JOIN convo_conversations c ON c.id = m.conversation
	LEFT JOIN convo_outbox o ON o.message = m.id`

type rowsQuerier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func query(ctx context.Context, from rowsQuerier, statement string, args ...any) ([]Entry, error) {
	rows, err := from.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var entries []Entry
	for rows.Next() {
		var e Entry
		var body []byte
		var stored int64
		if err := rows.Scan(&e.Seq, &e.Session, &e.Cell, &e.Slot, &e.Agent, &body, &stored, &e.Delivery, &e.Reason, &e.Steering); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(body, &e.Message); err != nil {
			return nil, fmt.Errorf("message %d: %w", e.Seq, err)
		}
		e.Stored = time.UnixMilli(stored)
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

func (s *store) page(ctx context.Context, session string, before int64, n int) ([]Entry, error) {
	newest := before <= 0
	if newest {
		before = math.MaxInt64
	}
	entries, err := query(ctx, s.db, selectEntries+`
		WHERE m.conversation = (SELECT id FROM convo_conversations WHERE session = ?) AND m.id < ?
		ORDER BY m.id DESC LIMIT ?`, session, before, n)
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
	entries, err := query(ctx, s.db, selectEntries+`
		WHERE m.conversation = (SELECT id FROM convo_conversations WHERE session = ?) AND m.id < ?
		ORDER BY m.id DESC LIMIT ?`, session, seq, n)
	if err != nil {
		return nil, err
	}
	slices.Reverse(entries)
	after, err := query(ctx, s.db, selectEntries+`
		WHERE m.conversation = (SELECT id FROM convo_conversations WHERE session = ?) AND m.id >= ?
		ORDER BY m.id LIMIT ?`, session, seq, n)
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
		for _, statement := range []string{
			`DELETE FROM convo_search WHERE rowid IN (SELECT id FROM convo_messages WHERE conversation = ?
				AND id <= (SELECT message FROM convo_indexed))`,
			`DELETE FROM convo_outbox WHERE conversation = ?`,
			`DELETE FROM convo_messages WHERE conversation = ?`,
			`DELETE FROM convo_conversations WHERE id = ?`,
		} {
			if _, err := tx.ExecContext(ctx, statement, conversation); err != nil {
				return err
			}
		}
		return nil
	})
}
