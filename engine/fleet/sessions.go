package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"cellmux/cell/cfg"
	"cellmux/cell/lock"
	"cellmux/cell/state"
	"cellmux/engine/agent"
	"cellmux/engine/tmux"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
)

// bound is the agent's own session ID that a slot is in.
func (f *Fleet) bound(s state.Slot) string {
	if s.AgentSession != "" {
		return s.AgentSession
	}
	if a, known := f.o.Agents.Lookup(s.Agent); known {
		return a.OwnSession(s.SessionID)
	}
	return s.SessionID
}

// followAgents moves slots to the conversations that their agents have begun or
// resumed by themselves, as by /clear, and returns the slots as they are then,
// with those that stand in the conversation of another slot: such a move is not
// followed, since two panes never share a conversation.
func (f *Fleet) followAgents(ctx context.Context, slots []state.Slot, active map[Ref]agent.Status) (_ []state.Slot, guests map[Ref]Ref) {
	owner := make(map[string]Ref, len(slots))
	for _, s := range slots {
		owner[f.bound(s)] = Ref{s.Cell, s.Number}
	}
	guests = map[Ref]Ref{}
	for i, s := range slots {
		ref, act := Ref{s.Cell, s.Number}, active[Ref{s.Cell, s.Number}]
		if !act.Follow(f.bound(s)) {
			continue
		}
		if other, taken := owner[act.Session]; taken && other != ref {
			guests[ref] = other
			continue
		}
		moved, err := f.move(ctx, s, act.Session, act.Adopted)
		if err != nil {
			f.o.Log.Warn("a conversation was not followed", "slot", ref.String(), "error", err.Error())
			continue
		}
		delete(owner, f.bound(s))
		slots[i] = moved
		owner[act.Session] = ref
	}
	return slots, guests
}

// guestOf says in which other slot's conversation the agent of a slot stands, by
// the newest list. A message of its own would arrive there.
func (f *Fleet) guestOf(r Ref) (Ref, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	other, is := f.guests[r]
	return other, is
}

// move binds a slot to another conversation of its agent, and says so in the
// journal and in the conversation. The one that it leaves is kept. A slot whose
// agent merely chose its first ID itself leaves none.
func (f *Fleet) move(ctx context.Context, s state.Slot, to string, adopted bool) (state.Slot, error) {
	ref, from := Ref{s.Cell, s.Number}, f.bound(s)
	if adopted && s.AgentSession == "" {
		if err := f.o.Store.SetAgentSession(ctx, s.Cell, s.Number, to); err != nil {
			return s, err
		}
		s.AgentSession = to
		return s, nil
	}
	err := f.o.Store.MoveSession(ctx, s.Cell, s.Number, from, to)
	if errors.Is(err, state.ErrMoved) { // by another process, which said so
		return f.o.Store.Slot(ctx, s.Cell, s.Number)
	}
	if err != nil {
		return s, err
	}
	_ = f.did(fmt.Sprintf("follow %s in %s into another conversation (%s)", s.Agent, ref, to), nil)
	f.sayMoved(ctx, s, to)
	return f.o.Store.Slot(ctx, s.Cell, s.Number)
}

// sayMoved puts the move into the conversation: from there on the agent knows
// nothing of what stands above.
func (f *Fleet) sayMoved(ctx context.Context, s state.Slot, to string) {
	if f.o.Conversations == nil {
		return
	}
	now := f.o.Now()
	text := fmt.Sprintf("%s is in another conversation from here on (%s). It knows nothing of what stands above; that is kept here, and the agent's own record of it is %s.", s.Agent, to, f.bound(s))
	message := protocol.NewText("moved-"+to+"-"+strconv.FormatInt(now.UnixMilli(), 36), protocol.System, text, now)
	target := convo.Target{Session: s.SessionID, Cell: s.Cell, Slot: s.Number, Agent: s.Agent}
	if _, err := f.o.Conversations.Append(ctx, target, message); err != nil && ctx.Err() == nil {
		f.o.Log.Warn("a move was not noted in its conversation", "slot", target.Cell, "error", err.Error())
	}
}

// watched is a slot of a cell as the agents' watcher knows it; pane is the zero
// value where none is live.
func (f *Fleet) watched(config cfg.Config, s state.Slot, pane tmux.Pane) agent.Slot {
	config.Slot = s.Number
	home := f.o.Home
	if config.Guest.Isolated {
		home = config.WorkspaceHome
	}
	return agent.Slot{
		Key: Ref{s.Cell, s.Number}.String(), Agent: s.Agent, Config: config, Home: home,
		SessionID: s.SessionID, BoundID: s.AgentSession, Pane: pane,
	}
}

// resumable is the slot as it must be started: where its agent has moved to
// another conversation since it was started, and nobody watched, that one. A
// conversation that a program of this host has open is not opened a second time.
func (f *Fleet) resumable(ctx context.Context, c state.Cell, s state.Slot) (state.Slot, error) {
	ref := Ref{s.Cell, s.Number}
	if last, adopted := f.o.Agents.LastSession(f.watched(f.configOf(ctx, c), s, tmux.Pane{})); last != "" && last != f.bound(s) {
		moved, err := f.move(ctx, s, last, adopted)
		switch {
		case errors.Is(err, state.ErrShared):
			// Its agent was in the conversation of another slot: it starts in its own.
		case err != nil:
			return s, fmt.Errorf("start %s in the conversation that its agent was last in: %w", ref, err)
		default:
			s = moved
		}
	}
	if pid, open := f.o.Agents.Elsewhere(f.watched(f.configOf(ctx, c), s, tmux.Pane{})); open {
		return s, fmt.Errorf("start %s: its conversation (%s) is open in process %d, in another terminal; leave it there first (ps -p %d)", ref, f.bound(s), pid, pid)
	}
	return s, nil
}

// EndLeftovers ends the agents that outlived their panes, as one does that ignores
// the end of its terminal when the terminal server was killed, and notes each in
// the journal. It blocks for at most seven seconds for each.
func (f *Fleet) EndLeftovers(ctx context.Context) {
	ended, err := f.o.Opener.EndLeftovers(ctx)
	for _, l := range ended {
		_ = f.did("end "+l.String()+", which had outlived its pane", nil)
	}
	if err != nil && ctx.Err() == nil {
		_ = f.did("end agents that have outlived their panes", err)
	}
}

// startPatience is how long a slot waits for another process that starts, ends
// or uses it.
const startPatience = 15 * time.Second

// hold keeps other processes from starting a slot, and from running a turn in
// its conversation, until the lock is released.
func (f *Fleet) hold(ctx context.Context, r Ref) (*lock.File, error) {
	waiting, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	held, err := lock.Wait(waiting, f.slotLock(r))
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("%s is in use: another cellmux starts it, or runs a turn in its conversation without a pane; try again when that has ended", r)
	}
	return held, err
}

func (f *Fleet) slotLock(r Ref) string {
	return filepath.Join(filepath.Dir(f.o.Store.Path()), "locks", "slot-"+r.Cell+"-"+strconv.Itoa(r.Slot))
}

// live finds the live pane of a slot; without an answer from tmux nothing can be
// said, which is an error.
func (f *Fleet) live(ctx context.Context, r Ref) (tmux.Pane, bool, error) {
	list := f.o.Server.Refresh(ctx)
	if !list.Known {
		return tmux.Pane{}, false, fmt.Errorf("tmux is %w (%s)", ErrUnavailable, list.Err)
	}
	pane, has := panesBySlot(list)[r]
	return pane, has && !pane.Dead, nil
}
