package convo

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cellmux/shellctx/protocol"
)

// A run is the messages of one append, in one statement. They have a row and an
// ID each, the IDs are consecutive, and the JSON of all of them lies in the first
// one's row: 64 rows with a body of their own are a third more work for SQLite,
// and a quarter more pages to sync.
const (
	maxRun      = 64
	maxRunBytes = 512 << 10 // what is read to get at one of its messages
)

// body is what a row holds of its message.
type body struct {
	id      int64
	run     int64  // of the first: how many there are; of another: how far below zero its place is
	lengths string // of the first of several: of each message's JSON, in bytes
	text    []byte
}

// unpacker takes messages out of their rows. It keeps the run that it read last,
// since neighbours are read together. A message does not share memory with it.
type unpacker struct {
	from  rowsQuerier
	first int64
	parts [][]byte
}

func (u *unpacker) message(ctx context.Context, b body) (protocol.ChatMessage, error) {
	var m protocol.ChatMessage
	text, err := u.text(ctx, b)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("message %d: %w", b.id, err)
	}
	return m, nil
}

func (u *unpacker) text(ctx context.Context, b body) ([]byte, error) {
	if b.run == 1 {
		return b.text, nil
	}
	first, place := b.id, 0
	if b.run < 0 {
		first, place = b.id+b.run, int(-b.run)
	}
	if u.first != first || u.parts == nil {
		if place > 0 {
			if err := u.from.QueryRowContext(ctx, `SELECT lengths, body FROM convo_messages WHERE id = ?`, first).Scan(&b.lengths, &b.text); err != nil {
				return nil, fmt.Errorf("read its run %d: %w", first, err)
			}
		}
		parts, err := split(b.text, b.lengths)
		if err != nil {
			return nil, fmt.Errorf("run %d: %w", first, err)
		}
		u.first, u.parts = first, parts
	}
	if place >= len(u.parts) {
		return nil, fmt.Errorf("run %d has %d messages, not %d", first, len(u.parts), place+1)
	}
	return u.parts[place], nil
}

// split cuts a text into parts of these lengths, as join wrote them.
func split(text []byte, lengths string) ([][]byte, error) {
	var parts [][]byte
	for field := range strings.SplitSeq(lengths, " ") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 0 || n > len(text) {
			return nil, fmt.Errorf("its lengths %q do not fit its text", lengths)
		}
		parts = append(parts, text[:n:n])
		text = text[n:]
	}
	if len(text) > 0 {
		return nil, fmt.Errorf("its lengths leave %d bytes of its text", len(text))
	}
	return parts, nil
}

// encoded is the JSON of several messages. The database copies what it stores, so
// the next append uses the same memory: a fresh buffer would be a fifth of the
// time that many messages take beside the disk.
type encoded struct {
	json   []byte
	bodies [][]byte // parts of json
}

func (s *store) buffer() *encoded {
	if e, ok := s.buffers.Get().(*encoded); ok {
		return e
	}
	return &encoded{}
}

// keep gives a buffer back; one of a huge message is left to the collector.
func (s *store) keep(e *encoded) {
	if cap(e.json) <= 2*maxRunBytes {
		s.buffers.Put(e)
	}
}

// lengths are those of the bodies, as split reads them.
func (e *encoded) lengths() string {
	text := make([]byte, 0, 6*len(e.bodies))
	for i, b := range e.bodies {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendInt(text, int64(len(b)), 10)
	}
	return string(text)
}

// encode replaces what was encoded before.
func (e *encoded) encode(messages []protocol.ChatMessage) ([][]byte, error) {
	e.json, e.bodies = e.json[:0], e.bodies[:0]
	ends := make([]int, len(messages))
	for i := range messages {
		var err error
		if e.json, err = messages[i].AppendJSON(e.json); err != nil {
			return nil, err
		}
		ends[i] = len(e.json)
	}
	start := 0
	for _, end := range ends {
		e.bodies = append(e.bodies, e.json[start:end])
		start = end
	}
	return e.bodies, nil
}

// appendFresh stores messages of which none is stored yet, in a conversation
// that exists: one statement, which is a transaction by itself, and half the
// time of one in four. It reports false, with nothing stored, in every other
// case; then append finds out what is the matter.
func (s *store) appendFresh(ctx context.Context, t Target, messages []protocol.ChatMessage, encoded *encoded) ([]Entry, bool) {
	insert, err := s.prepare(ctx, s.freshStatement(len(messages)))
	if err != nil {
		return nil, false
	}
	stored := s.now().UnixMilli()
	lengths := ""
	if len(messages) > 1 {
		lengths = encoded.lengths()
	}
	args := make([]any, 0, 5+len(messages))
	args = append(args, messages[0].ID, encoded.json, lengths)
	for _, m := range messages[1:] {
		args = append(args, m.ID)
	}
	s.crash("before the commit of the fresh messages")
	result, err := insert.ExecContext(ctx, append(args, t.Session, t.Agent, stored)...)
	if err != nil {
		return nil, false
	}
	s.crash("after the commit of the fresh messages")
	if n, err := result.RowsAffected(); err != nil || n != int64(len(messages)) {
		return nil, false
	}
	last, err := result.LastInsertId()
	if err != nil {
		return nil, false
	}
	entries := make([]Entry, len(messages))
	for i := range messages {
		entries[i] = fresh(t, messages[i], last-int64(len(messages)-1-i), stored)
	}
	return entries, true
}

// fresh is the entry of a message that was stored now. AUTOINCREMENT gives the
// rows of a statement consecutive IDs.
func fresh(t Target, m protocol.ChatMessage, seq, stored int64) Entry {
	return Entry{Seq: seq, Session: t.Session, Cell: t.Cell, Slot: t.Slot, Agent: t.Agent, Message: m, Stored: time.UnixMilli(stored)}
}

func (s *store) freshStatement(rows int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[rows] == "" {
		s.runs[rows] = freshStatement(rows)
	}
	return s.runs[rows]
}

// freshStatement inserts nothing when the conversation is unknown, and fails as
// a whole when one of the messages is there already. It is a transaction by
// itself, so OR ROLLBACK undoes no more than the default would; but to undo the
// statement alone SQLite would first copy every page that it changes. The bodies
// are bound as a blob, since text would be copied once more.
func freshStatement(rows int) string {
	var others strings.Builder
	for place := 1; place < rows; place++ {
		fmt.Fprintf(&others, `, (?, '', '', %d)`, -place)
	}
	return `WITH
		fresh (message, body, lengths, run) AS (VALUES (?, ?, ?, ` + strconv.Itoa(rows) + `)` + others.String() + `),
		conversation (id) AS (SELECT id FROM convo_conversations WHERE session = ? AND agent = ?)
	INSERT OR ROLLBACK INTO convo_messages (conversation, message, body, lengths, run, stored)
	SELECT (SELECT id FROM conversation), message, CAST(body AS TEXT), lengths, run, ? FROM fresh WHERE (SELECT id FROM conversation) IS NOT NULL`
}
