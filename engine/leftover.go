package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellmux/cell/proc"
)

// An agent may outlive its pane: it ignores the hang-up that the end of its
// terminal is, or is still saving its conversation when the slot is opened
// again. Two processes must not write one conversation, so what is left of a pane
// is ended before the slot is started anew, once it is proven to be that.

// PaneVariable is in the environment of an agent that runs in a pane, and of the
// terminal client of one in a guest. It says of which state directory, which slot
// and which process the pane is. A shell's pane has none: what its user leaves
// running there is his own.
const PaneVariable = "CELLMUX_PANE"

// StateName is the name for OpenerOptions.State of a state directory.
func StateName(dir string) string {
	digest := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(digest[:8])
}

// paneMark is the value of PaneVariable.
type paneMark struct {
	state string // of OpenerOptions
	cell  string
	slot  int
	pid   int // of the pane's program, which leads a session; the hand-off adds it
}

// String is the mark as the launch has it, without the process.
func (m paneMark) String() string {
	return m.state + "/" + m.cell + "/" + strconv.Itoa(m.slot)
}

// pair is the variable as the pane's own process completes it.
func (m paneMark) pair() string { return PaneVariable + "=" + m.String() }

// withProcess completes the variable in env by the process that is about to
// become the pane's program.
func withProcess(env []string, pid int) {
	for i, pair := range env {
		if strings.HasPrefix(pair, PaneVariable+"=") {
			env[i] = pair + "/" + strconv.Itoa(pid)
		}
	}
}

func parsePaneMark(value string) (m paneMark, ok bool) {
	words := strings.Split(value, "/")
	if len(words) != 4 {
		return m, false
	}
	slot, err := strconv.Atoi(words[2])
	pid, err2 := strconv.Atoi(words[3])
	return paneMark{words[0], words[1], slot, pid}, err == nil && err2 == nil && pid > 1
}

// PaneOrigin is where a process was started, as its environment tells.
type PaneOrigin struct {
	Server  string // tmux's TMUX: the socket, the server's PID and more, separated by commas
	Pane    string // tmux's TMUX_PANE, such as "%3"
	Started uint64 // its own proc.StartTime
}

// Leftover is what outlived a pane.
type Leftover struct {
	Cell    string
	Slot    int
	PID     int
	Program string // its name, as the system shortens it

	tree proc.Tree
}

func (l Leftover) String() string {
	return fmt.Sprintf("process %d (%s) of %s:%d", l.PID, l.Program, l.Cell, l.Slot)
}

const (
	// leftoverPatience is how long what outlived its pane may take to end by itself:
	// gemini saves for two and a half seconds after the end of its terminal.
	leftoverPatience = 3 * time.Second
	// leftoverGrace is between asking it to end and killing it.
	leftoverGrace = 2 * time.Second
)

// EndLeftovers ends the agents that outlived their panes, of all slots of this
// state directory, and returns those that did not end by themselves. Of each it is
// proven that it was started in a pane of this state directory, and that this pane
// is gone: an agent whose pane may live is left alone, and so is all that a shell's
// pane left. It blocks for as long as PanesGone does, and for at most seven seconds
// for each.
func (o *Opener) EndLeftovers(ctx context.Context) ([]Leftover, error) {
	return o.endLeftovers(ctx, func(paneMark) bool { return true }, nil)
}

// EndLeftover is EndLeftovers for one slot. progress is told when there is
// something to wait for; it may be nil.
func (o *Opener) EndLeftover(ctx context.Context, cell string, slot int, progress func(Progress)) ([]Leftover, error) {
	return o.endLeftovers(ctx, func(m paneMark) bool { return m.cell == cell && m.slot == slot }, progress)
}

func (o *Opener) endLeftovers(ctx context.Context, of func(paneMark) bool, progress func(Progress)) ([]Leftover, error) {
	if o.o.State == "" || o.o.PanesGone == nil {
		return nil, nil
	}
	left, err := o.leftovers(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("look for agents that outlived their panes: %w", err)
	}
	var ended []Leftover
	var failed []error
	for _, l := range left {
		if err := ctx.Err(); err != nil {
			return ended, errors.Join(append(failed, err)...)
		}
		if progress != nil {
			progress(Progress{Step: fmt.Sprintf("waiting for process %d (%s) to end, which outlived its pane", l.PID, l.Program)})
		}
		n, err := l.end(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("end %s, which outlived its pane: %w", l, err))
			continue
		}
		if n > 0 {
			ended = append(ended, l)
		}
	}
	return ended, errors.Join(failed...)
}

// end waits for a leftover's end, makes it end when that does not come, and says
// how many processes had to be made.
func (l Leftover) end(ctx context.Context) (int, error) {
	patience := time.NewTimer(leftoverPatience)
	defer patience.Stop()
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		members, err := proc.Members(l.tree)
		if err != nil || len(members) == 0 {
			return 0, err
		}
		select {
		case <-time.After(pause):
		case <-patience.C:
			return proc.EndTree(l.tree, leftoverGrace)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// leftovers are the processes in the sessions of panes that are gone. What went
// into a session of its own, and is no living agent's child, was started to stay.
func (o *Opener) leftovers(ctx context.Context, of func(paneMark) bool) ([]Leftover, error) {
	carriers, err := proc.Carriers(PaneVariable)
	if err != nil {
		return nil, err
	}
	sessions := map[paneMark][]proc.Carrier{}
	for _, c := range carriers {
		m, ok := parsePaneMark(c.Getenv(PaneVariable))
		if ok && m.state == o.o.State && of(m) && (c.PID == m.pid || c.Session == m.pid || c.Group == m.pid) {
			sessions[m] = append(sessions[m], c)
		}
	}
	var all []Leftover
	var origins []PaneOrigin
	for m, members := range sessions {
		slices.SortFunc(members, func(a, b proc.Carrier) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
		})
		oldest := members[0]
		l := Leftover{Cell: m.cell, Slot: m.slot, PID: oldest.PID, Program: oldest.Name}
		// Where the pane's own process has ended, a start time that it cannot have
		// had keeps a stranger with its number out.
		l.tree = proc.Tree{PID: m.pid, Start: oldest.Start}
		for _, c := range members {
			l.tree.Also = append(l.tree.Also, c.Member)
		}
		all = append(all, l)
		origins = append(origins, PaneOrigin{Server: oldest.Getenv("TMUX"), Pane: oldest.Getenv("TMUX_PANE"), Started: oldest.Start})
	}
	if len(all) == 0 {
		return nil, nil
	}
	// Asked after the processes were listed: a pane that was opened meanwhile is
	// in the answer, and a process of an earlier one has its pane there.
	var left []Leftover
	for i, gone := range o.o.PanesGone(ctx, origins) {
		if gone {
			left = append(left, all[i])
		}
	}
	slices.SortFunc(left, func(a, b Leftover) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.PID, b.PID))
	})
	return left, nil
}
