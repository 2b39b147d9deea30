package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"cellmux/engine"
	"cellmux/engine/fleet"
)

// images stands in for the engine that makes them.
type images struct {
	made     []engine.Image
	files    map[string]string
	approved map[string]string
	built    []string
}

func (i *images) BuildImage(_ context.Context, cell string, progress func(engine.Progress)) (string, error) {
	i.built = append(i.built, cell)
	progress(engine.Progress{Step: "RUN make", Done: 2, Total: 5, Unit: "steps"})
	progress(engine.Progress{Step: "hostile \x1b]0;title\x07 text"})
	return "cellmux/cell:base-123", nil
}
func (i *images) Images(context.Context) ([]engine.Image, error)      { return i.made, nil }
func (i *images) PruneImages(context.Context) ([]engine.Image, error) { return i.made[:1], nil }
func (i *images) ImageFiles(context.Context, string) (map[string]string, error) {
	return i.files, nil
}
func (i *images) ApproveImageFiles(_ context.Context, files map[string]string) error {
	i.approved = files
	return nil
}

func TestImageBuildPrintsItsNameAndTalksOnStandardError(t *testing.T) {
	made := &images{}
	w := &world{snap: apiCell("/src/api", fleet.Slot{}), images: made}
	got := call(t, w, nil, "image", "build", "api")
	if got.code != 0 || got.stdout != "cellmux/cell:base-123\n" || strings.Join(made.built, " ") != "api" {
		t.Errorf("%+v, built %q", got, made.built)
	}
	if !strings.Contains(got.stderr, "[2/5] RUN make\n") || strings.Contains(got.stderr, "\x1b") {
		t.Errorf("standard error: %q", got.stderr)
	}
	if made.approved != nil {
		t.Errorf("it approved %v unasked", made.approved)
	}
	if got := call(t, w, nil, "image", "build", "api", "--quiet"); got.stderr != "" {
		t.Errorf("quiet: %q", got.stderr)
	}
}

func TestImageBuildApprovesADevcontainerWhenItIsAskedTo(t *testing.T) {
	made := &images{files: map[string]string{"/src/api/.devcontainer.json": "hash"}}
	w := &world{snap: apiCell("/src/api", fleet.Slot{}), images: made}
	got := call(t, w, nil, "image", "build", "api", "--devcontainer")
	if got.code != 0 || made.approved["/src/api/.devcontainer.json"] != "hash" || !strings.Contains(got.stderr, "Approved /src/api/.devcontainer.json.") {
		t.Errorf("%+v, approved %v", got, made.approved)
	}
	made.files, made.built = nil, nil
	if got := call(t, w, nil, "image", "build", "api", "--devcontainer"); got.code != ExitFailed || len(made.built) != 0 {
		t.Errorf("without one: %+v, built %q", got, made.built)
	}
}

func TestImagesAreListedAndPruned(t *testing.T) {
	made := &images{made: []engine.Image{
		{Reference: "cellmux/cell:dev-1", Size: "200MB", Created: time.Now().Add(-3 * time.Hour), Stack: "dev"},
		{Reference: "cellmux/cell:base-2", Size: "100MB", InUse: true},
	}}
	w := &world{images: made}
	got := call(t, w, nil, "image", "ls")
	for _, want := range []string{"IMAGE", "cellmux/cell:dev-1   200MB  3h   no", "cellmux/cell:base-2  100MB       yes"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is missing in\n%s", want, got.stdout)
		}
	}
	if got := call(t, w, nil, "image", "ls", "--json"); !strings.Contains(got.stdout, `"stack": "dev"`) || !strings.Contains(got.stdout, `"in_use": true`) {
		t.Errorf("as JSON: %s", got.stdout)
	}
	if got := call(t, w, nil, "image", "prune"); !strings.Contains(got.stdout, "dev-1") || strings.Contains(got.stdout, "base-2") {
		t.Errorf("pruned: %s", got.stdout)
	}
	made.made = nil
	if got := call(t, w, nil, "image", "ls", "--json"); got.stdout != "[]\n" {
		t.Errorf("none as JSON: %q", got.stdout)
	}
	if got := call(t, w, nil, "image", "ls"); got.stdout != "" || got.stderr == "" {
		t.Errorf("none: %+v", got)
	}
	if got := call(t, w, nil, "image", "lss"); got.code != ExitUsage {
		t.Errorf("a mistyped command: %+v", got)
	}
}
