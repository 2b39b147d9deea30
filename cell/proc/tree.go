package proc

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// Tree names a tree of processes. At least one field is set.
type Tree struct {
	PID    int    // leader of a session or process group; 0 none
	Start  uint64 // StartTime of PID; 0 takes PID as it is now, which only its parent can know
	Marker string // value of MarkerVariable that the tree carries; "" none
	// Also are processes seen in the tree earlier: once their parent has ended,
	// nothing else may tell that they belong.
	Also []Member
}

// Member is one living process of a Tree. A PID is given out again, a PID
// together with its start time is not.
type Member struct {
	PID   int
	Start uint64
	Name  string // of its program, as the system shortens it
}

// entry is one row of the system's process table.
type entry struct {
	Member
	parent, group, session int
	zombie                 bool
}

// killWait bounds the time in which killed processes have to vanish; one that
// sleeps uninterruptibly may take longer.
const killWait = 2 * time.Second

// Members lists the living processes of a tree: its leader, the leader's group
// and session, whatever carries the marker, and their descendants. Where the
// system has no such table it lists less, never somebody else's processes.
func Members(t Tree) ([]Member, error) {
	table, err := processes()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	in := make(map[int]bool)
	leads := false
	for _, e := range table {
		if t.PID > 0 && e.PID == t.PID {
			leads = t.Start == 0 || t.Start == e.Start
		}
	}
	// With the leader gone and reaped, members of its group still keep the
	// number from being given out; but once the group is empty the number may
	// name a stranger's. A leader with another start time proves a stranger.
	stranger := !leads && slices.ContainsFunc(table, func(e entry) bool { return e.PID == t.PID })
	for _, e := range table {
		switch {
		case t.PID > 0 && !stranger && (e.PID == t.PID || e.group == t.PID || e.session == t.PID),
			slices.ContainsFunc(t.Also, func(m Member) bool { return m.PID == e.PID && m.Start == e.Start }),
			t.Marker != "" && e.Start >= t.Start && hasMarker(e.PID, t.Marker):
			in[e.PID] = true
		}
	}
	delete(in, 1)
	delete(in, os.Getpid())
	// Parents do not always come before their children in the table.
	for grown := true; grown; {
		grown = false
		for _, e := range table {
			if !in[e.PID] && in[e.parent] && e.PID != os.Getpid() {
				in[e.PID], grown = true, true
			}
		}
	}
	var members []Member
	for _, e := range table {
		if in[e.PID] && !e.zombie {
			members = append(members, e.Member)
		}
	}
	return members, nil
}

// EndTree asks every process of a tree to terminate, gives it grace to do so,
// and kills what is left; it returns how many there were. Processes that are
// started meanwhile are found too. Each is signalled by PID and start time, so
// that no stranger is hit. It blocks for at most grace and two seconds more; an
// error names what still runs then.
func EndTree(t Tree, grace time.Duration) (int, error) {
	seen := make(map[Member]bool)
	pause := time.Millisecond
	begin := time.Now()
	for {
		members, err := Members(t)
		if err != nil {
			return len(seen), err
		}
		if len(members) == 0 {
			return len(seen), nil
		}
		elapsed := time.Since(begin)
		if elapsed > grace+killWait {
			return len(seen), fmt.Errorf("processes that do not end when killed: %v", members)
		}
		for _, m := range members {
			known := seen[m]
			seen[m] = true
			switch {
			case elapsed >= grace:
				signal(m, kill)
			case !known:
				signal(m, terminate)
			}
		}
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
}
