package state

import (
	"errors"
	"slices"
	"sync"
	"testing"
)

func TestASlotFollowsItsAgentAndKeepsWhatItLeft(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	if _, err := db.CreateCell(ctx, Cell{Name: "api", ProjectDir: "/src/api", Workspace: "main", Engine: "host"}); err != nil {
		t.Fatal(err)
	}
	var slots []Slot
	for range 2 {
		s, err := db.CreateSlot(ctx, Slot{Cell: "api", Agent: "claude"})
		if err != nil {
			t.Fatal(err)
		}
		slots = append(slots, s)
	}
	first := slots[0].SessionID
	if err := db.MoveSession(ctx, "api", 0, first, "B"); err != nil {
		t.Fatal(err)
	}
	if err := db.MoveSession(ctx, "api", 0, first, "C"); !errors.Is(err, ErrMoved) {
		t.Errorf("a process that saw the old one: %v, want ErrMoved", err)
	}
	for _, taken := range []string{"B", slots[1].SessionID} {
		number, from := 1, slots[1].SessionID
		if taken == from {
			number, from = 0, "B"
		}
		if err := db.MoveSession(ctx, "api", number, from, taken); !errors.Is(err, ErrShared) {
			t.Errorf("slot %d to %s, where another slot is: %v, want ErrShared", number, taken, err)
		}
	}
	// Not even while that slot lies in the trash: it may come back.
	if err := db.DeleteSlot(ctx, "api", 1); err != nil {
		t.Fatal(err)
	}
	if err := db.MoveSession(ctx, "api", 0, "B", slots[1].SessionID); !errors.Is(err, ErrShared) {
		t.Errorf("to a slot's in the trash: %v, want ErrShared", err)
	}
	s, err := db.Slot(ctx, "api", 0)
	if err != nil || s.AgentSession != "B" || s.SessionID != first || s.Moved.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
	if err := db.MoveSession(ctx, "api", 0, "B", "C"); err != nil {
		t.Fatal(err)
	}
	left := func() (ids []string) {
		all, err := db.LeftSessions(ctx, "api", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			ids = append(ids, l.ID)
		}
		slices.Sort(ids)
		return ids
	}
	want := []string{first, "B"}
	slices.Sort(want)
	if got := left(); !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	// Back in an old one, which is then not one that was left.
	if err := db.MoveSession(ctx, "api", 0, "C", first); err != nil {
		t.Fatal(err)
	}
	if got := left(); !slices.Equal(got, []string{"B", "C"}) {
		t.Errorf("left %q, want B and C", got)
	}
}

func TestTwoSlotsThatMoveAtOnceNeverShareAConversation(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	if _, err := db.CreateCell(ctx, Cell{Name: "api", ProjectDir: "/src/api", Workspace: "main", Engine: "host"}); err != nil {
		t.Fatal(err)
	}
	var moving sync.WaitGroup
	outcomes := make([]error, 8)
	for i := range outcomes {
		s, err := db.CreateSlot(ctx, Slot{Cell: "api", Agent: "claude"})
		if err != nil {
			t.Fatal(err)
		}
		moving.Go(func() { outcomes[i] = db.MoveSession(ctx, "api", s.Number, s.SessionID, "ONE") })
	}
	moving.Wait()
	moved := 0
	for _, err := range outcomes {
		switch {
		case err == nil:
			moved++
		case !errors.Is(err, ErrShared):
			t.Error(err)
		}
	}
	if moved != 1 {
		t.Errorf("%d slots are in one conversation", moved)
	}
}

func TestNotesOfALaunchAreThereForEveryProcess(t *testing.T) {
	db, ctx := openTest(t), t.Context()
	if _, err := db.CreateCell(ctx, Cell{Name: "api", ProjectDir: "/src/api", Workspace: "main", Engine: "host"}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.CreateSlot(ctx, Slot{Cell: "api", Agent: "claude"}); err != nil {
		t.Fatal(err)
	}
	for _, notes := range [][]string{{"one \"quoted\"", "two\nlines"}, nil} {
		if err := db.SetNotes(ctx, "api", 0, notes); err != nil {
			t.Fatal(err)
		}
		if s, err := db.Slot(ctx, "api", 0); err != nil || !slices.Equal(s.Notes, notes) {
			t.Errorf("%q, %v, want %q", s.Notes, err, notes)
		}
	}
}
