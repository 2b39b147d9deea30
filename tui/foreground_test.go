package tui

import (
	"io"
	"slices"
	"testing"
)

// recorder is a device and an attachment that write down what is done to them.
type recorder struct {
	noDevice
	done []string
}

func (r *recorder) note(what string) { r.done = append(r.done, what) }

func (r *recorder) Leave()  { r.note("leave") }
func (r *recorder) Enter()  { r.note("enter") }
func (r *recorder) Resume() { r.note("resume") }
func (r *recorder) Raw() func() {
	r.note("raw")
	return func() { r.note("as it was") }
}

func (r *recorder) Usual() func() {
	r.note("usual")
	return func() { r.note("typing") }
}

func (r *recorder) Run() error          { r.note("run"); return nil }
func (r *recorder) SetStdin(io.Reader)  {}
func (r *recorder) SetStdout(io.Writer) {}
func (r *recorder) SetStderr(io.Writer) {}

func TestAPaneGetsARawTerminalFromItsFirstKeyOnAndAnEditorItsUsualOne(t *testing.T) {
	for _, tt := range []struct {
		raw  bool
		want []string
	}{
		{true, []string{"leave", "raw", "run", "as it was", "leave", "enter", "resume"}},
		{false, []string{"leave", "usual", "run", "typing", "leave", "enter", "resume"}},
	} {
		r := &recorder{}
		if err := (&borrowed{r, r, tt.raw}).Run(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.done, tt.want) {
			t.Errorf("raw %v: %q, want %q", tt.raw, r.done, tt.want)
		}
	}
}
