package state

import (
	"fmt"
	"os"
	"time"
)

// checkedFor is how long a whole reading of the database counts.
const checkedFor = 24 * time.Hour

// A database that was read whole and found good is not read whole again as long
// as nobody has written to its file since: checked remembers which file that
// was, in a file beside it. SQLite's own writes are trusted as far as they ended
// well, which a log that lies there denies; what happens to the disk itself is
// not seen, so that the memory ends with a day and with the machine's run.
type checked struct {
	file fileState
	at   time.Time // of the whole reading
}

// fileState tells one content of a file from another. The change time is the
// kernel's: nobody sets it back.
type fileState struct {
	device, inode     uint64
	size              int64
	modified, changed int64 // nanoseconds since 1970
}

func checkedFile(path string) string { return path + ".checked" }

const checkedForm = "1 %d %d %d %d %d %d\n"

// remembered is when the database was last read whole, if that still counts.
func remembered(path string, now time.Time) (at time.Time, ok bool) {
	text, err := os.ReadFile(checkedFile(path))
	if err != nil {
		return time.Time{}, false
	}
	var c checked
	var ms int64
	f := &c.file
	if n, err := fmt.Sscanf(string(text), checkedForm, &f.device, &f.inode, &f.size, &f.modified, &f.changed, &ms); err != nil || n != 6 {
		return time.Time{}, false
	}
	c.at = time.UnixMilli(ms)
	booted, known := bootedAt(now)
	current, err := stateOf(path)
	if err != nil || !known || current != c.file || !endedWell(path) ||
		c.at.After(now) || now.Sub(c.at) >= checkedFor || !c.at.After(booted) {
		return time.Time{}, false
	}
	return c.at, true
}

// endedWell says that no log waits to be written into the database: who used it
// last has closed it.
func endedWell(path string) bool {
	info, err := os.Stat(path + "-wal")
	return os.IsNotExist(err) || err == nil && info.Size() == 0
}

// remember notes that what the file holds now comes of one that was read whole.
// A note that cannot be written costs the next start a reading.
func remember(path string, at time.Time) {
	current, err := stateOf(path)
	if err != nil || at.IsZero() || !endedWell(path) {
		return
	}
	text := fmt.Sprintf(checkedForm, current.device, current.inode, current.size, current.modified, current.changed, at.UnixMilli())
	if before, err := os.ReadFile(checkedFile(path)); err == nil && string(before) == text {
		return
	}
	_ = os.WriteFile(checkedFile(path), []byte(text), 0o600)
}
