package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cellmux/cell/proc"
)

// features are what one binary can do.
type features struct {
	known   bool // false: it was not asked, or did not answer
	flags   map[string]bool
	version string
	fault   string // why it did not answer, a sentence; "" where it was not asked
}

// has says whether a flag may be passed. A binary that did not answer gets the
// flags of the verified version.
func (f features) has(flag string) bool { return !f.known || f.flags[flag] }

// assumed is the answer where a program is not asked, as inside a guest.
func assumed([]string) features { return features{} }

// prober asks each binary once for its flags. It is safe for concurrent use:
// different binaries are asked at the same time.
type prober struct {
	runner  proc.Runner
	environ []string

	mu    sync.Mutex
	asked map[binary]*probing
}

// binary is one program as it lies on the disk: an update is asked again.
type binary struct {
	path    string
	changed time.Time
	size    int64
}

// probing is one binary's answer, or the wait for it.
type probing struct {
	mu       sync.Mutex
	answered bool
	features features
}

func newProber(runner proc.Runner, environ []string) *prober {
	return &prober{runner: runner, environ: environ, asked: map[binary]*probing{}}
}

// probeTimeout bounds one --help or --version; gemini takes 2 s on a slow
// machine.
const probeTimeout = 15 * time.Second

func (p *prober) probe(ctx context.Context, program string, flags []string) features {
	if p.runner == nil || !filepath.IsAbs(program) {
		return features{}
	}
	info, err := os.Stat(program)
	if err != nil {
		return features{fault: err.Error()}
	}
	key := binary{program, info.ModTime(), info.Size()}
	p.mu.Lock()
	one, ok := p.asked[key]
	if !ok {
		one = &probing{}
		p.asked[key] = one
	}
	p.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock() // two plans of one binary need one answer
	if one.answered {
		return one.features
	}
	f := p.ask(ctx, program, flags)
	if ctx.Err() != nil {
		return f // the caller gave up: the next one asks again
	}
	one.answered, one.features = true, f
	return f
}

// ask runs --help, and --version where it answered.
func (p *prober) ask(ctx context.Context, program string, flags []string) features {
	text, err := p.run(ctx, program, "--help")
	switch {
	case err != nil:
		return features{fault: err.Error()}
	case !strings.Contains(text, "--help"):
		return features{fault: "--help printed no flags"}
	}
	f := features{known: true, flags: map[string]bool{}}
	for _, flag := range flags {
		f.flags[flag] = strings.Contains(text, flag)
	}
	if text, err = p.run(ctx, program, "--version"); err == nil {
		f.version = versionNumber.FindString(text)
	}
	return f
}

func (p *prober) run(ctx context.Context, program, flag string) (string, error) {
	result, err := p.runner.Run(ctx, proc.Cmd{
		Argv:    []string{program, flag},
		Dir:     string(filepath.Separator),
		Env:     p.environ,
		Timeout: probeTimeout,
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", flag, err)
	case result.ExitCode != 0:
		return "", fmt.Errorf("%s ended with exit code %d", flag, result.ExitCode)
	}
	return string(result.Stdout) + "\n" + string(result.Stderr), nil
}

// versionNumber is the first version that a program prints of itself.
var versionNumber = regexp.MustCompile(`\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?`)

// Standing is how a binary's version relates to the one that was checked.
type Standing int

// The standings.
const (
	Unasked   Standing = iota // it was not asked, or told no version
	Checked                   // the version that the declaration was checked with
	Newer                     // later than that
	Older                     // earlier than that
	Unchecked                 // no version of this agent was checked
)

// standing compares two versions by their three numbers.
func standing(version, verified string) Standing {
	numbers := func(s string) (n [3]int, ok bool) {
		_, err := fmt.Sscanf(versionNumber.FindString(s), "%d.%d.%d", &n[0], &n[1], &n[2])
		return n, err == nil
	}
	is, ok := numbers(version)
	if !ok {
		return Unasked
	}
	was, ok := numbers(verified)
	if !ok {
		return Unchecked
	}
	switch slices.Compare(is[:], was[:]) {
	case 0:
		return Checked
	case 1:
		return Newer
	}
	return Older
}
