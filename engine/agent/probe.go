package agent

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
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
}

// has says whether a flag may be passed. A binary that did not answer gets the
// flags of the verified version.
func (f features) has(flag string) bool { return !f.known || f.flags[flag] }

// assumed is the answer where a program is not asked, as inside a guest.
func assumed([]string) features { return features{} }

// prober asks each binary once for its flags. It is safe for concurrent use.
type prober struct {
	runner  proc.Runner
	environ []string

	mu    sync.Mutex
	asked map[binary]features
}

// binary is one program as it lies on the disk: an update is asked again.
type binary struct {
	path    string
	changed time.Time
	size    int64
}

func newProber(runner proc.Runner, environ []string) *prober {
	return &prober{runner: runner, environ: environ, asked: map[binary]features{}}
}

// probeTimeout bounds one --help; gemini takes 2 s on a slow machine.
const probeTimeout = 15 * time.Second

func (p *prober) probe(ctx context.Context, program string, flags []string) features {
	if p.runner == nil || len(flags) == 0 || !filepath.IsAbs(program) {
		return features{}
	}
	info, err := os.Stat(program)
	if err != nil {
		return features{}
	}
	key := binary{program, info.ModTime(), info.Size()}
	p.mu.Lock()
	defer p.mu.Unlock() // two plans of one binary need one answer
	if known, ok := p.asked[key]; ok {
		return known
	}
	result, err := p.runner.Run(ctx, proc.Cmd{
		Argv:    []string{program, "--help"},
		Dir:     string(filepath.Separator),
		Env:     p.environ,
		Timeout: probeTimeout,
	})
	if ctx.Err() != nil {
		return features{}
	}
	f := features{}
	text := string(result.Stdout) + "\n" + string(result.Stderr)
	if err == nil && result.ExitCode == 0 && strings.Contains(text, "--help") {
		f.known = true
		f.flags = map[string]bool{}
		for _, flag := range flags {
			f.flags[flag] = strings.Contains(text, flag)
		}
	}
	if f.known {
		f.version = p.version(ctx, program)
	}
	p.asked[key] = f
	return f
}

var versionNumber = regexp.MustCompile(`\d+\.\d+\.\d+\S*`)

// version is the first version number that a program prints of itself, "" when
// it prints none.
func (p *prober) version(ctx context.Context, program string) string {
	result, err := p.runner.Run(ctx, proc.Cmd{
		Argv:    []string{program, "--version"},
		Dir:     string(filepath.Separator),
		Env:     p.environ,
		Timeout: probeTimeout,
	})
	if err != nil || result.ExitCode != 0 {
		return ""
	}
	return versionNumber.FindString(string(result.Stdout))
}
