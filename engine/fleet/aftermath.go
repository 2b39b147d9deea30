package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cellmux/cell/lock"
	"cellmux/shellctx/run"
)

// Presence is the mark of a running screen: a locked file. The kernel drops the
// lock however the process ends, so that a file without a lock tells of one that
// ended without a chance to tidy up.
type Presence struct {
	held *lock.File
	file string
}

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
		told = append(told, fmt.Sprintf("A cellmux (process %s)%s ended without a chance to tidy up; panes ran on and nothing that was stored is lost.", name, since))
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
	return &Presence{held: held, file: file}, told, nil
}

// Leave takes the mark away: this process ended as it should.
func (p *Presence) Leave() error {
	err := os.Remove(p.file)
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
