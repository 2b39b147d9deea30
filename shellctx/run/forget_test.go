package run

import (
	"os"
	"testing"
)

// A forgotten log leaves neither rows nor outputs; other slots keep theirs.
func TestForgottenShellLogLeavesNothing(t *testing.T) {
	b := newSubject(t)
	of := func(slot int) Execution {
		h, err := b.Start(t.Context(), Request{Cell: b.cell, Slot: slot, Line: "seq 1 200000", Mode: Private})
		if err != nil {
			t.Fatal(err)
		}
		return b.wait(h)
	}
	gone, kept := of(0), of(1)
	for _, e := range []Execution{gone, kept} {
		if _, err := os.Stat(e.Spill); err != nil {
			t.Fatalf("the whole output is not on disk: %v", err)
		}
	}
	logged := func(slot int) int {
		log, err := b.Log(t.Context(), b.cell.Name, slot, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(log)
	}
	if err := b.Forget(t.Context(), b.cell.Name, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(gone.Spill); !os.IsNotExist(err) || logged(0) != 0 {
		t.Errorf("left: %v, %d rows", err, logged(0))
	}
	if _, err := os.Stat(kept.Spill); err != nil || logged(1) != 1 {
		t.Errorf("the other slot's: %v, %d rows", err, logged(1))
	}
	if err := b.Forget(t.Context(), b.cell.Name, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept.Spill); !os.IsNotExist(err) || logged(1) != 0 {
		t.Errorf("the cell's: left %v, %d rows", err, logged(1))
	}
}
