package run

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// spill keeps an execution's output on disk, as it comes, so that it is there
// after a crash too: the first half of its size, and the last half, in a ring.
// The file holds the head, then the ring, then, once the ring has gone around,
// eight bytes with the number of bytes produced. A file that is longer than
// those has been straightened, and is the output as it is read.
type spill struct {
	file    *os.File
	path    string
	half    int64
	written int64 // bytes produced
}

// countSize is the length of the number behind a ring. The line that straighten
// puts in is longer.
const countSize = 8

// newSpill makes the file, mode 0600, in dir, which is made 0700.
func newSpill(dir, name string, size int64) (*spill, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	path := filepath.Join(dir, name+".out")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	return &spill{file: f, path: path, half: size / 2}, nil
}

func (s *spill) write(p []byte) error {
	for len(p) > 0 {
		at, room := s.place(s.written)
		n := min(int64(len(p)), room)
		if _, err := s.file.WriteAt(p[:n], at); err != nil {
			return fmt.Errorf("keep output: %w", err)
		}
		s.written += n
		p = p[n:]
	}
	if s.written > 2*s.half {
		var count [countSize]byte
		binary.LittleEndian.PutUint64(count[:], uint64(s.written))
		if _, err := s.file.WriteAt(count[:], 2*s.half); err != nil {
			return fmt.Errorf("keep output: %w", err)
		}
	}
	return nil
}

// place is where a byte of the output stands in the file, and how many follow
// it there.
func (s *spill) place(offset int64) (at, room int64) {
	if offset < s.half {
		return offset, s.half - offset
	}
	in := (offset - s.half) % s.half
	return s.half + in, s.half - in
}

// kept returns the two parts of the output that are there: [0,head) and
// [tail,written). They touch when nothing is missing.
func (s *spill) kept() (head, tail int64) {
	return min(s.written, s.half), max(min(s.written, s.half), s.written-s.half)
}

// ReadAt reads at an offset of the output; what is missing there is an error.
func (s *spill) ReadAt(p []byte, offset int64) (int, error) {
	head, tail := s.kept()
	done := 0
	for done < len(p) {
		switch {
		case offset >= s.written:
			return done, io.EOF
		case offset >= head && offset < tail:
			return done, errors.New("this part of the output was not kept")
		}
		at, room := s.place(offset)
		if offset < head {
			room = min(room, head-offset)
		}
		n := min(int64(len(p)-done), room, s.written-offset)
		if _, err := s.file.ReadAt(p[done:done+int(n)], at); err != nil {
			return done, err
		}
		done += int(n)
		offset += n
	}
	return done, nil
}

// openSpill opens what an earlier run kept.
func openSpill(path string, size int64) (*spill, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s := &spill{file: f, path: path, half: size / 2}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	s.written = info.Size()
	switch ring := 2 * s.half; {
	case s.written > ring+countSize:
		s.half = s.written
	case s.written > ring:
		var count [countSize]byte
		if _, err := f.ReadAt(count[:], ring); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("read how much was printed: %w", err)
		}
		s.written = max(ring, int64(binary.LittleEndian.Uint64(count[:])))
	}
	return s, nil
}

// straighten rewrites a file whose ring has gone around, so that it can be read
// from front to back: head, a line that counts what is missing, tail.
func (s *spill) straighten() error {
	head, tail := s.kept()
	if s.written <= 2*s.half {
		return nil
	}
	next, err := os.OpenFile(s.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(s.path + ".new") }()
	err = s.copyTo(next, 0, head)
	if err == nil {
		_, err = fmt.Fprintf(next, "\n[… %d bytes are not kept …]\n", tail-head)
	}
	if err == nil {
		err = s.copyTo(next, tail, s.written)
	}
	if cerr := next.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("put kept output in order: %w", err)
	}
	return os.Rename(s.path+".new", s.path)
}

// copyTo copies [from,to) of the output, which must be kept, to the place where
// next stands. Between two files the kernel does it.
func (s *spill) copyTo(next *os.File, from, to int64) error {
	for from < to {
		at, room := s.place(from)
		n := min(to-from, room)
		if _, err := s.file.Seek(at, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(next, s.file, n); err != nil {
			return err
		}
		from += n
	}
	return nil
}

func (s *spill) close() { _ = s.file.Close() }

func (s *spill) remove() {
	s.close()
	_ = os.Remove(s.path)
}
