package docker

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellmux/cell"
	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/engine"
)

// DefaultBase is the image that ours are built on: a small Debian with node.
const DefaultBase = "node:22-bookworm-slim"

//go:embed Dockerfile
var dockerfile string

// agentPackages are the npm packages of the agents that an image can hold, by
// the module that names them.
var agentPackages = map[string]string{
	"claude":   "@anthropic-ai/claude-code",
	"codex":    "@openai/codex",
	"gemini":   "@google/gemini-cli",
	"opencode": "opencode-ai",
}

// recipe is an image and how it comes into being.
type recipe struct {
	reference  string
	dockerfile string            // "" where it is pulled
	arguments  map[string]string // --build-arg
	context    string            // directory of the host; "" is none
	label      string            // stack tag of ours
}

// imageOf decides which image a cell has: the one that it names, that of an
// approved devcontainer.json, or one of ours.
func (d *Docker) imageOf(c engine.Cell) (recipe, error) {
	if strings.HasPrefix(c.Config.Cell.Image, "-") {
		return recipe{}, fmt.Errorf("[cell] image: %q is no name of an image", c.Config.Cell.Image)
	}
	if c.Config.Cell.Image != "" {
		return recipe{reference: c.Config.Cell.Image}, nil
	}
	if r, ok := d.devcontainer(c.ProjectDir); ok {
		return r, nil
	}
	return ours(c.Config.Cell, d.o.BaseImage)
}

// ours is the recipe of an image of cellmux's own.
func ours(s cfg.CellSection, base string) (recipe, error) {
	if base == "" {
		base = DefaultBase
	}
	var agents []string
	for _, module := range s.Modules {
		if p, ok := agentPackages[module]; ok {
			agents = append(agents, p)
		}
	}
	if len(agents) == 0 {
		agents = slices.Collect(maps.Values(agentPackages))
	}
	slices.Sort(agents)
	packages := slices.Compact(slices.Sorted(slices.Values(s.Packages)))
	for _, p := range packages {
		if !packageName.MatchString(p) {
			return recipe{}, fmt.Errorf("[cell] packages: %q is no name of a package", p)
		}
	}
	stack := s.Stack
	if stack == "" {
		stack = "base"
	}
	r := recipe{
		dockerfile: dockerfile,
		arguments:  map[string]string{"BASE": base, "AGENTS": strings.Join(agents, " "), "PACKAGES": strings.Join(packages, " ")},
		label:      cell.StackTag(stack, s.Modules),
	}
	r.reference = "cellmux/cell:" + tagText(r.label) + "-" + r.digest()
	return r, nil
}

var (
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.:-]*$`)
	notInTag    = regexp.MustCompile(`[^A-Za-z0-9_.-]`)
)

// tagText makes a tag of a stack tag: docker takes 128 characters of a small set.
func tagText(label string) string {
	label = strings.TrimLeft(notInTag.ReplaceAllString(label, "_"), ".-")
	return label[:min(len(label), 100)]
}

// digest names what a recipe is made of.
func (r recipe) digest() string {
	h := sha256.New()
	_, _ = io.WriteString(h, r.dockerfile)
	for _, name := range slices.Sorted(maps.Keys(r.arguments)) {
		_, _ = io.WriteString(h, "\x00"+name+"="+r.arguments[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

func (d *Docker) hasImage(ctx context.Context, reference string) (bool, error) {
	result, err := d.run(ctx, d.o.Deadline, "image", "inspect", "--format", "{{.Id}}", reference)
	err = d.judge("look for the image "+reference, result, err)
	if errors.Is(err, ErrNoImage) {
		return false, nil
	}
	return err == nil, err
}

// ensureImage builds or pulls a cell's image where it is missing.
func (d *Docker) ensureImage(ctx context.Context, c engine.Cell, progress func(engine.Progress)) error {
	r, err := d.imageOf(c)
	if err != nil {
		return err
	}
	if found, err := d.hasImage(ctx, r.reference); found || err != nil {
		return err
	}
	return d.make(ctx, r, progress)
}

// BuildImage builds or pulls the image of a cell, also when it is there already,
// and returns its reference. It blocks for minutes, reports each step, and ends
// with ctx.
func (d *Docker) BuildImage(ctx context.Context, c engine.Cell, progress func(engine.Progress)) (string, error) {
	if progress == nil {
		progress = func(engine.Progress) {}
	}
	if err := d.local(ctx); err != nil {
		return "", err
	}
	r, err := d.imageOf(c)
	if err != nil {
		return "", err
	}
	return r.reference, d.make(ctx, r, progress)
}

func (d *Docker) make(ctx context.Context, r recipe, progress func(engine.Progress)) error {
	if r.dockerfile == "" {
		return d.stream(ctx, "pull the image "+r.reference, "", progress, "pull", r.reference)
	}
	// The older builder leaves the container of a failed step behind otherwise.
	args := []string{"build", "--force-rm", "--tag", r.reference, "--label", labelOwner + "=" + d.owner, "--label", labelImage + "=" + r.label}
	for _, name := range slices.Sorted(maps.Keys(r.arguments)) {
		args = append(args, "--build-arg", name+"="+r.arguments[name])
	}
	args = append(args, d.o.BuildArgs...)
	if r.context == "" {
		return d.stream(ctx, "build the image "+r.reference, r.dockerfile, progress, append(args, "-")...)
	}
	return d.stream(ctx, "build the image "+r.reference, r.dockerfile, progress, append(args, "--file", "-", r.context)...)
}

// stream runs a call that takes long and talks meanwhile.
func (d *Docker) stream(ctx context.Context, doing, stdin string, progress func(engine.Progress), args ...string) error {
	progress(engine.Progress{Step: doing})
	p, err := d.o.Runner.Start(ctx, proc.Cmd{
		Argv: append([]string{d.program()}, args...), Dir: "/",
		// A builder that finds no terminal prints lines; this one says so besides.
		Env: append(d.clientEnv(), "BUILDKIT_PROGRESS=plain"),
	})
	if err != nil {
		return d.judge(doing, proc.Result{}, err)
	}
	go func() {
		_, _ = io.WriteString(p.Stdin(), stdin)
		_ = p.Stdin().Close()
	}()
	var last tail
	lines := bufio.NewReaderSize(p.Stdout(), 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			text := firstLine(string(line))
			last.add(text)
			if step, ok := buildStep(text); ok {
				progress(step)
			} else if text != "" {
				progress(engine.Progress{Step: text})
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	result, err := p.Wait()
	if err == nil && result.ExitCode != 0 {
		result.Stderr = []byte(last.why())
	}
	return d.judge(doing, result, err)
}

// tail keeps the last lines of talk, for the reason of a failure.
type tail struct{ lines []string }

func (t *tail) add(line string) {
	if line == "" {
		return
	}
	t.lines = append(t.lines, line)
	if len(t.lines) > 20 {
		t.lines = t.lines[1:]
	}
}

// why is the last line that names an error, else the last one.
func (t *tail) why() string {
	for _, line := range slices.Backward(t.lines) {
		lower := strings.ToLower(line)
		if strings.Contains(lower, "error") || strings.Contains(lower, "denied") || strings.Contains(lower, "failed") || strings.Contains(lower, "returned a non-zero code") {
			return line
		}
	}
	if len(t.lines) > 0 {
		return t.lines[len(t.lines)-1]
	}
	return ""
}

// Steps as the two builders print them: "Step 3/9 : RUN …", "#7 [3/6] RUN …".
var steps = regexp.MustCompile(`^(?:Step (\d+)/(\d+) : |#\d+ \[(?:[^\]]* )?(\d+)/(\d+)\] )(.*)`)

func buildStep(line string) (engine.Progress, bool) {
	m := steps.FindStringSubmatch(line)
	if m == nil {
		return engine.Progress{}, false
	}
	done, _ := strconv.ParseInt(m[1]+m[3], 10, 64)
	total, _ := strconv.ParseInt(m[2]+m[4], 10, 64)
	return engine.Progress{Step: m[5], Done: done, Total: total, Unit: "steps"}, true
}

// Images lists the images that cellmux has made, newest first.
func (d *Docker) Images(ctx context.Context) ([]engine.Image, error) {
	if err := d.local(ctx); err != nil {
		return nil, err
	}
	used, err := d.usedImages(ctx)
	if err != nil {
		return nil, err
	}
	result, err := d.run(ctx, d.o.Deadline, "image", "ls", "--no-trunc", "--filter", "label="+labelOwner+"="+d.owner,
		"--format", "{{.Repository}}:{{.Tag}}\t{{.ID}}\t{{.Size}}\t{{.CreatedAt}}")
	if err = d.judge("list the images", result, err); err != nil {
		return nil, err
	}
	var all []engine.Image
	for line := range strings.Lines(string(result.Stdout)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			return nil, fmt.Errorf("list the images: a row that cellmux cannot read: %q", line)
		}
		reference := strings.TrimPrefix(fields[0], "localhost/") // podman's, of what it has built
		i := engine.Image{Reference: reference, ID: fields[1], Size: fields[2], InUse: used[reference] || used[fields[1]]}
		i.Created, _ = time.Parse("2006-01-02 15:04:05 -0700 MST", fields[3])
		if rest, ok := strings.CutPrefix(i.Reference, "cellmux/cell:"); ok {
			i.Stack = rest[:max(0, strings.LastIndex(rest, "-"))]
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b engine.Image) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// usedImages are the references and IDs that containers were made from.
func (d *Docker) usedImages(ctx context.Context) (map[string]bool, error) {
	result, err := d.run(ctx, d.o.Deadline, "ps", "--all", "--no-trunc", "--filter", "label="+labelOwner+"="+d.owner, "--format", "{{.Image}}")
	if err = d.judge("list the containers", result, err); err != nil {
		return nil, err
	}
	used := make(map[string]bool)
	for line := range strings.Lines(string(result.Stdout)) {
		used[strings.TrimPrefix(strings.TrimSpace(line), "localhost/")] = true
	}
	return used, nil
}

// PruneImages removes the images that cellmux has made and no container needs,
// and returns what it removed.
func (d *Docker) PruneImages(ctx context.Context) ([]engine.Image, error) {
	all, err := d.Images(ctx)
	if err != nil {
		return nil, err
	}
	var removed []engine.Image
	for _, i := range all {
		if i.InUse {
			continue
		}
		name := i.Reference
		if strings.Contains(name, "<none>") {
			name = i.ID
		}
		if err := d.do(ctx, "remove the image "+name, "image", "rm", name); err != nil && !errors.Is(err, ErrNoImage) {
			return removed, err
		}
		removed = append(removed, i)
	}
	return removed, nil
}
