package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"cellmux/cell/cfg"
	"cellmux/cell/state"
	"cellmux/engine/agent"
	"cellmux/engine/tmux"
)

// listing is everything that a snapshot is made of, read at one moment.
type listing struct {
	cells   []state.Cell
	slots   []state.Slot
	panes   tmux.List
	active  map[Ref]agent.Status
	queued  map[Ref]int
	git     map[string]string  // by cell
	project map[string]project // by cell
	guests  map[Ref]Ref        // slots whose agent stands in the conversation of another
	carried map[string]Guest   // by cell
	engines []Engine
	outside []Outside
	offered *Cell
	taken   time.Time
}

// project is what was found at a cell's project directory.
type project struct {
	problem, approval string
	commits           bool // on the host
	config            cfg.CellConfig
	told              cfg.Config // what the programs of its slots are told, but the slot
}

// join makes the list from its parts. It is pure: the same parts give the same
// list, and since keeps the times at which statuses began.
func join(in listing, since ages) Snapshot {
	panes := panesBySlot(in.panes)
	bySlot := make(map[string][]Slot, len(in.cells))
	seen := make(map[Ref]bool, len(in.slots))
	for _, s := range in.slots {
		ref := Ref{Cell: s.Cell, Slot: s.Number}
		seen[ref] = true
		pane, alive := panes[ref]
		row := Slot{
			Ref: ref, Agent: s.Agent, Title: s.Title, SessionID: s.SessionID,
			Queued: in.queued[ref], Archived: s.Archived,
		}
		judge(&row, s, in.panes, pane, alive, in.active[ref])
		if other, is := in.guests[ref]; is && row.Status.Live() {
			row.Detail = fmt.Sprintf("its agent is in the conversation of %s: messages wait", other)
			row.Notes = append(row.Notes, fmt.Sprintf("Its agent resumed the conversation of %s, where another pane may be. Two panes never share one: messages wait until it has left (/clear), or restart %s.", other, ref))
		}
		row.Notes = append(slices.Clone(s.Notes), row.Notes...)
		if s.Agent == shellAgent && row.Status.Live() && len(row.Notes) > 0 {
			row.Detail += "  " + row.Notes[0] // such as how to get an agent
		}
		row.Since = since.begin(ref, row, in.active[ref], in.taken)
		bySlot[s.Cell] = append(bySlot[s.Cell], row)
	}
	since.forget(seen)

	out := Snapshot{Outside: in.outside, Engines: in.engines, Taken: in.taken}
	if !in.panes.Known {
		out.Server = cmp.Or(in.panes.Err, "tmux has not answered yet")
	}
	for _, c := range in.cells {
		rows := bySlot[c.Name]
		slices.SortFunc(rows, func(a, b Slot) int { return cmp.Compare(a.Ref.Slot, b.Ref.Slot) })
		out.Cells = append(out.Cells, Cell{
			Name: c.Name, Title: cmp.Or(c.Title, c.Name), Workspace: c.Workspace, ProjectDir: c.ProjectDir,
			Engine: c.Engine, EngineReason: c.EngineReason,
			Problem: in.project[c.Name].problem, Approval: in.project[c.Name].approval,
			Guest:         in.carried[c.Name],
			CommitsOnHost: in.project[c.Name].commits,
			Git:           in.git[c.Name], Pinned: c.Pinned, Archived: c.Archived, Created: c.Created,
			Slots: rows,
		})
	}
	slices.SortStableFunc(out.Cells, func(a, b Cell) int { return a.Created.Compare(b.Created) })
	if in.offered != nil {
		out.Cells = append([]Cell{*in.offered}, out.Cells...)
	}
	return out
}

// panesBySlot finds the pane of each slot.
func panesBySlot(list tmux.List) map[Ref]tmux.Pane {
	panes := make(map[Ref]tmux.Pane, len(list.Panes))
	for _, p := range list.Panes {
		if p.Cell == "" || p.Slot < 0 {
			continue
		}
		ref := Ref{Cell: p.Cell, Slot: p.Slot}
		if other, taken := panes[ref]; !taken || better(p, other) {
			panes[ref] = p
		}
	}
	return panes
}

// better prefers a live pane over a dead one, then the newer one, where a slot
// has two panes (somebody split its window).
func better(p, other tmux.Pane) bool {
	if p.Dead != other.Dead {
		return other.Dead
	}
	return false
}

// judge fills what a slot is doing. Without an answer from tmux nothing that
// may be alive is called stopped or dead.
func judge(row *Slot, s state.Slot, list tmux.List, pane tmux.Pane, alive bool, act agent.Status) {
	switch {
	case !list.Known && s.Stopped:
		row.Status = Stopped
	case !list.Known:
		row.Status, row.Detail = Unknown, "tmux gives no answer"
	case !alive && s.Stopped:
		row.Status = Stopped
	case !alive:
		row.Status, row.Detail = Stopped, "its pane is gone (r: restart)"
	case pane.Dead:
		row.Status, row.Pane, row.ExitStatus = Dead, pane.ID, pane.ExitStatus
		row.Detail = fmt.Sprintf("exited %d (r: restart)", pane.ExitStatus)
	default:
		row.Pane = pane.ID
		row.Status = statusOf[act.State]
		row.Detail = cmp.Or(act.Detail, paneDetail(s, pane))
		row.Question = act.Question
		if row.Status == Idle && !s.Moved.IsZero() && s.Moved.After(act.TurnBegan) {
			row.Detail = "in a new conversation; the earlier one is kept"
		}
	}
}

// statusOf puts an agent's state into the list's word.
var statusOf = map[agent.State]Status{
	agent.Unknown:     Unknown,
	agent.Waiting:     Waiting,
	agent.Failed:      Failed,
	agent.LoginNeeded: Failed,
	agent.Working:     Running,
	agent.Idle:        Idle,
	agent.Ended:       Unknown, // its program ended and the pane has not: tmux will say so
}

// paneDetail is what a live pane says about itself when its agent says nothing.
func paneDetail(s state.Slot, pane tmux.Pane) string {
	if s.Agent != shellAgent {
		return pane.Title
	}
	if pane.Command == "docker" || pane.Command == "podman" {
		return "" // the client of a guest's shell: what runs inside is not known here
	}
	return pane.Command
}

// ages remembers when each slot's status began. It is used by one goroutine.
type ages map[Ref]age

type age struct {
	status Status
	pane   string
	since  time.Time
}

func (a ages) begin(ref Ref, row Slot, act agent.Status, now time.Time) time.Time {
	if row.Status.Live() && !act.Since.IsZero() {
		return act.Since // the watcher has seen more than this list
	}
	old, known := a[ref]
	if known && old.status == row.Status && old.pane == row.Pane {
		return old.since
	}
	if !known && !row.Status.Live() {
		now = time.Time{} // the first look cannot tell for how long it has been so
	}
	a[ref] = age{status: row.Status, pane: row.Pane, since: now}
	return now
}

func (a ages) forget(keep map[Ref]bool) {
	for ref := range a {
		if !keep[ref] {
			delete(a, ref)
		}
	}
}
