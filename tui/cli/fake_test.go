package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"cellmux/cell"
	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/run"
)

// world stands in for the application: a list in memory, and what was asked.
type world struct {
	Fleet // methods that a test does not expect panic
	Panes

	snap    fleet.Snapshot
	watched chan fleet.Snapshot
	asked   []string
	err     error            // of the next change
	prompts cell.ResolveOpts // that the application was opened with

	approval fleet.Approval
	contact  fleet.FirstContact
	proposal fleet.Proposal
	ended    run.Execution
	chunks   []run.Chunk
	entry    convo.Entry
	entries  []convo.Entry
	trash    []fleet.Trashed
	query    convo.Query
	hits     []convo.Hit
	images   *images
}

func (w *world) note(format string, args ...any) error {
	w.asked = append(w.asked, fmt.Sprintf(format, args...))
	return w.err
}

func (w *world) Refresh(context.Context) (fleet.Snapshot, error) { return w.snap, nil }
func (w *world) Watch(context.Context) <-chan fleet.Snapshot     { return w.watched }
func (w *world) NewCell(_ context.Context, n fleet.NewCell) (string, error) {
	return "made", w.note("new %s name=%s engine=%s", n.ProjectDir, n.Name, n.Engine)
}
func (w *world) Open(_ context.Context, cell, agent string) (fleet.Ref, error) {
	return fleet.Ref{Cell: cell, Slot: 7}, w.note("open %s agent=%s", cell, agent)
}
func (w *world) FirstContact(context.Context, string, string) (fleet.FirstContact, error) {
	return w.contact, nil
}
func (w *world) AnswerFirstContact(_ context.Context, directory string, trusted bool) error {
	return w.note("trusted %s %v", directory, trusted)
}
func (w *world) Resume(_ context.Context, r fleet.Ref) (bool, error) {
	return true, w.note("resume %s", r)
}
func (w *world) Stop(_ context.Context, r fleet.Ref) error   { return w.note("stop %s", r) }
func (w *world) Delete(_ context.Context, r fleet.Ref) error { return w.note("delete %s", r) }
func (w *world) Trust(_ context.Context, cell, hash string) error {
	return w.note("trust %s %s", cell, hash)
}
func (w *world) Approval(context.Context, string) (fleet.Approval, error) { return w.approval, nil }

func (w *world) Proposal(context.Context, string) (fleet.Proposal, error) { return w.proposal, nil }
func (w *world) Commit(_ context.Context, cell string, shown fleet.Proposal, message string) (string, error) {
	return "c0ffee", w.note("commit %s %s %q", cell, shown.Tree, message)
}

func (w *world) Start(_ context.Context, r fleet.Ref, line string, mode run.Mode, onHost bool) (run.Handle, error) {
	if err := w.note("run %s %q %s host=%v", r, line, mode, onHost); err != nil {
		return nil, err
	}
	return &handle{world: w}, nil
}
func (w *world) Where(context.Context, fleet.Ref, bool) (string, error) { return "host ~", nil }
func (w *world) Log(context.Context, fleet.Ref, int) ([]run.Execution, error) {
	return []run.Execution{w.ended}, nil
}
func (w *world) Complete(context.Context, fleet.Ref, string, int) ([]string, error) { return nil, nil }

func (w *world) Send(_ context.Context, r fleet.Ref, text string) (convo.Entry, error) {
	return w.entry, w.note("send %s %q", r, text)
}
func (w *world) Page(context.Context, fleet.Ref, int64, int) ([]convo.Entry, error) {
	return w.entries, nil
}
func (w *world) Search(_ context.Context, q convo.Query) ([]convo.Hit, error) {
	w.query = q
	return w.hits, nil
}
func (w *world) Changed(context.Context) <-chan string { return nil }

func (w *world) Jobs(context.Context) ([]fleet.Job, error)      { return nil, nil }
func (w *world) KillJob(_ context.Context, id string) error     { return w.note("kill %s", id) }
func (w *world) Trash(context.Context) ([]fleet.Trashed, error) { return w.trash, nil }
func (w *world) EmptyTrash(_ context.Context, before time.Time) (int, error) {
	return 3, w.note("empty the trash of %s", time.Since(before).Round(time.Hour))
}
func (w *world) Restore(_ context.Context, r fleet.Ref) error { return w.note("restore %s", r) }
func (w *world) Environment(context.Context, fleet.Ref) ([]string, error) {
	return []string{"CELL_NAME=api-0", "TOKEN=…"}, nil
}
func (w *world) Variables(context.Context, fleet.Ref) ([]fleet.Variable, error) {
	return []fleet.Variable{
		{Name: "AWS_SECRET_ACCESS_KEY", Why: "claude does not need it"},
		{Name: "CELL_NAME", Value: "api-0", Kept: true, Why: "every cell gets it"},
		{Name: "PATH", Value: "/bin", Kept: true, Why: "base: every agent gets it"},
	}, nil
}
func (w *world) Prompts(context.Context, fleet.Ref) (fleet.Prompts, error) {
	return fleet.Prompts{Base: "base\n", Overlay: "overlay\n"}, nil
}
func (w *world) Probe(context.Context) []fleet.Engine {
	return []fleet.Engine{{Kind: "host", Usable: true, Probed: true}}
}
func (w *world) Review(_ context.Context, r fleet.Ref) (fleet.Ref, convo.Entry, error) {
	return fleet.Ref{Cell: r.Cell, Slot: 9}, w.entry, w.note("review %s", r)
}
func (w *world) Decide(_ context.Context, seq int64, word fleet.Word) (convo.Entry, error) {
	return w.entry, w.note("say %s %d", word, seq)
}
func (w *world) Export(_ context.Context, out io.Writer, refs ...fleet.Ref) error {
	if _, err := io.WriteString(out, "exported\n"); err != nil {
		return err
	}
	return w.note("export %v", refs)
}
func (w *world) Import(_ context.Context, in io.Reader) (convo.Imported, error) {
	content, err := io.ReadAll(in)
	if err != nil {
		return convo.Imported{}, err
	}
	return convo.Imported{Messages: 3, Known: 2}, w.note("import %q", content)
}
func (w *world) Deliver(_ context.Context, r fleet.Ref) error { return w.note("deliver %s", r) }
func (w *world) Revoke(_ context.Context, cell string) error  { return w.note("revoke %s", cell) }

type handle struct{ world *world }

func (h *handle) Execution() run.Execution { return h.world.ended }
func (h *handle) Cancel()                  { _ = h.world.note("cancel") }
func (h *handle) Chunks() <-chan run.Chunk {
	c := make(chan run.Chunk, len(h.world.chunks))
	for _, chunk := range h.world.chunks {
		c <- chunk
	}
	close(c)
	return c
}
func (h *handle) Wait(context.Context) (run.Execution, error) { return h.world.ended, nil }

// apiCell is a list of one cell with the given slots.
func apiCell(dir string, slots ...fleet.Slot) fleet.Snapshot {
	for i := range slots {
		slots[i].Ref = fleet.Ref{Cell: "api", Slot: i}
		slots[i].SessionID = cell.SessionID(fmt.Sprintf("api-%d", i))
	}
	return fleet.Snapshot{
		Taken: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		Cells: []fleet.Cell{{Name: "api", Title: "api", ProjectDir: dir, Engine: "host", Slots: slots}},
	}
}

// result is what a command left behind.
type result struct {
	code           int
	stdout, stderr string
}

// call runs one command line. It fails the test when the application was opened
// although it must not be (w nil).
func call(t *testing.T, w *world, change func(*Options), args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o := Options{
		Args: args, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Dir: "/src/api",
		Getenv: func(string) string { return "" }, Version: "1.2.3", Checks: func() []Check { return nil },
		Open: func(_ context.Context, prompts cell.ResolveOpts) (*App, error) {
			if w == nil {
				t.Error("the application was opened")
				return nil, fleet.ErrUnavailable
			}
			w.prompts = prompts
			return &App{Fleet: w, Panes: w, Shell: w, Conversation: w, Jobs: w, Images: w.images}, nil
		},
	}
	if change != nil {
		change(&o)
	}
	code := Main(t.Context(), o)
	return result{code, stdout.String(), stderr.String()}
}
