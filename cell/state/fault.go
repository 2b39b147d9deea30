package state

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What can be wrong with the database apart from its content. The text of an
// error that Explain returns says what to do.
var (
	ErrReadOnly = errors.New("it cannot be written")
	ErrFull     = errors.New("the disk is full")
	ErrLocked   = errors.New("another process holds it")
	ErrDamaged  = errors.New("it is damaged")
	ErrNewer    = errors.New("a newer cellmux wrote it")
)

// Explain gives an error of the database or its files one of the meanings
// above, with the next step; other errors, nil among them, come back as they
// are. It keeps the chain.
func Explain(err error) error {
	if err == nil || explained(err) {
		return err
	}
	var fault *sqlite.Error
	if errors.As(err, &fault) {
		switch fault.Code() & 0xff { // the low byte is the primary result code
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
			return fmt.Errorf("%w: make the file and its directory writable, or set XDG_STATE_HOME to another directory: %w", ErrReadOnly, err)
		case sqlite3.SQLITE_FULL:
			return fmt.Errorf("%w: free some space and try again, nothing was changed: %w", ErrFull, err)
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return fmt.Errorf("%w: it did not let go within %v; try again, or see with `fuser` who holds it: %w", ErrLocked, BusyTimeout, err)
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return fmt.Errorf("%w: start cellmux again, it sets the damaged file aside: %w", ErrDamaged, err)
		}
		if fault.Code() == sqlite3.SQLITE_IOERR_WRITE || fault.Code() == sqlite3.SQLITE_IOERR_SHMSIZE {
			return fmt.Errorf("%w, or its disk fails: free some space and try again: %w", ErrFull, err)
		}
		return err
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: free some space and try again: %w", ErrFull, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: make the directory writable, or set XDG_STATE_HOME to another one: %w", ErrReadOnly, err)
	}
	return err
}

func explained(err error) bool {
	for _, known := range []error{ErrReadOnly, ErrFull, ErrLocked, ErrDamaged, ErrNewer} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
