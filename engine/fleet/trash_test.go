package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cellmux/engine/docker"
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

// A cell in the trash keeps its container, so that it can be restored with all
// that is in it; with the trash the container goes.
func TestEmptyingTheTrashRemovesTheGuest(t *testing.T) {
	w, g, cell := guestWorld(t)
	if _, err := w.Open(t.Context(), cell, "shell"); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), Ref{cell, WholeCell}); err != nil {
		t.Fatal(err)
	}
	if g.removed != nil {
		t.Fatalf("%q went with the move to the trash", g.removed)
	}
	if n, err := w.EmptyTrash(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil || g.removed != nil {
		t.Fatalf("%d, %v, removed %q", n, err, g.removed)
	}
	// Nothing is forgotten of a cell whose guest could not be removed.
	g.removeErr = fmt.Errorf("remove the container: %w: start it", docker.ErrNoDaemon)
	if _, err := w.EmptyTrash(t.Context(), time.Now().Add(time.Hour)); !errors.Is(err, docker.ErrNoDaemon) || !strings.Contains(err.Error(), cell) {
		t.Fatalf("EmptyTrash = %v", err)
	}
	if trash, err := w.Trash(t.Context()); err != nil || len(trash) != 1 {
		t.Fatalf("%v, %v", trash, err)
	}
	g.removeErr = nil
	if n, err := w.EmptyTrash(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil || !slices.Equal(g.removed, []string{cell}) {
		t.Fatalf("%d, %v, removed %q", n, err, g.removed)
	}
}

func TestTrashIsEmptiedOnceDockerIsNoLongerInstalled(t *testing.T) {
	w, g, cell := guestWorld(t)
	g.removeErr = fmt.Errorf("%w: install it", docker.ErrNotInstalled)
	if err := w.Delete(t.Context(), Ref{cell, WholeCell}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.EmptyTrash(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if trash, err := w.Trash(t.Context()); err != nil || len(trash) != 0 {
		t.Fatalf("%v, %v", trash, err)
	}
}
