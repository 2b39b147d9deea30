package convo

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// changes tells the readers in this process.
type changes struct {
	mu      sync.Mutex
	readers map[chan string]struct{}
}

func (c *changes) publish(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for reader := range c.readers {
		put(reader, session)
	}
}

// put gives a reader the session, or "" (any) in place of what it has not
// taken yet when that is another one.
func put(reader chan string, session string) {
	for {
		select {
		case reader <- session:
			return
		default:
		}
		select {
		case waiting := <-reader:
			if waiting != session {
				session = ""
			}
		default:
		}
	}
}

func (s *Service) changed(session string) { s.changes.publish(session) }

// Changed tells the session IDs of conversations that grew or in which a state
// changed, here or in another process, until ctx ends. It holds one: a slow
// reader gets "", which stands for any conversation. It polls nothing; with a
// Path in the Options it watches the database's log.
func (s *Service) Changed(ctx context.Context) <-chan string {
	reader := make(chan string, 1)
	s.changes.mu.Lock()
	if s.changes.readers == nil {
		s.changes.readers = map[chan string]struct{}{}
	}
	s.changes.readers[reader] = struct{}{}
	s.changes.mu.Unlock()
	go func() {
		defer func() {
			s.changes.mu.Lock()
			delete(s.changes.readers, reader)
			s.changes.mu.Unlock()
		}()
		if s.options.Path == "" {
			<-ctx.Done()
			return
		}
		s.watch(ctx, reader)
	}()
	return reader
}

// settleTime joins the writes of one burst of commits.
const settleTime = 20 * time.Millisecond

// watch tells of commits of other processes. SQLite's log is written by every
// commit, its own included; what changed is read from the rows.
func (s *Service) watch(ctx context.Context, reader chan string) {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		err = watcher.Add(filepath.Dir(s.options.Path))
	}
	if err != nil {
		s.options.Log.Warn("changes of other processes are not noticed", "error", err.Error())
		<-ctx.Done()
		return
	}
	seen, err := s.store.newest(ctx)
	if err != nil {
		s.options.Log.Warn("changes could not be read", "error", err.Error())
	}
	settle := time.NewTimer(time.Hour)
	settle.Stop()
	defer settle.Stop()
	waits := false
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-watcher.Events:
			if !open {
				return
			}
			if event.Name == s.options.Path+"-wal" && !waits {
				waits = true
				settle.Reset(settleTime)
			}
		case err := <-watcher.Errors:
			// An overflow loses events; one look makes up for all of them.
			s.options.Log.Warn("watching the database", "error", err)
			if !waits {
				waits = true
				settle.Reset(settleTime)
			}
		case <-settle.C:
			waits = false
			sessions, now, err := s.store.changedSince(ctx, seen)
			if err != nil {
				continue
			}
			seen = now
			for _, session := range sessions {
				put(reader, session)
			}
		}
	}
}

// mark is a moment in the tables.
type mark struct {
	message int64 // newest message
	updated int64 // newest change of a state, in milliseconds
}

func (s *store) newest(ctx context.Context) (mark, error) {
	var m mark
	err := s.db.QueryRowContext(ctx, `SELECT
		coalesce((SELECT max(id) FROM convo_messages), 0),
		coalesce((SELECT max(updated) FROM convo_outbox), 0)`).Scan(&m.message, &m.updated)
	return m, err
}

// changedSince returns the sessions in which something is newer than a mark.
// States of the mark's own millisecond count again.
func (s *store) changedSince(ctx context.Context, since mark) ([]string, mark, error) {
	now, err := s.newest(ctx)
	if err != nil {
		return nil, since, err
	}
	rows, err := s.db.QueryContext(ctx, `
		SELECT session FROM convo_conversations WHERE id IN (
			SELECT conversation FROM convo_messages WHERE id > ?
			UNION SELECT conversation FROM convo_outbox WHERE updated >= ?)`, since.message, since.updated)
	if err != nil {
		return nil, since, err
	}
	defer rows.Close()
	var sessions []string
	for rows.Next() {
		var session string
		if err := rows.Scan(&session); err != nil {
			return nil, since, err
		}
		sessions = append(sessions, session)
	}
	return sessions, now, rows.Err()
}
