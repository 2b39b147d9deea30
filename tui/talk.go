package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"cellmux/engine/fleet"
	"cellmux/shellctx"
	"cellmux/shellctx/convo"
)

// talk is the Conversation tab: a part of a conversation that grows upwards as
// it is scrolled, and downwards as the conversation grows.
type talk struct {
	page   []convo.Entry // oldest first; a growing answer comes last
	whole  bool          // page begins with the first message
	apart  bool          // page was jumped to, and does not end with the newest message
	opened map[int64]bool

	jump   *convo.Entry // what the next load is to show
	marked int64        // the message that was jumped to
	target int64        // the message to bring into sight with the next drawing

	drawn map[int64]drawing // by message
	of    []int64           // of each line: the message it is of
	folds map[int64]bool    // the messages that can be folded
}

// drawing is a message as it was drawn. Thousands are on a page that was
// scrolled far, and each change of one draws all of them.
type drawing struct {
	width    int
	delivery convo.Delivery
	reason   string
	opened   bool
	marked   bool
	lines    []string
	foldable bool
}

const pageSize = 100

// loadTalk asks for the newest messages of a slot, or for those around the one
// that was jumped to.
func (m *Model) loadTalk(ref fleet.Ref, g generation) tea.Cmd {
	t := &m.tabs.talk
	jump := t.jump
	if jump == nil || jump.Cell != ref.Cell || jump.Slot != ref.Slot {
		if t.apart && len(t.page) > 0 && t.page[0].Cell == ref.Cell && t.page[0].Slot == ref.Slot {
			m.tabs.loading = false // what happens elsewhere does not take the place away
			return nil
		}
		t.apart = false
		return m.loadPage(ref, 0, g)
	}
	t.jump = nil
	return m.call(quickly, func(ctx context.Context) tea.Msg {
		page, err := m.ports.Conversation.Around(ctx, *jump, pageSize/2)
		return tabLoaded{generation: g, tab: conversationTab, page: page, around: jump.Seq, err: err}
	})
}

func (m *Model) loadPage(ref fleet.Ref, before int64, g generation) tea.Cmd {
	return m.call(quickly, func(ctx context.Context) tea.Msg {
		page, err := m.ports.Conversation.Page(ctx, ref, before, pageSize)
		return tabLoaded{generation: g, tab: conversationTab, page: page, older: before > 0, err: err}
	})
}

// loaded takes messages in.
func (t *talk) loaded(l tabLoaded) {
	page := slices.Clone(l.page)
	switch {
	case l.around > 0:
		after := slices.IndexFunc(page, func(e convo.Entry) bool { return e.Seq >= l.around })
		// Fewer than were asked for: the newest is among them, and the view is live.
		t.page, t.whole, t.apart = page, false, after >= 0 && len(page)-after == pageSize/2
		t.marked, t.target = l.around, l.around
	case l.older:
		t.whole = len(page) < pageSize
		t.page = append(page, t.page...)
	default:
		// What was scrolled to stays, where the newest page joins it.
		older := slices.DeleteFunc(slices.Clone(t.page), func(e convo.Entry) bool {
			return e.Partial || len(page) == 0 || e.Seq >= firstSeq(page)
		})
		joined := len(older) > 0 && len(older) < len(t.page) && older[0].Session == page[0].Session
		if joined && !t.apart {
			t.page = append(older, page...)
			return
		}
		t.page, t.whole, t.apart = page, len(page) < pageSize, false
	}
}

func firstSeq(page []convo.Entry) int64 {
	if page[0].Partial {
		return 1 << 62
	}
	return page[0].Seq
}

// A line of a message, and how many lines below it the view ends. It outlives a
// drawing, which a count of lines does not: messages grow, fold and are wrapped
// anew, and several may come between two drawings.
type anchor struct {
	message int64 // 0: the view follows the end
	line    int   // of the message, from 0
	below   int
}

// anchor is the last line in sight of the present drawing, up lines above its end.
func (t *talk) anchor(up int) anchor {
	if up <= 0 {
		return anchor{}
	}
	last := len(t.of) - up - 1
	for i := last; i >= 0; i-- {
		if t.of[i] != 0 {
			return anchor{message: t.of[i], line: i - slices.Index(t.of, t.of[i]), below: last - i}
		}
	}
	return anchor{}
}

// place says how far up the view is in a new drawing: what was in sight stays
// there, unless the end was.
func (t *talk) place(up int, a anchor, h int) int {
	n := len(t.of)
	if first := slices.Index(t.of, a.message); a.message != 0 && first >= 0 {
		at := first
		for at+1 < n && at-first < a.line && t.of[at+1] == a.message {
			at++
		}
		up = max(1, n-1-at-a.below)
	}
	if t.target > 0 {
		if at := slices.Index(t.of, t.target); at >= 0 {
			up = max(0, n-at-h+min(2, h-1))
		}
		t.target = 0
	}
	return up
}

// moreOfTab asks for older messages when the view has reached the oldest one,
// and for the newest when it has left a place that was jumped to.
func (m *Model) moreOfTab() tea.Cmd {
	tab, t := &m.tabs, &m.tabs.talk
	_, slot := m.list.target()
	if tab.current != conversationTab || tab.loading || len(t.page) == 0 || slot == nil {
		return nil
	}
	if t.apart && tab.up == 0 {
		t.apart, t.marked = false, 0
		return m.loadTab()
	}
	if t.whole || tab.up < len(tab.lines)-m.layout().preview.h {
		return nil
	}
	tab.loading = true
	return m.loadPage(slot.Ref, t.page[0].Seq, tab.generation)
}

// conversationGrew reloads what shows a conversation; a place that was jumped to
// is left alone.
func (m *Model) conversationGrew(session string) tea.Cmd {
	if m.tabs.current != conversationTab || m.tabs.talk.apart {
		return nil
	}
	if _, slot := m.list.target(); session != "" && slot != nil && slot.SessionID != "" && slot.SessionID != session {
		return nil
	}
	return m.loadTab()
}

// talkLines draws the page in rows of w cells.
func (m *Model) talkLines(w int) []string {
	t := &m.tabs.talk
	drawn := make(map[int64]drawing, len(t.page))
	t.of, t.folds = t.of[:0], map[int64]bool{}
	var lines []string
	for i := range t.page {
		e := &t.page[i]
		if shellctx.IsCommitAck(e.Message) {
			continue
		}
		d, same := t.drawn[e.Seq]
		now := drawing{width: w, delivery: e.Delivery, reason: e.Reason, opened: t.opened[e.Seq], marked: e.Seq == t.marked}
		if !same || e.Partial || d.width != now.width || d.delivery != now.delivery || d.reason != now.reason || d.opened != now.opened || d.marked != now.marked {
			now.lines, now.foldable = m.messageLines(e, w)
			d = now
		}
		if !e.Partial {
			drawn[e.Seq] = d
		}
		if len(lines) > 0 {
			lines, t.of = append(lines, ""), append(t.of, 0)
		}
		for _, line := range d.lines {
			lines, t.of = append(lines, line), append(t.of, e.Seq)
		}
		t.folds[e.Seq] = d.foldable
	}
	t.drawn = drawn
	return lines
}

// inSight is the newest message in sight that a condition holds for.
func (m *Model) inSight(holds func(*convo.Entry) bool) *convo.Entry {
	tab, t := &m.tabs, &m.tabs.talk
	for i := min(len(t.of), max(0, len(tab.lines)-tab.up)) - 1; i >= 0; i-- {
		at := slices.IndexFunc(t.page, func(e convo.Entry) bool { return !e.Partial && e.Seq == t.of[i] })
		if at >= 0 && holds(&t.page[at]) {
			return &t.page[at]
		}
	}
	return nil
}

// fold opens or closes the newest record in sight that can be folded.
func (m *Model) fold() {
	t := &m.tabs.talk
	e := m.inSight(func(e *convo.Entry) bool { return t.folds[e.Seq] })
	if e == nil {
		return
	}
	if t.opened == nil {
		t.opened = map[int64]bool{}
	}
	t.opened[e.Seq] = !t.opened[e.Seq]
	m.tabs.linesFor = 0
}

// openRecord shows the newest record in sight in a pager.
func (m *Model) openRecord() {
	e := m.inSight(func(e *convo.Entry) bool { _, is := shellctx.FromMessage(e.Message); return is })
	if e == nil {
		m.say("No record is in sight.")
		return
	}
	record, _ := shellctx.FromMessage(e.Message)
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(record.Output, "\n"), "\n") {
		lines = append(lines, m.guestRow(line, 106))
	}
	m.overlay = &pager{title: "! " + clean(firstLine(record.Command)), lines: lines}
}

// newSearch searches conversations as the user types: all of them, or one.
func newSearch(title, session string) *picker {
	return &picker{title: title, empty: "Words; cell:api agent:codex exit:!=0 since:3d narrow them.",
		typed: func(text string) []intent {
			if strings.TrimSpace(text) == "" {
				return nil
			}
			return []intent{searchText{query: text, session: session}}
		}}
}

// findHere searches the conversation that is shown.
func (m *Model) findHere() tea.Cmd {
	if _, slot := m.list.target(); slot != nil {
		m.overlay = newSearch("Search in this conversation", slot.SessionID)
	}
	return nil
}

// searchInstead searches for what is typed now and gives up what was asked for
// before: a search of a long history outlasts a key, and they would pile up.
func (m *Model) searchInstead(i searchText) tea.Cmd {
	m.giveUpSearch()
	wanted, end := context.WithCancel(m.ctx)
	m.endSearch = end
	return func() tea.Msg {
		defer end()
		ctx, cancel := context.WithTimeout(wanted, quickly)
		defer cancel()
		hits, err := m.search(ctx, i)
		if wanted.Err() != nil {
			return nil
		}
		return found{i, hits, err}
	}
}

// giveUpSearch ends the search that runs, if any.
func (m *Model) giveUpSearch() {
	if m.endSearch != nil {
		m.endSearch()
		m.endSearch = nil
	}
}

// searchPage is how many hits are asked for at a time.
const searchPage = 50

// search asks for the hits of a line. The last word may be the beginning of one
// that is still being typed.
func (m *Model) search(ctx context.Context, i searchText) ([]convo.Hit, error) {
	q, err := convo.ParseQuery(i.query, time.Now())
	if err != nil {
		return nil, err
	}
	if last := q.Text[strings.LastIndexByte(q.Text, ' ')+1:]; len(last) >= 3 && !strings.ContainsAny(last, `"*:`) && !strings.HasSuffix(i.query, " ") {
		q.Text += "*"
	}
	q.Session, q.Limit, q.Before = i.session, searchPage, i.before
	return m.ports.Conversation.Search(ctx, q)
}

func (m *Model) found(f found) {
	p, ok := m.overlay.(*picker)
	if !ok || p.typed == nil || p.field.text != f.query {
		return
	}
	if f.before == 0 {
		p.items, p.at, p.empty = nil, 0, "Nothing was found."
	}
	if f.err != nil {
		p.empty = clean(sentence(f.err))
		return
	}
	for _, h := range f.hits {
		ref := fleet.Ref{Cell: h.Entry.Cell, Slot: h.Entry.Slot}
		p.items = append(p.items, item{
			label:   ref.String() + "  " + h.Entry.Stored.Local().Format("2 Jan 15:04"),
			detail:  h.Snippet,
			intents: []intent{showMessage{h.Entry}},
		})
	}
	if n := len(f.hits); n == searchPage && !strings.Contains(f.query, "sort:rank") {
		older := f.searchText
		older.before = f.hits[n-1].Entry.Seq
		p.more = []intent{older}
	}
}

// showMessage jumps to a message: its row, the Conversation tab, its place.
func (m *Model) showMessage(e convo.Entry) tea.Cmd {
	ref := fleet.Ref{Cell: e.Cell, Slot: e.Slot}
	if _, slot := m.list.find(ref); slot == nil {
		// Its slot is in the trash; the conversation outlives it.
		text := e.Message.Text()
		if record, is := shellctx.FromMessage(e.Message); is {
			text = shellctx.DisplayText(record)
		}
		m.overlay = &pager{title: ref.String() + ", no longer in the list", lines: m.proseLines(text, 106)}
		return nil
	}
	m.choose(ref)
	m.tabs.current, m.tabs.up = conversationTab, 0
	m.tabs.talk.jump = &e
	m.focus = inPreview
	if m.list.selected == m.followed {
		return m.loadTab()
	}
	return nil // another row is followed at once, and loads its tab
}

// open are the messages of the page whose fate the user may decide, newest first.
func (t *tabs) open() []convo.Entry {
	var open []convo.Entry
	for _, e := range slices.Backward(t.talk.page) {
		switch e.Delivery {
		case convo.Unconfirmed, convo.Queued, convo.Failed:
			if !shellctx.IsContextOnly(e.Message) {
				open = append(open, e)
			}
		}
	}
	return open
}

// decisionMenu offers the words that can be said about each of them.
func (m *Model) decisionMenu() *picker {
	p := &picker{title: "What becomes of it?"}
	add := func(e convo.Entry, label string, word fleet.Word) {
		p.items = append(p.items, item{label: label, detail: clean(firstLine(e.Message.Text())), intents: []intent{sayWord{e, word}}})
	}
	for _, e := range m.tabs.open() {
		switch e.Delivery {
		case convo.Unconfirmed:
			add(e, "the agent has it", fleet.Arrived)
			add(e, "send it again, perhaps a second time", fleet.Again)
			add(e, "give it up", fleet.Drop)
		case convo.Failed:
			add(e, "send it again", fleet.Again)
		case convo.Queued:
			add(e, "take it back", fleet.Drop)
		}
	}
	return p
}

// decide says the user's word.
func (m *Model) decide(i sayWord) tea.Cmd {
	ref := fleet.Ref{Cell: i.entry.Cell, Slot: i.entry.Slot}
	return m.call(slowly, func(ctx context.Context) tea.Msg {
		entry, err := m.ports.Conversation.Decide(ctx, i.entry.Seq, i.word)
		if err != nil {
			return done{err: err}
		}
		return sent{ref: ref, entry: entry}
	})
}

// messageText is what of a message is worth copying.
func messageText(e *convo.Entry) string {
	if record, is := shellctx.FromMessage(e.Message); is {
		return shellctx.DisplayText(record)
	}
	return e.Message.Text()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
