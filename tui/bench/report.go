//go:build linux

package main

import (
	"fmt"
	"io"
)

// line is one budget with what was measured.
type line struct {
	Name    string
	Unit    string
	Own     float64
	Against float64 // the floor's, or our own quiet figure; 0 where the budget is absolute
	Ratio   float64 // Own / Against
	Budget  float64 // of Ratio, or of Own where Against is 0
	Held    bool
}

type sizeReport struct {
	Panes int
	Lines []line
	// Samples of the two, for who wants to look closer.
	Cellmux, Floor *figures
}

type report struct{ Sizes []sizeReport }

func summarise(n int, own, floor *figures) *sizeReport {
	r := &sizeReport{Panes: n, Cellmux: own, Floor: floor}
	// A figure of a part that was not measured has no line.
	ratio := func(name, unit string, a, b, budget float64) {
		if a == 0 && b == 0 {
			return
		}
		l := line{Name: name, Unit: unit, Own: a, Against: b, Budget: budget}
		if b > 0 {
			l.Ratio = a / b
		}
		l.Held = b > 0 && l.Ratio <= budget
		r.Lines = append(r.Lines, l)
	}
	absolute := func(name, unit string, a, budget float64) {
		r.Lines = append(r.Lines, line{Name: name, Unit: unit, Own: a, Budget: budget, Held: a <= budget})
	}
	// Without a budget: what the CPU did, which other load on the machine changes
	// less than it changes times.
	told := func(name, unit string, a, b float64) {
		if a == 0 && b == 0 {
			return
		}
		r.Lines = append(r.Lines, line{Name: name, Unit: unit, Own: a, Against: b, Ratio: a / max(b, 1e-9), Held: true})
	}
	const frame = 1000.0 / 120
	ratio("start to full list and first preview, p50", "ms", quantile(own.Start, .5), quantile(floor.Start, .5), 1.5)
	ratio("key to its row, p99", "ms", quantile(own.Key, .99), quantile(floor.Key, .99), 1.15)
	ratio("key to its row, p50", "ms", quantile(own.Key, .5), quantile(floor.Key, .5), 1.15)
	ratio("key while 10 panes print, p99 against own quiet", "ms", quantile(own.KeyBusy, .99), quantile(own.Key, .99), 1.1)
	ratio("key while ! yes prints, p99 against own quiet", "ms", quantile(own.KeyYes, .99), quantile(own.KeyQuiet, .99), 1.5)
	ratio("key while 10 panes print, p50 against own quiet", "ms", quantile(own.KeyBusy, .5), quantile(own.Key, .5), 1.1)
	if len(own.Follow) > 0 {
		absolute("preview after the row, p99 follow - p99 key", "ms", quantile(own.Follow, .99)-quantile(own.Key, .99), frame)
	}
	ratio("15 keys in one write, p50", "ms", quantile(own.Burst, .5), quantile(floor.Burst, .5), 1.2)
	told("CPU until the start is over, p50", "ms", quantile(own.StartCPU, .5), quantile(floor.StartCPU, .5))
	told("CPU for a key, p50", "ms", quantile(own.KeyCPU, .5), quantile(floor.KeyCPU, .5))
	if len(own.Burst)+own.Lost > 0 {
		absolute("bursts with a key lost or out of order", "", float64(own.Lost), 0)
	}
	if len(own.Idle)+len(own.Busy) > 0 {
		absolute("rests in which a process was started", "", float64(own.Started), 0)
	}
	ratio("CPU untouched, tmux included", "%", quantile(own.Idle, .5), quantile(floor.Idle, .5), 1)
	ratio("CPU, 10 panes print, tmux included", "%", quantile(own.Busy, .5), quantile(floor.Busy, .5), 2)
	ratio("CPU, 10 panes print, without the tmux server", "%", quantile(own.BusyOwn, .5), quantile(floor.BusyOwn, .5), 2)
	ratio("memory, resident", "MiB", quantile(own.RSS, .5), quantile(floor.RSS, .5), 2.5)
	if len(own.Age) > 0 {
		absolute("age of a busy preview, p95", "ms", quantile(own.Age, .95), 150)
	}
	return r
}

func (r *report) held() bool {
	for _, s := range r.Sizes {
		for _, l := range s.Lines {
			if !l.Held {
				return false
			}
		}
	}
	return true
}

func (r *report) print(w io.Writer) {
	for _, s := range r.Sizes {
		_, _ = fmt.Fprintf(w, "\n%d panes%45s%11s%11s%9s%9s\n", s.Panes, "", "cellmux", "against", "ratio", "budget")
		for _, l := range s.Lines {
			against, ratio := "", ""
			if l.Against > 0 {
				against, ratio = fmt.Sprintf("%.2f", l.Against), fmt.Sprintf("%.2f", l.Ratio)
			}
			budget, verdict := fmt.Sprintf("%.2f", l.Budget), "held"
			switch {
			case !l.Held:
				verdict = "EXCEEDED"
			case l.Budget == 0 && l.Against > 0:
				budget, verdict = "", ""
			}
			_, _ = fmt.Fprintf(w, "  %-50s%9.2f %-3s%9s%9s%9s  %s\n", l.Name, l.Own, l.Unit, against, ratio, budget, verdict)
		}
	}
}
