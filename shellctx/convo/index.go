package convo

import (
	"context"
	"database/sql"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"cellmux/shellctx"
	"cellmux/shellctx/protocol"
)

// The index runs behind the messages: an append pays for no tokens, and a
// search first indexes what is new. One step holds the write lock for at most
// this much work, some 50 ms.
const (
	indexStepRows  = 500
	indexStepBytes = 1 << 20
)

// index brings the index up to the newest message.
func (s *store) index(ctx context.Context) error {
	for {
		behind, err := s.behind(ctx)
		if err != nil || !behind {
			return err
		}
		if err := s.indexStep(ctx); err != nil {
			return err
		}
	}
}

// behind asks without the write lock, so that a search on an index that is up
// to date waits for no writer.
func (s *store) behind(ctx context.Context) (bool, error) {
	var behind bool
	err := s.db.QueryRowContext(ctx, `SELECT EXISTS (
		SELECT 1 FROM convo_messages WHERE id > (SELECT message FROM convo_indexed))`).Scan(&behind)
	return behind, err
}

func (s *store) indexStep(ctx context.Context) error {
	return s.transact(ctx, "the index", func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `
			SELECT m.id, m.run, m.lengths, m.body, c.session, c.cell, c.agent FROM convo_messages m JOIN convo_conversations c ON c.id = m.conversation
			WHERE m.id > (SELECT message FROM convo_indexed) ORDER BY m.id LIMIT ?`, indexStepRows)
		if err != nil {
			return err
		}
		defer rows.Close()
		insert, err := tx.PrepareContext(ctx, `INSERT INTO convo_search (rowid, text, facets) VALUES (?, ?, ?)`)
		if err != nil {
			return err
		}
		defer insert.Close()
		var last int64
		unpack := unpacker{from: tx}
		for size := 0; size < indexStepBytes && rows.Next(); {
			var b body
			var t Target
			if err := rows.Scan(&b.id, &b.run, &b.lengths, &b.text, &t.Session, &t.Cell, &t.Agent); err != nil {
				return err
			}
			size += len(b.text)
			m, err := unpack.message(ctx, b)
			if err != nil {
				return err
			}
			last = b.id
			if _, err := insert.ExecContext(ctx, last, words(searchable(m)), facets(m, t)); err != nil {
				return err
			}
		}
		if err := rows.Err(); err != nil || last == 0 {
			return err
		}
		if err := rows.Close(); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE convo_indexed SET message = ?`, last)
		return err
	})
}

// searchable is the text by which a message is found: of a shell record its
// command, output and error, else its text. Colours are taken out, since
// "ESC[31mError" would be found as "31mError" alone.
func searchable(m protocol.ChatMessage) string {
	text := m.Text()
	if record, ok := shellctx.FromMessage(m); ok {
		text = record.Command + "\n" + record.Output + "\n" + record.Error
	}
	if strings.ContainsRune(text, '\x1b') {
		text = ansi.Strip(text)
	}
	return text
}

// facets are the words by which filters are matched within the index itself, so
// that a filter on a common word does not read a million rows. Values are hex:
// the tokenizer would split a name at its dashes.
func facets(m protocol.ChatMessage, t Target) string {
	words := []string{facet("s", t.Session), facet("c", t.Cell), facet("a", t.Agent)}
	if record, ok := shellctx.FromMessage(m); ok {
		words = append(words, recordFacet, exitFacet(record.ExitCode))
	}
	return strings.Join(words, " ")
}

const recordFacet = "zr"

func facet(kind, value string) string { return "z" + kind + hex.EncodeToString([]byte(value)) }

func exitFacet(code int) string { return facet("x", strconv.Itoa(code)) }
