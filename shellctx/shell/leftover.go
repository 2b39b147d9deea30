package shell

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cellmux/cell/proc"
)

// Process is something that a command left running.
type Process struct {
	PID     int    // 0 for a background statement that runs in the interpreter
	Name    string // of its program, or the statement's source
	Started time.Time
}

// Leftover is what a command left running when it returned. It is safe for
// concurrent use.
type Leftover struct {
	x       *execution
	streams *streams
	done    chan struct{}
}

// List returns what still runs now; it reads the system's process table.
func (l *Leftover) List() []Process {
	select {
	case <-l.done:
		return nil
	default:
	}
	x := l.x
	var list []Process
	mine := make(map[int]bool) // programs that stand for their job
	x.mu.Lock()
	for _, j := range x.jobs {
		p := Process{Name: j.source, Started: j.started}
		if j.simple {
			p.PID = j.pid
		}
		list = append(list, p)
		for pid := range j.members {
			mine[pid] = true
		}
	}
	x.mu.Unlock()
	for _, m := range x.survivors() {
		if !mine[m.PID] {
			list = append(list, Process{PID: m.PID, Name: m.Name})
		}
	}
	slices.SortFunc(list, func(a, b Process) int {
		if a.PID != b.PID {
			return a.PID - b.PID
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

// Count is the number of processes and background statements that still run.
func (l *Leftover) Count() int { return len(l.List()) }

// Output is what it has printed since the command returned, the beginning and
// the end of it, raw.
func (l *Leftover) Output() string { return l.streams.late() }

// Done is closed once nothing runs any more.
func (l *Leftover) Done() <-chan struct{} { return l.done }

// End ends everything. It blocks for at most 2.5 seconds.
func (l *Leftover) End() {
	l.x.cancel()
	timer := time.NewTimer(abandonAfter)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	}
}

// String names what is left for a person: "1 background process still running".
func (l *Leftover) String() string { return LeftoverText(l.Count()) }

// LeftoverText is the sentence for n background processes; "" for none.
func LeftoverText(n int) string {
	switch {
	case n <= 0:
		return ""
	case n == 1:
		return "1 background process still running"
	}
	return fmt.Sprintf("%d background processes still running", n)
}

// watch waits until nothing runs any more, or the context has ended it all, and
// lets go of the streams.
func (l *Leftover) watch() {
	defer func() {
		l.x.release()
		l.streams.close()
		close(l.done)
	}()
	pause := 50 * time.Millisecond
	for {
		l.x.mu.Lock()
		busy, changed := len(l.x.jobs)+len(l.x.leaders) > 0, l.x.changed
		l.x.mu.Unlock()
		if !busy && len(l.x.survivors()) == 0 {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
			pause = min(2*pause, 2*time.Second)
		case <-l.x.ended:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// leftover looks for what the command left running; nil is nothing.
func (x *execution) leftover() *Leftover {
	if x.ctx.Err() != nil {
		return nil // ended, or being ended
	}
	x.mu.Lock()
	busy := len(x.jobs)+len(x.leaders) > 0
	x.mu.Unlock()
	if !busy && len(x.survivors()) == 0 {
		return nil
	}
	l := &Leftover{x: x, streams: x.streams, done: make(chan struct{})}
	go l.watch()
	return l
}

// release stops watching the context. Nothing runs any more.
func (x *execution) release() {
	if x.stop() {
		x.cancel()
	}
	close(x.released)
}

// survivors lists the living processes of the execution that are not in the
// interpreter's own hands.
func (x *execution) survivors() []proc.Member {
	x.mu.Lock()
	sessions := slices.Clone(x.sessions)
	leaders := len(x.leaders)
	x.mu.Unlock()
	if len(sessions) == 0 {
		return nil
	}
	found := make(map[int]proc.Member)
	if leaders > 0 || forkedSince(sessions) {
		for _, m := range marked(x.marker, sessions[0]) {
			found[m.PID] = m
		}
	}
	for _, pid := range sessions {
		if !groupLives(pid) {
			continue
		}
		members, err := proc.Members(proc.Tree{PID: pid})
		if err != nil {
			continue
		}
		for _, m := range members {
			found[m.PID] = m
		}
	}
	list := make([]proc.Member, 0, len(found))
	for _, m := range found {
		list = append(list, m)
	}
	return list
}
