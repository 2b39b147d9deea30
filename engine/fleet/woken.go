package fleet

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// burst joins the writes of one commit.
const burst = 20 * time.Millisecond

// watchDatabase asks for a new list after each commit of this or another
// process, until ctx ends. SQLite's log is written by every commit. Without
// notifications of the file system other processes' changes show with the next
// change of a pane, or a refresh.
func (f *Fleet) watchDatabase(ctx context.Context) {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		err = watcher.Add(filepath.Dir(f.o.Store.Path()))
	}
	if err != nil {
		f.o.Log.Warn("changes of other processes are not noticed", "error", err.Error())
		return
	}
	log := f.o.Store.Path() + "-wal"
	var soon <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-watcher.Events:
			if event.Name == log && soon == nil {
				soon = time.After(burst)
			}
		case <-watcher.Errors: // an overflow loses events; one look makes up for all
			if soon == nil {
				soon = time.After(burst)
			}
		case <-soon:
			soon = nil
			f.poke()
		}
	}
}
