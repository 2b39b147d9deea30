package tui

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"cellmux/engine/fleet"
)

// How long an answer may take before the screen says that none came. Opening a
// cell may build an image; the port itself bounds that.
const (
	quickly = fleet.LockPatience + 5*time.Second // what holds the database is named before that
	slowly  = 30 * time.Minute
	// slow is when the screen says that it still waits.
	slow = time.Second
)

// perform turns an intent into a command. It is the only place that calls a
// port to change something.
func (m *Model) perform(i intent) tea.Cmd {
	if command, ok := m.performLocal(i); ok {
		return command
	}
	f := m.ports.Fleet
	switch i := i.(type) {
	case openPane:
		if i.line != "" {
			return m.openForLine(i)
		}
		m.say("Opening " + orFirst(i.agent) + " in " + i.cell + " …")
		return m.work(fleet.Ref{Cell: i.cell, Slot: fleet.WholeCell}, slowly, func(ctx context.Context) done {
			if contact, err := f.FirstContact(ctx, i.cell, i.agent); err != nil || len(contact.Asks) > 0 {
				return done{err: err, contact: contact, then: i}
			}
			ref, err := f.Open(ctx, i.cell, i.agent)
			return done{what: "opened " + orFirst(i.agent) + " in " + i.cell, err: err, choose: &ref}
		})
	case openCell:
		m.say("Opening " + i.cell.Name + " …")
		return m.work(fleet.Ref{Cell: i.cell.Name, Slot: fleet.WholeCell}, slowly, func(ctx context.Context) done {
			// The offered name is a proposal, since a cell in the trash may have had
			// it, and its engine a guess: which one it gets is selected now.
			name, err := f.NewCell(ctx, fleet.NewCell{ProjectDir: i.cell.ProjectDir, Workspace: i.cell.Workspace})
			if err != nil {
				return done{err: err}
			}
			whole := &fleet.Ref{Cell: name, Slot: fleet.WholeCell}
			if contact, err := f.FirstContact(ctx, name, ""); err != nil || len(contact.Asks) > 0 {
				return done{err: err, contact: contact, choose: whole, then: openPane{cell: name}}
			}
			ref, err := f.Open(ctx, name, "")
			if err != nil {
				return done{err: err, choose: whole}
			}
			return done{what: "opened " + name, choose: &ref}
		})
	case makeCell:
		m.say("Making the cell …")
		return m.work(fleet.Ref{Slot: fleet.WholeCell}, slowly, func(ctx context.Context) done {
			name, err := f.NewCell(ctx, i.cell)
			return done{what: "made the cell " + name, err: err, choose: &fleet.Ref{Cell: name, Slot: fleet.WholeCell}}
		})
	case restartPane:
		m.busy[i.ref] = "restarting …"
		return m.work(i.ref, slowly, func(ctx context.Context) done {
			return done{what: "restarted " + i.ref.String(), err: f.Restart(ctx, i.ref), choose: &i.ref}
		})
	case stopPanes:
		return m.each(i.refs, "stopping …", "stopped", f.Stop)
	case deleteRefs:
		return m.each(i.refs, "deleting …", "deleted", f.Delete)
	case archiveRefs:
		word := map[bool]string{true: "archived", false: "brought back"}[i.archived]
		return m.each(i.refs, "", word, func(ctx context.Context, r fleet.Ref) error { return f.Archive(ctx, r, i.archived) })
	case undoLast:
		m.undo = time.Time{}
		return m.work(fleet.Ref{Slot: fleet.WholeCell}, quickly, func(ctx context.Context) done {
			what, err := f.Undo(ctx)
			return done{what: "undone: " + what, err: err}
		})
	case renameRef:
		return m.work(i.ref, quickly, func(ctx context.Context) done {
			return done{what: "renamed to " + i.title, err: f.Rename(ctx, i.ref, i.title), undo: true}
		})
	case pinCell:
		word := map[bool]string{true: "pinned ", false: "unpinned "}[i.pinned]
		return m.work(fleet.Ref{Cell: i.cell, Slot: fleet.WholeCell}, quickly, func(ctx context.Context) done {
			return done{what: word + i.cell, err: f.Pin(ctx, i.cell, i.pinned)}
		})
	case interruptPane:
		return m.work(i.ref, quickly, func(ctx context.Context) done {
			return done{what: "interrupted " + i.ref.String(), err: f.Interrupt(ctx, i.ref)}
		})
	case reviewWork:
		m.say("Opening a reviewer in " + i.ref.Cell + " …")
		return m.work(i.ref, slowly, func(ctx context.Context) done {
			ref, entry, err := m.ports.Conversation.Review(ctx, i.ref)
			return done{what: "asked " + ref.String() + " for a review: " + deliveryText(entry), err: err, choose: &ref}
		})
	case trustCell:
		return m.work(fleet.Ref{Cell: i.cell, Slot: fleet.WholeCell}, quickly, func(ctx context.Context) done {
			return done{what: "approved the project file of " + i.cell, err: f.Trust(ctx, i.cell, i.hash), then: i.then}
		})
	case answerContact:
		return m.work(fleet.Ref{Slot: fleet.WholeCell}, quickly, func(ctx context.Context) done {
			return done{err: f.AnswerFirstContact(ctx, i.directory, i.trusted), then: i.then}
		})
	case commitWork:
		return m.commitNow(i)
	case cancelWork:
		return m.work(fleet.Ref{Slot: fleet.WholeCell}, quickly, func(ctx context.Context) done {
			return done{what: "cancelled", err: f.CancelWork(ctx, i.id)}
		})
	case killJob:
		return m.work(fleet.Ref{Slot: fleet.WholeCell}, quickly, func(ctx context.Context) done {
			return done{what: "ended the background process", err: m.ports.Jobs.KillJob(ctx, i.id)}
		})
	case refreshAll:
		return tea.Batch(m.call(quickly, func(ctx context.Context) tea.Msg {
			s, err := f.Refresh(ctx)
			if err != nil {
				return done{err: err}
			}
			return refreshed{s}
		}), m.capture(), m.loadTab(), m.loadLog())
	}
	return m.performAsking(i)
}

// performAsking asks for something to show.
func (m *Model) performAsking(i intent) tea.Cmd {
	d := m.ports.Details
	switch i := i.(type) {
	case showAgents:
		return m.call(quickly, func(ctx context.Context) tea.Msg {
			choices, err := m.ports.Fleet.Agents(ctx, i.cell)
			return agentsListed{i.cell, choices, err}
		})
	case showApproval:
		return m.call(quickly, func(ctx context.Context) tea.Msg {
			a, err := d.Approval(ctx, i.cell)
			return approvalShown{a, i.then, err}
		})
	case showProposal:
		m.say("Looking at what would be committed …")
		return m.call(slowly, func(ctx context.Context) tea.Msg {
			p, err := m.ports.Fleet.Proposal(ctx, i.cell)
			return proposed{i.cell, p, i.again, err}
		})
	case readEvents:
		return m.call(quickly, func(ctx context.Context) tea.Msg {
			events, err := d.Events(ctx, 200)
			return textRead{"What cellmux did", eventLines(events), err}
		})
	case readLog:
		return m.call(quickly, func(ctx context.Context) tea.Msg {
			lines, err := m.ports.Journal.Log(ctx, 500)
			return textRead{"Log", lines, err}
		})
	case listJobs:
		return m.call(quickly, func(ctx context.Context) tea.Msg {
			jobs, err := m.ports.Jobs.Jobs(ctx)
			return jobsListed{jobs, err}
		})
	case searchText:
		return m.searchInstead(i)
	case completeLine:
		return m.call(quickly, func(ctx context.Context) tea.Msg {
			choices, err := m.ports.Shell.Complete(ctx, i.ref, i.text, i.cursor)
			return completed{i.text, i.cursor, choices, err}
		})
	case toggleAsks:
		return m.work(i.ref, quickly, func(ctx context.Context) done {
			asks, err := m.ports.Conversation.Asks(ctx, i.ref, m.settings.AskByDefault)
			if err != nil {
				return done{err: err}
			}
			words := map[bool]string{true: "the agent answers ! lines here from now on", false: "the agent no longer answers ! lines here"}
			return done{what: words[!asks], err: m.ports.Conversation.SetAsks(ctx, i.ref, !asks)}
		})
	case sendText:
		return m.send(i)
	case showMessage:
		return m.showMessage(i.entry)
	case sayWord:
		return m.decide(i)
	case runLine:
		return m.call(slowly, func(context.Context) tea.Msg {
			handle, err := m.ports.Shell.Start(m.ctx, i.ref, i.line, i.mode, i.onHost)
			return lineStarted{i.ref, i.line, handle, err}
		})
	case typeKeys:
		return m.typeNow(i)
	case attachTo:
		_, slot := m.list.find(i.ref)
		if slot == nil || slot.Pane == "" {
			return nil
		}
		m.list.use(idOf(i.ref))
		return m.attach(slot.Pane)
	case attachToPane:
		m.list.use(rowID{kind: outsideRow, pane: i.pane})
		return m.attach(i.pane)
	case editText:
		return m.call(quickly, func(ctx context.Context) tea.Msg {
			a, saved, err := m.ports.Editor.Edit(m.ctx, i.text)
			return foregroundReady{a, saved, err}
		})
	}
	return nil
}

// performLocal applies what needs no port.
func (m *Model) performLocal(i intent) (tea.Cmd, bool) {
	switch i := i.(type) {
	case nil:
	case sayText:
		m.say(i.text)
	case runBinding:
		if b := m.keys.byName[i.name]; b != nil {
			return m.do(b, tea.KeyMsg{}), true
		}
	case runFunction:
		i.function()
		return m.capture(), true
	case lineForPane:
		m.lineWaits = &i
		return m.attachWanted(), true
	case setSort:
		m.list.sort = i.by
		m.list.reorder()
		m.list.rebuild()
	case setGroup:
		m.list.group = i.by
		m.list.reorder()
		m.list.rebuild()
	case selectRef:
		m.choose(i.ref)
	case askConfirm:
		m.overlay = i.dialog
	case composeWith:
		m.compose(i.text)
		return m.composer.asksWhere(m), true
	case copyText:
		return m.copyNow(i), true
	case cancelLine:
		if live := m.log.live[i.id]; live != nil {
			live.cancelled = true
			m.say("Cancelling ! " + clean(live.line) + " …")
			return func() tea.Msg { live.handle.Cancel(); return nil }, true
		}
	case suspendNow:
		return m.suspend(), true
	case quitNow:
		return m.quitNow(), true
	default:
		return nil, false
	}
	return nil, true
}

// refreshed is the answer to ctrl-r.
type refreshed struct{ snapshot fleet.Snapshot }

func orFirst(agent string) string {
	if agent == "" {
		return "the first agent"
	}
	return agent
}

// call runs ask with a deadline and returns its message.
func (m *Model) call(limit time.Duration, ask func(context.Context) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, limit)
		defer cancel()
		return ask(ctx)
	}
}

// work is call for an action on ref.
func (m *Model) work(ref fleet.Ref, limit time.Duration, act func(context.Context) done) tea.Cmd {
	m.acted++
	id := m.acted
	m.acting[id] = true
	return tea.Batch(m.call(limit, func(ctx context.Context) tea.Msg {
		d := act(ctx)
		d.refs, d.id = []fleet.Ref{ref}, id
		return d
	}), tea.Tick(slow, func(time.Time) tea.Msg { return stillActing(id) }))
}

// saySlow tells that an action has no answer yet, where nothing else is said.
func (m *Model) saySlow(id stillActing) {
	if m.acting[int(id)] && m.noteNow() == "" && len(m.snapshot.Work) == 0 {
		m.say("Still at it: the database, tmux or the machine is busy …")
	}
}

// each acts on several references, one after the other, and tells how many
// went well.
func (m *Model) each(refs []fleet.Ref, doing, did string, act func(context.Context, fleet.Ref) error) tea.Cmd {
	names := make([]string, len(refs))
	for i, r := range refs {
		names[i] = m.refName(r)
		if doing != "" {
			m.busy[r] = doing
		}
	}
	m.list.unmark()
	return m.call(slowly, func(ctx context.Context) tea.Msg {
		var failures []error
		for i, r := range refs {
			if err := act(ctx, r); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", names[i], err))
			}
		}
		d := done{refs: refs, err: errors.Join(failures...), undo: len(failures) < len(refs)}
		if d.what = did + " " + names[0]; len(refs) > 1 {
			d.what = fmt.Sprintf("%s %d of %d", did, len(refs)-len(failures), len(refs))
		}
		return d
	})
}

func (m *Model) actionEnded(d done) tea.Cmd {
	delete(m.acting, d.id)
	for _, r := range d.refs {
		delete(m.busy, r)
	}
	if d.choose != nil && d.choose.Cell != "" {
		m.choose(*d.choose)
	}
	switch {
	case d.err != nil:
		m.warn(d.err)
		return nil
	case d.what != "":
		m.say(upperFirst(d.what) + ".")
	}
	if d.undo {
		m.undo = time.Now().Add(undoOffer)
	}
	if len(d.contact.Asks) > 0 {
		m.askContact(d.contact, d.then)
		return m.tick()
	}
	if d.then != nil {
		return m.perform(d.then)
	}
	return m.tick()
}

// undoOffer is how long the footer offers to undo; undo itself has no limit.
const undoOffer = 10 * time.Second

func upperFirst(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

// choose selects a row now or as soon as it exists.
func (m *Model) choose(r fleet.Ref) {
	delete(m.list.collapsed, r.Cell)
	m.list.wanted = idOf(r)
	m.list.rebuild()
}

func (m *Model) copyNow(i copyText) tea.Cmd {
	m.say("Copied " + i.what + ".")
	return m.call(quickly, func(ctx context.Context) tea.Msg {
		m.device.Send(ansi.SetSystemClipboard(i.text))
		if m.ports.Clipboard == nil {
			return nil
		}
		// OSC 52 has reached most terminals; a machine without a clipboard of its
		// own is no error.
		_ = m.ports.Clipboard.Copy(ctx, i.text)
		return nil
	})
}
