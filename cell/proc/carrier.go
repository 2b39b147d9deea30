package proc

import (
	"fmt"
	"os"
	"strings"
)

// Carrier is a living process that has a certain variable in the environment
// with which it was started.
type Carrier struct {
	Member
	Group, Session int // as the system numbers them; 0 where it has none

	environ [][]byte
}

// Getenv returns a variable of the environment with which the process was
// started, "" where it is not set.
func (c Carrier) Getenv(name string) string {
	for _, pair := range c.environ {
		if value, ok := strings.CutPrefix(string(pair), name+"="); ok {
			return value
		}
	}
	return ""
}

// Carriers lists the processes that have a variable of this name, but for the
// caller. Those of other users are left out where their environment cannot be
// read, and all are where the system tells no environments.
func Carriers(name string) ([]Carrier, error) {
	table, err := processes()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []Carrier
	for _, e := range table {
		if e.zombie || e.PID == os.Getpid() {
			continue
		}
		c := Carrier{Member: e.Member, Group: e.group, Session: e.session, environ: environ(e.PID)}
		if c.Getenv(name) == "" {
			continue
		}
		// The environment may be that of a later process with the same number.
		if start, err := StartTime(e.PID); err == nil && start == e.Start {
			found = append(found, c)
		}
	}
	return found, nil
}

// hasMarker says whether a process carries the marker of an execution.
func hasMarker(pid int, marker string) bool {
	want := MarkerVariable + "=" + marker
	for _, pair := range environ(pid) {
		if string(pair) == want {
			return true
		}
	}
	return false
}
