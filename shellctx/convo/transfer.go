package convo

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"cellmux/shellctx/protocol"
)

// The export is JSON lines: a header, then one line for each message, in order.
const (
	exportFormat  = "cellmux.conversations"
	exportVersion = 1
	maxLine       = 64 << 20 // bytes of a line that Import reads
)

type exportHeader struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

type exportLine struct {
	Session  string          `json:"session"`
	Cell     string          `json:"cell"`
	Slot     int             `json:"slot"`
	Agent    string          `json:"agent"`
	Stored   time.Time       `json:"stored"`
	Delivery Delivery        `json:"delivery,omitempty"`
	Message  json.RawMessage `json:"message"`
}

// Export writes conversations as JSON lines, all of them when no session is
// named. Messages are written byte for byte as they are stored. It holds no
// lock while it writes.
func (s *Service) Export(ctx context.Context, w io.Writer, sessions ...string) error {
	if len(sessions) == 0 {
		var err error
		if sessions, err = s.store.sessions(ctx); err != nil {
			return fmt.Errorf("export conversations: %w", err)
		}
	}
	out := bufio.NewWriter(w)
	if err := writeLine(out, exportHeader{Format: exportFormat, Version: exportVersion}); err != nil {
		return fmt.Errorf("export conversations: %w", err)
	}
	for _, session := range sessions {
		if err := s.exportSession(ctx, out, session); err != nil {
			return fmt.Errorf("export conversation %s: %w", session, err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("export conversations: %w", err)
	}
	return nil
}

func (s *Service) exportSession(ctx context.Context, out *bufio.Writer, session string) error {
	for from := int64(1); ; {
		entries, err := query(ctx, s.store.db, selectFrom, session, from, 200)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			from = e.Seq + 1
			body, err := e.Message.Encode()
			if err != nil {
				return err
			}
			if err := writeLine(out, exportLine{Session: e.Session, Cell: e.Cell, Slot: e.Slot, Agent: e.Agent,
				Stored: e.Stored.UTC(), Delivery: e.Delivery, Message: body}); err != nil {
				return err
			}
		}
	}
}

// writeLine writes a value as one line. A message may hold white space between
// its tokens, newlines too, which a line must not: those are taken out, and
// nothing else is.
func writeLine(out *bufio.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

func (s *store) sessions(ctx context.Context) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT session FROM convo_conversations ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var sessions []string
	for rows.Next() {
		var session string
		if err := rows.Scan(&session); err != nil {
			return nil, err
		}
		sessions = append(sessions, session)
	}
	return sessions, rows.Err()
}

// Imported says what Import did.
type Imported struct {
	Messages int // stored
	Known    int // that were there already
}

// Import reads what Export wrote. Messages that are stored already stay as they
// are, so that importing twice, or into what it was exported from, changes
// nothing. Nothing imported is delivered by itself: what was not delivered when
// it was exported is Failed, and the user may send it again. A line that cannot
// be read ends the import with its number; the lines before it are stored.
func (s *Service) Import(ctx context.Context, r io.Reader) (Imported, error) {
	var done Imported
	in := bufio.NewReaderSize(r, 1<<20)
	header, err := readLine(in)
	if err != nil {
		return done, fmt.Errorf("import conversations: read the header: %w", err)
	}
	var h exportHeader
	if err := json.Unmarshal(header, &h); err != nil || h.Format != exportFormat {
		return done, errors.New("import conversations: this is no export of cellmux: the first line is no header")
	}
	if h.Version > exportVersion {
		return done, fmt.Errorf("import conversations: the export has version %d, this cellmux reads %d; install a newer one", h.Version, exportVersion)
	}
	var batch []exportLine
	first := 2 // the number of the batch's first line
	flush := func() error {
		taken := len(batch)
		stored, err := s.store.adoptLines(ctx, batch)
		var refused refusedLine
		if errors.As(err, &refused) {
			// The transaction took the lines before with it.
			taken = refused.place
			var again error
			if stored, again = s.store.adoptLines(ctx, batch[:taken]); again != nil {
				taken, err = 0, again
			} else {
				err = fmt.Errorf("import conversations: line %d: %w", first+taken, refused.err)
			}
		} else if err != nil {
			taken = 0
			err = fmt.Errorf("import conversations: from line %d on: %w", first, err)
		}
		done.Messages += stored
		done.Known += taken - stored
		first += len(batch)
		batch = batch[:0]
		return err
	}
	for number := 2; ; number++ {
		raw, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		var line exportLine
		if err == nil {
			err = json.Unmarshal(raw, &line)
		}
		if err == nil && line.Session == "" {
			err = errors.New("it names no session")
		}
		if err != nil {
			return done, errors.Join(fmt.Errorf("import conversations: line %d: %w", number, err), flush())
		}
		if batch = append(batch, line); len(batch) == 256 {
			if err := flush(); err != nil {
				return done, err
			}
		}
	}
	if err := flush(); err != nil {
		return done, err
	}
	s.changed("")
	return done, nil
}

// readLine returns the next line that is not empty.
func readLine(in *bufio.Reader) ([]byte, error) {
	for {
		var line []byte
		for {
			part, err := in.ReadSlice('\n')
			line = append(line, part...)
			if len(line) > maxLine {
				return nil, fmt.Errorf("it is longer than %d bytes", maxLine)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && !(errors.Is(err, io.EOF) && len(line) > 0) {
				return nil, err
			}
			break
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// refusedLine is a line of an import that cannot be stored, by its place in the
// batch.
type refusedLine struct {
	place int
	err   error
}

func (r refusedLine) Error() string { return r.err.Error() }
func (r refusedLine) Unwrap() error { return r.err }

// adoptLines stores imported messages in one transaction and returns how many
// were not there yet. A line that is no message, or has the ID of another one, is
// a refusedLine, with nothing stored.
func (s *store) adoptLines(ctx context.Context, lines []exportLine) (int, error) {
	stored := 0
	err := s.transact(ctx, "the import", func(tx *sql.Tx) error {
		stored = 0
		for place, line := range lines {
			m, body, err := line.message()
			if err != nil {
				return refusedLine{place, err}
			}
			t := Target{Session: line.Session, Cell: line.Cell, Slot: line.Slot, Agent: line.Agent}
			conversation, err := s.conversationOf(ctx, tx, t)
			if err != nil {
				return err
			}
			entries, fresh, err := s.insert(ctx, tx, conversation, t, []protocol.ChatMessage{m}, [][]byte{body})
			if errors.Is(err, ErrOtherMessage) {
				return refusedLine{place, err}
			}
			if err != nil {
				return err
			}
			if len(fresh) == 0 {
				continue
			}
			stored++
			if err := s.storedBefore(ctx, tx, entries[0].Seq, line.Stored); err != nil {
				return err
			}
			if line.Delivery == "" {
				continue
			}
			state, reason := line.Delivery, ""
			switch state {
			case Saved, Submitted, Answered, Failed:
			default:
				state, reason = Failed, "it was "+string(state)+" when it was exported"
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO convo_outbox (message, conversation, context, state, open, reason, updated) VALUES (?, ?, ?, ?, 0, ?, ?)`,
				entries[0].Seq, conversation, state == Saved, state, reason, s.now().UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return stored, nil
}

func (l exportLine) message() (m protocol.ChatMessage, body []byte, err error) {
	if len(l.Message) == 0 {
		return m, nil, errors.New("it holds no message")
	}
	if err := json.Unmarshal(l.Message, &m); err != nil {
		return m, nil, err
	}
	if m.ID == "" {
		return m, nil, errors.New("its message has no ID")
	}
	body, err = m.Encode()
	return m, body, err
}

// storedBefore notes when a message was stored where it comes from. A time that
// has not come, of a clock that is wrong there, is none.
func (s *store) storedBefore(ctx context.Context, tx *sql.Tx, seq int64, first time.Time) error {
	at := first.UnixMilli()
	if at <= 0 || at > s.now().UnixMilli() {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE convo_messages SET first_stored = ? WHERE id = ?`, at, seq)
	return err
}
