package state

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// checkLimit is the size up to which a database is read whole before it is
// opened: some 10 ms. Beyond it only the header, the length and the schema are
// looked at, so that a start does not become slower with years of use;
// damage further in shows as ErrDamaged when it is read.
const checkLimit = 2 << 20

// sqliteMagic begins every SQLite database (sqlite.org/fileformat2.html).
const sqliteMagic = "SQLite format 3\x00"

// examine says what is wrong with the file at path, "" when nothing is, when
// it is empty, or when there is none, and whether it has read it whole. known
// says that it was read whole before and is the same. It changes nothing in the
// file; SQLite may replay the log that lies beside it.
func examine(ctx context.Context, path string, known bool) (reason string, whole bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if !info.Mode().IsRegular() {
		return "", false, fmt.Errorf("%s is no regular file", path)
	}
	if info.Size() == 0 {
		// Either never written, or cut to nothing. A log beside it means the latter.
		if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
			return "the file is empty, but its log is not", false, nil
		}
		return "", false, nil
	}
	reason, err = examineHeader(path, info.Size())
	if reason != "" || err != nil || known {
		return reason, false, err
	}
	whole = info.Size() <= checkLimit
	reason, err = examineContent(ctx, path, whole)
	return reason, whole, err
}

func examineHeader(path string, size int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var header [100]byte
	if _, err := io.ReadFull(file, header[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return "the file is shorter than a database's header", nil
		}
		return "", err
	}
	if string(header[:16]) != sqliteMagic {
		return "the file does not begin like a database", nil
	}
	pageSize := int64(binary.BigEndian.Uint16(header[16:18]))
	if pageSize == 1 {
		pageSize = 65536
	}
	if pageSize < 512 || pageSize&(pageSize-1) != 0 {
		return "the header holds an impossible page size", nil
	}
	// Pages beyond the end may lie in the log, so a short file is no damage by
	// itself; a part of a page is, no writer leaves one.
	if size%pageSize != 0 {
		return "the last page is torn", nil
	}
	return "", nil
}

// examineContent reads again while another process changes the schema, as one
// would wait for its lock: SQLite fails then, or calls an index that it could not
// read malformed. So damage is what two readings find.
func examineContent(ctx context.Context, path string, whole bool) (string, error) {
	found := false
	for until := time.Now().Add(BusyTimeout); ; {
		reason, err := readContent(ctx, path, whole)
		var fault *sqlite.Error
		if errors.As(err, &fault) && fault.Code()&0xff == sqlite3.SQLITE_SCHEMA && time.Now().Before(until) {
			continue
		}
		if err != nil || reason == "" || found {
			return reason, err
		}
		found = true
	}
}

func readContent(ctx context.Context, path string, whole bool) (string, error) {
	handle, err := sql.Open("sqlite", source(path, url.Values{
		"_busy_timeout": {fmt.Sprint(BusyTimeout.Milliseconds())},
	}))
	if err != nil {
		return "", err
	}
	defer handle.Close()
	handle.SetMaxOpenConns(1)
	check := "SELECT 'ok' FROM (SELECT count(*) FROM sqlite_schema)"
	if whole {
		check = "PRAGMA quick_check(3)"
	}
	rows, err := handle.QueryContext(ctx, check)
	if err != nil {
		return damageIn(err)
	}
	defer rows.Close()
	var findings []string
	for rows.Next() {
		var finding string
		if err := rows.Scan(&finding); err != nil {
			return damageIn(err)
		}
		if finding != "ok" {
			findings = append(findings, strings.ReplaceAll(finding, "\n", " "))
		}
	}
	if err := rows.Err(); err != nil {
		return damageIn(err)
	}
	return strings.Join(findings, "; "), nil
}

// damageIn tells damage, which is a finding, from errors.
func damageIn(err error) (string, error) {
	var fault *sqlite.Error
	if errors.As(err, &fault) {
		switch fault.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return fault.Error(), nil
		}
	}
	return "", err
}

// setAside renames the database and its side files and returns the new name.
// The log moves first: a database without its log is older, but whole; a log
// without its database could be replayed into the new one.
func setAside(path string, now time.Time) (string, error) {
	base := path + ".damaged-" + now.UTC().Format("20060102T150405Z")
	aside := base
	for n := 2; ; n++ {
		_, err := os.Lstat(aside)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return "", err
		}
		aside = fmt.Sprintf("%s-%d", base, n)
	}
	for _, side := range []string{"-wal", "-shm", ""} {
		err := os.Rename(path+side, aside+side)
		if err != nil && !(side != "" && errors.Is(err, fs.ErrNotExist)) {
			return "", err
		}
	}
	return aside, nil
}
