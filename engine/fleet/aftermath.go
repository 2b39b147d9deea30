package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"cellmux/cell/lock"
	"cellmux/shellctx/run"
)

// Presence is the mark of a running screen: a locked file. The kernel drops the
// lock however the process ends, so that a file without a lock tells of one that
// ended without a chance to tidy up. Beside it lies what is known of why.
type Presence struct {
	held   *lock.File
	file   string
	report string
}

// keptReports is how many reports of failures are kept; the oldest go.
const keptReports = 5

// Appear marks this process in dir and says, a sentence each, which others ended
// without a chance to tidy up since the last look. Each is told once.
func Appear(dir string, pid int, now time.Time) (*Presence, []string, error) {
	var told []string
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("look for screens that ended: %w", err)
	}
	for _, entry := range entries {
		file := filepath.Join(dir, entry.Name())
		name, is := strings.CutSuffix(entry.Name(), ".screen")
		if !is {
			continue
		}
		held, err := lock.Try(file)
		if err != nil {
			continue // it runs, or somebody else is about to tell of it
		}
		since := ""
		if info, err := os.Stat(file); err == nil {
			since = ", begun " + info.ModTime().Local().Format("2006-01-02 15:04") + ","
		}
		how := "ended without a chance to tidy up"
		if why, kept := keepReport(dir, name, now); why != "" {
			how = fmt.Sprintf("failed (%s; the report is %s)", why, kept)
		}
		told = append(told, fmt.Sprintf("A cellmux (process %s)%s %s; panes ran on and nothing that was stored is lost.", name, since, how))
		err = os.Remove(file)
		held.Release()
		if err != nil {
			return nil, told, fmt.Errorf("forget a screen that ended: %w", err)
		}
	}
	file := filepath.Join(dir, strconv.Itoa(pid)+".screen")
	held, err := lock.Try(file)
	if err != nil {
		return nil, told, fmt.Errorf("mark this screen: %w", err)
	}
	if err := os.Chtimes(file, now, now); err != nil {
		held.Release()
		return nil, told, fmt.Errorf("mark this screen: %w", err)
	}
	return &Presence{held: held, file: file, report: reportOf(dir, strconv.Itoa(pid))}, told, nil
}

func reportOf(dir, pid string) string { return filepath.Join(dir, pid+".report") }

// keepReport gives the report of a process that is gone a name of its own, and
// returns its first words; "" when there is none.
func keepReport(dir, pid string, now time.Time) (why, kept string) {
	file := reportOf(dir, pid)
	content, err := os.ReadFile(file)
	if err != nil {
		return "", ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
	if line == "" {
		_ = os.Remove(file) // it had nothing to say
		return "", ""
	}
	kept = filepath.Join(dir, fmt.Sprintf("failed-%s-%s.txt", now.UTC().Format("20060102T150405Z"), pid))
	if os.Rename(file, kept) != nil {
		kept = file
	}
	// By their names they are in the order of time.
	all, _ := filepath.Glob(filepath.Join(dir, "failed-*.txt"))
	for _, old := range all[:max(0, len(all)-keptReports)] {
		_ = os.Remove(old)
	}
	return ansi.Truncate(ansi.Strip(line), 120, "…"), kept
}

// Report makes the Go runtime write beside the mark why this process fails, when
// it does: a panic in any goroutine, a fault of the runtime, a signal that ends
// it with a trace. It is the process's own setting, until Leave.
func (p *Presence) Report() error {
	file, err := os.OpenFile(p.report, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("keep a report of failures: %w", err)
	}
	defer file.Close() // the runtime has a descriptor of its own
	if err := debug.SetCrashOutput(file, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("keep a report of failures: %w", err)
	}
	return nil
}

// Failed leaves the mark with a failure that the process survived long enough to
// give the terminal back, so that the next start tells of it.
func (p *Presence) Failed(failure error) error {
	err := errors.Join(debug.SetCrashOutput(nil, debug.CrashOptions{}),
		os.WriteFile(p.report, []byte(failure.Error()+"\n"), 0o600))
	p.held.Release()
	return err
}

// Leave takes the mark away: this process ended as it should.
func (p *Presence) Leave() error {
	err := errors.Join(debug.SetCrashOutput(nil, debug.CrashOptions{}), os.Remove(p.file))
	if report := os.Remove(p.report); !errors.Is(report, fs.ErrNotExist) {
		err = errors.Join(err, report)
	}
	p.held.Release()
	return err
}

// Recover takes care of the `!` commands that a cellmux left that ended without
// a chance to tidy up, and says what it did, a sentence each.
func (s *Shell) Recover(ctx context.Context) ([]string, error) {
	var did run.Recovery
	var err error
	s.recovered.Do(func() { did, err = s.service.Recover(ctx) })
	var told []string
	if n := len(did.Interrupted); n > 0 {
		text := fmt.Sprintf("%d commands were", n)
		if n == 1 {
			text = fmt.Sprintf("%q was", did.Interrupted[0].Record.Command)
		}
		told = append(told, text+" interrupted; what was printed until then is in the shell log.")
	}
	if did.Ended > 0 {
		told = append(told, fmt.Sprintf("%d processes that were left running by ! commands were ended.", did.Ended))
	}
	return told, err
}
