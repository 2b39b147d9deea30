// Command bench measures what a `!` command costs against what the machine can
// do at best, in one run, and prints a table and JSON. It exits with 1 when a
// ratio misses its target (issue D).
//
// Each figure is the median of runs that alternate with those that it is
// compared with, so that a busy machine slows both.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellmux/cell/proc"
	"cellmux/cell/state"
	"cellmux/engine"
	"cellmux/shellctx/run"
)

// row is one line of the table.
type row struct {
	Name   string  `json:"name"`
	Ours   float64 `json:"ours"`
	Floor  float64 `json:"floor"`
	Unit   string  `json:"unit"`
	Ratio  float64 `json:"ratio"`
	Target float64 `json:"target"`
	AtMost bool    `json:"at_most"` // else at least
	Met    bool    `json:"met"`
}

func main() {
	runs := flag.Int("runs", 200, "runs of each short command")
	bulk := flag.Int("bulk", 5, "runs of the long output")
	bytes := flag.Int64("bytes", 500_000_000, "bytes of the long output")
	flag.Parse()
	rows, err := measure(*runs, *bulk, *bytes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	fmt.Printf("%-44s %12s %12s %8s %10s\n", "shell", "ours", "floor", "ratio", "target")
	missed := false
	for _, r := range rows {
		sign, verdict := "<=", "ok"
		if !r.AtMost {
			sign = ">="
		}
		if !r.Met {
			verdict, missed = "MISSED", true
		}
		fmt.Printf("%-44s %9.3f %-3s %8.3f %-3s %7.3f %3s %-6.2f %s\n",
			r.Name, r.Ours, r.Unit, r.Floor, r.Unit, r.Ratio, sign, r.Target, verdict)
	}
	encoded, err := json.Marshal(rows)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	fmt.Println(string(encoded))
	if missed {
		os.Exit(1)
	}
}

// subject is a Service as main wires it, on files of its own.
type subject struct {
	service *run.Service
	cell    engine.Cell
}

func measure(runs, bulk int, size int64) ([]row, error) {
	dir, err := os.MkdirTemp("", "cellmux-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	db, _, err := state.Open(ctx, filepath.Join(dir, "cellmux.db"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	if err := db.Migrate(ctx, "run", run.Migrations()); err != nil {
		return nil, err
	}
	s := subject{
		service: run.New(run.Options{
			DB: db.SQL(), Runner: proc.New(), SpillDir: filepath.Join(dir, "output"),
			Env: func(context.Context, engine.Cell, int, bool) ([]string, error) { return os.Environ(), nil },
			// The long output is measured whole; a user's would be ended at 1 GiB.
			Limits: run.Limits{Produced: -1},
		}),
		cell: engine.Cell{Name: "bench", ProjectDir: dir, Kind: engine.Host},
	}
	defer func() { _ = s.service.Close(ctx) }()

	var bashTrue, ourTrue, exec1, ourExec []float64
	for range runs + runs/10 {
		bashTrue = append(bashTrue, timed(func() error { return exec.Command("bash", "-c", "true").Run() }, &err))
		ourTrue = append(ourTrue, s.toExit("true", &err))
		exec1 = append(exec1, timed(func() error { return exec.Command("/bin/true").Run() }, &err))
		ourExec = append(ourExec, s.toExit("/bin/true", &err))
		if err != nil {
			return nil, err
		}
	}
	warm := runs / 10
	rows := []row{
		atMost("!true to its exit code / bash -c true", median(ourTrue[warm:]), median(bashTrue[warm:]), "ms", 0.1),
		atMost("!/bin/true to its exit code / fork and exec", median(ourExec[warm:]), median(exec1[warm:]), "ms", 1.3),
	}

	source := fmt.Sprintf("yes | head -c %d", size)
	var floor, ours []float64
	peak := int64(0)
	for range bulk {
		floor = append(floor, timed(func() error {
			cmd := exec.Command("bash", "-c", source)
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer func() { _ = null.Close() }()
			cmd.Stdout = null
			return cmd.Run()
		}, &err))
		debug.FreeOSMemory()
		runtime.GC()
		before := memory("VmRSS")
		resetPeak()
		ours = append(ours, timed(func() error { return s.run(source) }, &err))
		if grown := memory("VmHWM") - before; grown > peak {
			peak = grown
		}
		if err != nil {
			return nil, err
		}
	}
	rate := func(ms float64) float64 { return float64(size) / 1e6 / (ms / 1e3) }
	rows = append(rows,
		atLeast(fmt.Sprintf("!%s / bash to /dev/null", source), rate(median(ours)), rate(median(floor)), "MB/s", 0.45))
	if peak > 0 {
		rows = append(rows, row{
			Name: "memory over idle meanwhile, of 16 MiB", Ours: mib(peak), Floor: 16, Unit: "MiB",
			Ratio: mib(peak) / 16, Target: 1, AtMost: true, Met: mib(peak) <= 16,
		})
	}
	return rows, nil
}

// run runs one line to its stored record.
func (s subject) run(line string) error {
	h, err := s.service.Start(context.Background(), run.Request{Cell: s.cell, Line: line, Mode: run.Context})
	if err != nil {
		return err
	}
	e, err := h.Wait(context.Background())
	if err == nil && e.Record.ExitCode != 0 {
		err = fmt.Errorf("%s: exit code %d", line, e.Record.ExitCode)
	}
	return err
}

// toExit runs one line and returns the milliseconds from the call, with the row
// that is stored first, to its exit code. It waits for the record then.
func (s subject) toExit(line string, failed *error) float64 {
	begin := time.Now()
	h, err := s.service.Start(context.Background(), run.Request{Cell: s.cell, Line: line, Mode: run.Context})
	took := 0.0
	if err == nil {
		<-h.(interface{ Exited() <-chan struct{} }).Exited()
		took = float64(time.Since(begin)) / 1e6
		_, err = h.Wait(context.Background())
	}
	if err != nil && *failed == nil {
		*failed = err
	}
	return took
}

// timed returns milliseconds; the first failure of several calls is kept.
func timed(f func() error, failed *error) float64 {
	begin := time.Now()
	err := f()
	took := time.Since(begin)
	if err != nil && *failed == nil {
		*failed = err
	}
	return float64(took) / 1e6
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func atMost(name string, ours, floor float64, unit string, target float64) row {
	return row{name, ours, floor, unit, ours / floor, target, true, ours/floor <= target}
}

func atLeast(name string, ours, floor float64, unit string, target float64) row {
	return row{name, ours, floor, unit, ours / floor, target, false, ours/floor >= target}
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// memory reads a figure of /proc/self/status, in bytes; 0 where there is none.
func memory(name string) int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if value, ok := strings.CutPrefix(string(line), name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// resetPeak sets VmHWM to VmRSS (proc_pid_clear_refs(5)).
func resetPeak() {
	err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "bench: the peak includes what came before:", err)
	}
}
