//go:build linux

// Command bench measures the built cellmux against a floor, a minimal Bubble Tea
// program over the same tmux server, and prints the ratios that issue B bounds.
// docs/performance.md explains each figure.
//
//	go run ./tui/bench -cellmux bin/cellmux -json bench.json
//
// Each figure is taken in turns, a round of the one and a round of the other,
// so that other load on the machine meets both. It starts its own tmux servers
// in directories of its own, and ends what it started.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	binary := flag.String("cellmux", "bin/cellmux", "the cellmux to measure")
	floor := flag.String("floor", "", "the built floor; built when empty")
	sizes := flag.String("panes", "20,100", "numbers of panes")
	rounds := flag.Int("rounds", 5, "rounds of each program")
	presses := flag.Int("keys", 60, "keys a round")
	rest := flag.Duration("rest", 10*time.Second, "how long a program is left untouched, once a size")
	out := flag.String("json", "", "file for the figures")
	check := flag.Bool("check", false, "exit with 1 when a budget is exceeded")
	snapshot := flag.Bool("snapshot", false, "print the screens and end")
	stamps := flag.Bool("print", false, "be the program in a busy pane")
	flag.Parse()
	if *stamps {
		printStamps()
		return
	}
	report, err := bench(options{*binary, *floor, *sizes, *rounds, *presses, *rest, *snapshot})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	report.print(os.Stdout)
	if *out != "" {
		if err := writeJSON(*out, report); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
	if *check && !report.held() {
		os.Exit(1)
	}
}

type options struct {
	binary, floor, sizes string
	rounds, presses      int
	rest                 time.Duration
	snapshot             bool
}

func bench(o options) (*report, error) {
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("/tmp", "cmfloor")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	floor, err := filepath.Abs(o.floor)
	if err != nil {
		return nil, err
	}
	if o.floor == "" {
		floor = filepath.Join(work, "floor")
		if out, err := exec.Command("go", "build", "-o", floor, "./tui/bench/floor").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the floor: %w: %s", err, out)
		}
	}
	r := &report{}
	for text := range strings.SplitSeq(o.sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 12 {
			return nil, fmt.Errorf("%q is no number of panes: at least 12", text)
		}
		size, err := benchSize(o, binary, floor, self, n)
		if err != nil {
			return nil, fmt.Errorf("%d panes: %w", n, err)
		}
		r.Sizes = append(r.Sizes, *size)
	}
	return r, nil
}

func benchSize(o options, binary, floor, self string, n int) (*sizeReport, error) {
	s, err := newStage(binary, self, n)
	if s != nil {
		defer s.end()
	}
	if err != nil {
		return nil, err
	}
	minRows = min(n, 30)
	contestants := []contestant{
		{name: "cellmux", path: binary},
		{name: "floor", path: floor, args: []string{socket}},
	}
	got := map[string]*figures{"cellmux": {}, "floor": {}}

	if o.snapshot {
		for _, c := range contestants {
			p, took, _, err := s.launch(c)
			if err != nil {
				return nil, err
			}
			time.Sleep(500 * time.Millisecond)
			fmt.Printf("%s, %.1f ms:\n%s\n", c.name, took, p.text())
			p.quit()
		}
		return &sizeReport{Panes: n}, nil
	}

	each := func(f func(c contestant, g *figures, p *program) error) error {
		for _, c := range contestants {
			p, took, spent, err := s.launch(c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			got[c.name].Start = append(got[c.name].Start, took)
			got[c.name].StartCPU = append(got[c.name].StartCPU, spent)
			err = f(c, got[c.name], p)
			p.quit()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		return nil
	}

	for range o.rounds {
		if err := each(func(_ contestant, g *figures, p *program) error {
			before := p.spent()
			key, follow, err := keys(p, o.presses, false)
			g.KeyCPU = append(g.KeyCPU, ms(p.spent()-before)/float64(max(len(key), 1)))
			g.Key, g.Follow = append(g.Key, key...), append(g.Follow, follow...)
			if err != nil {
				return err
			}
			for range 5 {
				took, err := burst(p)
				if err != nil {
					g.Lost++
					continue
				}
				g.Burst = append(g.Burst, took)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	if err := each(func(_ contestant, g *figures, p *program) error {
		total, own, bytes, rss, started := s.rest(p, o.rest)
		g.Idle, g.IdleOwn, g.Bytes, g.RSS = append(g.Idle, total), append(g.IdleOwn, own), append(g.Bytes, bytes), append(g.RSS, rss)
		if started {
			g.Started++
		}
		return nil
	}); err != nil {
		return nil, err
	}

	const printing = 10
	if err := s.busy(printing); err != nil {
		return nil, err
	}
	minRows = min(n, 25) // a busy list is as full; marks are gone from some
	anyPreview := func(c contestant) (*program, error) {
		p, err := launch(s.env, filepath.Join(s.dir, "p00"), c.path, c.args...)
		if err != nil {
			return nil, err
		}
		_, err = p.until("the list", 10*time.Second, full)
		if err != nil {
			p.quit()
		}
		return p, err
	}
	for range o.rounds {
		for _, c := range contestants {
			p, err := anyPreview(c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			key, _, err := keys(p, o.presses, true)
			g := got[c.name]
			g.KeyBusy = append(g.KeyBusy, key...)
			p.quit()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	for _, c := range contestants {
		p, err := anyPreview(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		g := got[c.name]
		if err = selectBusy(p); err == nil {
			g.Age = append(g.Age, ages(p, o.rest/2)...)
			total, own, _, _, started := s.rest(p, o.rest)
			g.Busy, g.BusyOwn = append(g.Busy, total), append(g.BusyOwn, own)
			if started {
				g.Started++
			}
		}
		p.quit()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if len(got["cellmux"].Key) == 0 || len(got["floor"].Key) == 0 {
		return nil, errors.New("no key was measured")
	}
	return summarise(n, got["cellmux"], got["floor"]), nil
}
