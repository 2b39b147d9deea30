package fleet

import (
	"fmt"
	"strconv"
	"strings"
)

// WholeCell is the Slot of a Ref that names a cell and none of its slots.
const WholeCell = -1

// String is the form of the command line: "api:0", or "api" for a whole cell.
func (r Ref) String() string {
	if r.Slot < 0 {
		return r.Cell
	}
	return r.Cell + ":" + strconv.Itoa(r.Slot)
}

// ParseRef reads "CELL:SLOT" or "CELL"; the latter gives Slot WholeCell.
func ParseRef(text string) (Ref, error) {
	name, number, found := strings.Cut(text, ":")
	if name == "" {
		return Ref{}, fmt.Errorf("%q names no cell: write CELL or CELL:SLOT, such as api:0", text)
	}
	if !found {
		return Ref{Cell: name, Slot: WholeCell}, nil
	}
	slot, err := strconv.Atoi(number)
	if err != nil || slot < 0 || strconv.Itoa(slot) != number {
		return Ref{}, fmt.Errorf("%q has no slot number after the colon: write CELL:SLOT, such as %s:0", text, name)
	}
	return Ref{Cell: name, Slot: slot}, nil
}

var statusWords = [...]string{
	Unknown: "unknown",
	Waiting: "waiting",
	Failed:  "failed",
	Running: "running",
	Idle:    "idle",
	Dead:    "dead",
	Stopped: "stopped",
}

// String is the word of the list, the filter (status:waiting) and the JSON.
func (s Status) String() string {
	if s < 0 || int(s) >= len(statusWords) {
		return "unknown"
	}
	return statusWords[s]
}

// MarshalText makes a status its word in JSON.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseStatus is the inverse of String.
func ParseStatus(word string) (Status, error) {
	for status, w := range statusWords {
		if w == word {
			return Status(status), nil
		}
	}
	return Unknown, fmt.Errorf("no status is called %q: use one of %s", word, strings.Join(statusWords[:], ", "))
}

// Live tells whether a program runs in the slot's pane, as far as is known.
func (s Status) Live() bool {
	switch s {
	case Waiting, Failed, Running, Idle:
		return true
	}
	return false
}
