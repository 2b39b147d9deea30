package convo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"cellmux/shellctx"
	"cellmux/shellctx/protocol"
)

// Options of a Service. DB and LockDir are required.
type Options struct {
	DB      *sql.DB // with Migrations applied; its transactions must begin immediate
	LockDir string  // where one lock file per conversation keeps other processes off its pane
	// Path is the database's file: commits of other processes are noticed by
	// watching its log. "" notices those of this process alone.
	Path     string
	Pane     PaneTransport     // nil: nothing is typed
	Headless HeadlessTransport // nil: what has no pane stays queued
	Now      func() time.Time  // nil: time.Now
	Log      *slog.Logger      // nil: none. Never gets text of messages

	// ProofTimeout bounds the wait for proof of submission; 0: 10 s.
	ProofTimeout time.Duration
	// RetryInterval is how often Run looks again at what is queued; 0: 2 s. With
	// nothing queued it does not look.
	RetryInterval time.Duration

	// crash is called before and after each port call and each commit of a
	// delivery; tests end the process in it.
	crash func(step string)
}

// Service keeps conversations and delivers their messages. It is safe for
// concurrent use, and several processes may run one on the same database.
type Service struct {
	options Options
	store   *store
	changes *changes
	turns   *turns
	checks  *checks
	wake    chan struct{} // holds one: Run looks at all that is queued
	search  chan struct{} // holds one: the search that runs
}

// New returns a Service. It starts nothing: Run delivers in the background,
// Deliver in the foreground.
func New(options Options) *Service {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if options.ProofTimeout == 0 {
		options.ProofTimeout = 10 * time.Second
	}
	if options.RetryInterval == 0 {
		options.RetryInterval = 2 * time.Second
	}
	if options.crash == nil {
		options.crash = func(string) {}
	}
	return &Service{
		options: options,
		store:   &store{db: options.DB, now: options.Now, crash: options.crash},
		changes: &changes{},
		turns:   &turns{},
		checks:  &checks{},
		wake:    make(chan struct{}, 1),
		search:  make(chan struct{}, 1),
	}
}

// Receipt is what Submit returns.
type Receipt struct {
	Entry Entry
	// Ack is the empty final that tells a context-only message is kept; nil for
	// a message that is to be delivered. It is no part of the history.
	Ack *protocol.ChatMessage
}

// Submit stores a user's message and then decides from its metadata: one that
// is context only ends here, any other is queued, and Run, or the next Deliver,
// hands it over. When Submit returns, the message is on disk. A message without
// an ID gets one; one whose ID is stored already is not stored again.
func (s *Service) Submit(ctx context.Context, t Target, m protocol.ChatMessage) (Receipt, error) {
	if m.ID == "" {
		m.ID = "msg-" + uuid.NewString()
	}
	if m.CreatedAt == "" {
		m.CreatedAt = s.options.Now().UTC().Format(time.RFC3339Nano)
	}
	if m.Role == "" {
		m.Role = protocol.User
	}
	if m.Role != protocol.User {
		return Receipt{}, fmt.Errorf("submit message %s: only a user's messages are delivered, this one has role %q", m.ID, m.Role)
	}
	if shellctx.IsCommitAck(m) {
		return Receipt{}, fmt.Errorf("submit message %s: an acknowledgement is no message", m.ID)
	}
	entries, err := s.store.append(ctx, t, []protocol.ChatMessage{m}, true)
	if err != nil {
		return Receipt{}, fmt.Errorf("submit message %s: %w", m.ID, err)
	}
	s.changed(t.Session)
	receipt := Receipt{Entry: entries[0]}
	if shellctx.IsContextOnly(m) {
		ack := protocol.NewText(m.ID+"-ack", protocol.Assistant, "", s.options.Now())
		ack.Content = nil
		shellctx.MarkCommitAck(&ack)
		receipt.Ack = &ack
		return receipt, nil
	}
	s.look()
	return receipt, nil
}

// Append stores messages that nobody delivers, such as an agent's answers, in
// one transaction and in their order. They are on disk when it returns. Those
// whose IDs are stored already are not stored again.
func (s *Service) Append(ctx context.Context, t Target, messages ...protocol.ChatMessage) ([]Entry, error) {
	for i := range messages {
		if messages[i].ID == "" {
			return nil, errors.New("append messages: one has no ID")
		}
	}
	entries, err := s.store.append(ctx, t, messages, false)
	if err != nil {
		return nil, fmt.Errorf("append messages: %w", err)
	}
	s.changed(t.Session)
	return entries, nil
}

// Page returns up to n messages of a conversation that are older than before
// (0: the newest), oldest first. A growing answer comes last on the newest page.
func (s *Service) Page(ctx context.Context, session string, before int64, n int) ([]Entry, error) {
	entries, err := s.store.page(ctx, session, before, n)
	if err != nil {
		return nil, fmt.Errorf("read conversation %s: %w", session, err)
	}
	return entries, nil
}

// Around returns up to n messages before and n from seq on, oldest first: the
// place that a search hit jumps to.
func (s *Service) Around(ctx context.Context, session string, seq int64, n int) ([]Entry, error) {
	entries, err := s.store.around(ctx, session, seq, n)
	if err != nil {
		return nil, fmt.Errorf("read conversation %s: %w", session, err)
	}
	return entries, nil
}

// Entry returns one message by its place in the order.
func (s *Service) Entry(ctx context.Context, seq int64) (Entry, error) {
	entry, err := s.store.entry(ctx, seq)
	if err != nil {
		return Entry{}, fmt.Errorf("read message %d: %w", seq, err)
	}
	return entry, nil
}

// Open returns the messages whose fate is open, queued, typed or unconfirmed,
// of all conversations, oldest first: what a quitting screen names.
func (s *Service) Open(ctx context.Context) ([]Entry, error) {
	entries, err := s.store.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what is queued: %w", err)
	}
	return entries, nil
}

// AskPolicy says whether agents answer `!` commands of a conversation.
type AskPolicy int

// The policies; AskDefault leaves it to the global setting.
const (
	AskDefault AskPolicy = iota
	AskOff
	AskOn
)

// Asks returns whether a `!` that starts now asks the agent to answer: when
// the line says so itself, else by the conversation's policy, else by the
// global default.
func (s *Service) Asks(ctx context.Context, t Target, line, global bool) (bool, error) {
	if line {
		return true, nil
	}
	policy, err := s.AskPolicy(ctx, t.Session)
	if err != nil || policy == AskDefault {
		return global, err
	}
	return policy == AskOn, nil
}

// AskPolicy returns a conversation's policy.
func (s *Service) AskPolicy(ctx context.Context, session string) (AskPolicy, error) {
	var policy AskPolicy
	err := s.options.DB.QueryRowContext(ctx, `SELECT ask FROM convo_conversations WHERE session = ?`, session).Scan(&policy)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return AskDefault, fmt.Errorf("read whether %s answers: %w", session, err)
	}
	return policy, nil
}

// SetAskPolicy changes a conversation's policy.
func (s *Service) SetAskPolicy(ctx context.Context, t Target, policy AskPolicy) error {
	if _, err := s.options.DB.ExecContext(ctx, `
		INSERT INTO convo_conversations (session, cell, slot, agent, ask) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (session) DO UPDATE SET ask = excluded.ask`, t.Session, t.Cell, t.Slot, t.Agent, policy); err != nil {
		return fmt.Errorf("set whether %s answers: %w", t.Session, err)
	}
	s.changed(t.Session)
	return nil
}

// Forget removes a conversation for good, from the index too.
func (s *Service) Forget(ctx context.Context, session string) error {
	if err := s.store.forget(ctx, session); err != nil {
		return fmt.Errorf("forget conversation %s: %w", session, err)
	}
	s.changed(session)
	return nil
}

// look makes Run look at what is queued.
func (s *Service) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
