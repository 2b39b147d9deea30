package fleet

import (
	"context"
	"strings"
	"testing"

	"cellmux/cell/git"
	"cellmux/shellctx"
	"cellmux/shellctx/convo"
)

// repository answers with what the test says.
type repository struct {
	diff string
	err  error
}

func (r *repository) State(context.Context, string) (git.State, error) { return git.State{}, r.err }
func (r *repository) Diff(context.Context, string) (string, error)     { return r.diff, r.err }

// conversations are those of a world's slots, which deliver nothing.
func conversations(t *testing.T, w *world) *Conversation {
	t.Helper()
	if err := w.db.Migrate(t.Context(), "convo", convo.Migrations()); err != nil {
		t.Fatal(err)
	}
	return NewConversation(w.Fleet, convo.New(convo.Options{DB: w.db.SQL(), LockDir: t.TempDir()}))
}

func TestReviewIsAReadOnlySlotOfItsOwnForEver(t *testing.T) {
	files := &repository{diff: "+see @README.md\n" + strings.Repeat("+long\n", maxReviewed/6)}
	w := newWorld(t, func(o *Options) { o.Git = files })
	c := conversations(t, w)
	name := w.cellWith(t, "claude", "shell")

	ref, entry, err := c.Review(t.Context(), Ref{name, 0})
	if err != nil {
		t.Fatal(err)
	}
	if ref.Slot != 2 || entry.Message.Text() != reviewRequest {
		t.Errorf("%v with %q", ref, entry.Message.Text())
	}
	page, err := c.Page(t.Context(), ref, 0, 10)
	if err != nil || len(page) != 2 {
		t.Fatalf("%v, %v", page, err)
	}
	record, ok := shellctx.FromMessage(page[0].Message)
	if !ok || !record.OutputTruncated || len(record.Output) > maxReviewed || !strings.HasSuffix(record.Output, "\n") || record.OutputBytes != len(files.diff) {
		t.Errorf("the diff is kept as %.80q, cut %v, of %d bytes", record.Output, record.OutputTruncated, record.OutputBytes)
	}
	if page[0].Delivery != convo.Saved || page[1].Delivery != convo.Queued {
		t.Errorf("states %s, %s", page[0].Delivery, page[1].Delivery)
	}
	if err := w.Stop(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if err := w.Restart(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if n := len(w.opener.requests); n != 2 || !w.opener.requests[0].Review || !w.opener.requests[1].Review {
		t.Errorf("%d starts: %+v", n, w.opener.requests)
	}
	if err := w.Restart(t.Context(), Ref{name, 0}); err != nil {
		t.Fatal(err)
	}
	if w.opener.requests[2].Review {
		t.Error("the slot that was reviewed is read-only too")
	}
}

func TestReviewThatCannotBeLeavesNothingBehind(t *testing.T) {
	for _, c := range []struct {
		name string
		slot int
		git  repository
		open error
		want string
	}{
		{"nothing changed", 0, repository{diff: " \n"}, nil, "no uncommitted changes"},
		{"no repository", 0, repository{err: git.ErrNoRepository}, nil, "no git repository"},
		{"a shell", 1, repository{diff: "+x\n"}, nil, "no read-only mode of shell"},
		{"it does not start", 0, repository{diff: "+x\n"}, errNoProof, errNoProof.Error()},
	} {
		w := newWorld(t, func(o *Options) { o.Git = &c.git })
		name := w.cellWith(t, "claude", "shell")
		w.opener.err = c.open
		_, _, err := conversations(t, w).Review(t.Context(), Ref{name, c.slot})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if slots, err := w.db.Slots(t.Context()); err != nil || len(slots) != 2 {
			t.Errorf("%s: %d slots are left, %v", c.name, len(slots), err)
		}
	}
}
