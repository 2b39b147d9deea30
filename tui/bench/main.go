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
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	starts := flag.Int("starts", 4, "starts a round")
	only := flag.String("only", "", "the parts to measure, of start,key,rest,yes,busy; empty measures all")
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
	report, err := bench(options{*binary, *floor, *sizes, *only, *rounds, *starts, *presses, *rest, *snapshot})
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
	binary, floor, sizes, only string
	rounds, starts, presses    int
	rest                       time.Duration
	snapshot                   bool
}

func (o options) measures(part string) bool {
	return o.only == "" || slices.Contains(strings.Split(o.only, ","), part)
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

	m := measurement{o: o, s: s, contestants: contestants, got: got}
	for _, part := range []struct {
		name    string
		measure func() error
	}{{"start", m.starts}, {"key", m.keys}, {"rest", m.rests}, {"yes", m.yes}, {"busy", m.busy}} {
		if !o.measures(part.name) {
			continue
		}
		if err := part.measure(); err != nil {
			return nil, err
		}
	}
	return summarise(n, got["cellmux"], got["floor"]), nil
}
