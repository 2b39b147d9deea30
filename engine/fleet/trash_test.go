package fleet

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// What is emptied takes its conversation and its shell log along; what is used,
// or was deleted later, keeps both.
func TestEmptyingTheTrashForgetsWhatWasSaidThere(t *testing.T) {
	out := &outbox{told: make(chan string, 20)}
	var forgotten []string
	w := newWorld(t, func(o *Options) {
		o.Conversations = out
		o.ForgetShell = func(_ context.Context, cell string, slot int) error {
			forgotten = append(forgotten, fmt.Sprint(cell, ":", slot))
			return nil
		}
	})
	cell := w.cellWith(t)
	var sessions []string
	for range 3 {
		ref, err := w.Open(t.Context(), cell, "claude")
		if err != nil {
			t.Fatal(err)
		}
		slot, err := w.db.Slot(t.Context(), ref.Cell, ref.Slot)
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, slot.SessionID)
	}
	if err := w.Delete(t.Context(), Ref{cell, 1}); err != nil {
		t.Fatal(err)
	}
	if n, err := w.EmptyTrash(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := w.EmptyTrash(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if got := <-out.told; got != "forget "+sessions[1] || len(out.told) != 0 || !slices.Equal(forgotten, []string{cell + ":1"}) {
		t.Fatalf("told %q, forgotten %q", got, forgotten)
	}
	if err := w.Delete(t.Context(), Ref{cell, WholeCell}); err != nil {
		t.Fatal(err)
	}
	if n, err := w.EmptyTrash(t.Context(), time.Now().Add(time.Hour)); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if got := []string{<-out.told, <-out.told}; !slices.Equal(got, []string{"forget " + sessions[0], "forget " + sessions[2]}) {
		t.Errorf("told %q", got)
	}
	if want := []string{cell + ":1", cell + ":0", cell + ":2", cell + ":-1"}; !slices.Equal(forgotten, want) {
		t.Errorf("forgotten %q", forgotten)
	}
	if trash, err := w.Trash(t.Context()); err != nil || len(trash) != 0 {
		t.Errorf("%v, %v", trash, err)
	}
}
