package run

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// spill keeps an execution's output on disk, so that it is there after a crash
// too: the head as it comes, and the tail in a ring. The ring is in memory and
// goes to disk with flush: a flood that went around it on disk would cost a write
// for each byte, of which nearly all are overwritten.
//
// The file holds the head, then the ring, then, once the ring has gone around,
// eight bytes with the number of bytes produced. A file that is longer than
// those has been straightened, and is the output as it is read.
type spill struct {
	file    *os.File
	path    string
	head    int64  // its room for the beginning
	room    int64  // its room for the tail
	written int64  // bytes produced
	ring    []byte // the tail; nil until the head is full, and in an opened spill
	flushed int64  // bytes produced that the file knows of
}

// maxTail bounds the ring, and with it what a spill holds in memory.
const maxTail = 4 << 20

// countSize is the length of the number behind a ring. The line of a
// straightened file is longer.
const countSize = 8

func newSpillOf(f *os.File, path string, size int64) *spill {
	tail := min(size/2, maxTail)
	return &spill{file: f, path: path, head: size - tail, room: tail}
}

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
	return newSpillOf(f, path, size), nil
}

// write takes the next piece. What belongs to the head is on disk when it
// returns; for the rest flush is due.
func (s *spill) write(p []byte) error {
	if room := s.head - s.written; room > 0 {
		n := min(int64(len(p)), room)
		if _, err := s.file.WriteAt(p[:n], s.written); err != nil {
			return fmt.Errorf("keep output: %w", err)
		}
		s.written += n
		s.flushed = s.written
		p = p[n:]
	}
	if len(p) == 0 {
		return nil
	}
	if s.ring == nil {
		s.ring = make([]byte, s.room)
	}
	if over := int64(len(p)) - s.room; over > 0 {
		s.written += over
		p = p[over:]
	}
	for len(p) > 0 {
		n := copy(s.ring[(s.written-s.head)%s.room:], p)
		s.written += int64(n)
		p = p[n:]
	}
	return nil
}

// unflushed says that memory holds what the file does not.
func (s *spill) unflushed() bool { return s.flushed < s.written }

// flush writes what the file does not have of the ring.
func (s *spill) flush() error {
	for at := max(s.flushed, s.written-s.room, s.head); at < s.written; {
		in := (at - s.head) % s.room
		n := min(s.written-at, s.room-in)
		if _, err := s.file.WriteAt(s.ring[in:in+n], s.head+in); err != nil {
			return fmt.Errorf("keep output: %w", err)
		}
		at += n
	}
	if s.written > s.head+s.room && s.unflushed() {
		var count [countSize]byte
		binary.LittleEndian.PutUint64(count[:], uint64(s.written))
		if _, err := s.file.WriteAt(count[:], s.head+s.room); err != nil {
			return fmt.Errorf("keep output: %w", err)
		}
	}
	s.flushed = s.written
	return nil
}

// kept returns the two parts of the output that are there: [0,head) and
// [tail,written). They touch when nothing is missing.
func (s *spill) kept() (head, tail int64) {
	head = min(s.written, s.head)
	return head, max(head, s.written-s.room)
}

// ReadAt reads at an offset of the output; what is missing there is an error.
func (s *spill) ReadAt(p []byte, offset int64) (int, error) {
	head, tail := s.kept()
	done := 0
	for done < len(p) {
		var n int64
		var err error
		switch {
		case offset >= s.written:
			return done, io.EOF
		case offset < head:
			n = min(int64(len(p)-done), head-offset)
			_, err = s.file.ReadAt(p[done:done+int(n)], offset)
		case offset < tail:
			return done, errors.New("this part of the output was not kept")
		default:
			in := (offset - s.head) % s.room
			n = min(int64(len(p)-done), s.room-in, s.written-offset)
			if s.ring != nil {
				copy(p[done:done+int(n)], s.ring[in:])
			} else {
				_, err = s.file.ReadAt(p[done:done+int(n)], s.head+in)
			}
		}
		if err != nil {
			return done, err
		}
		done += int(n)
		offset += n
	}
	return done, nil
}

// openSpill opens what an earlier run kept.
func openSpill(path string, size int64) (*spill, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s := newSpillOf(f, path, size)
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	s.written = info.Size()
	switch ring := s.head + s.room; {
	case s.written > ring+countSize:
		s.head = s.written
	case s.written > ring:
		var count [countSize]byte
		if _, err := f.ReadAt(count[:], ring); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("read how much was printed: %w", err)
		}
		s.written = max(ring, int64(binary.LittleEndian.Uint64(count[:])))
	}
	s.flushed = s.written
	return s, nil
}

// straighten rewrites a file whose ring has gone around, so that it can be read
// from front to back: head, a line that counts what is missing, tail. A crash
// meanwhile leaves the head as it is, and a tail that may be out of order.
func (s *spill) straighten() error {
	head, tail := s.kept()
	if tail == head {
		return s.flush()
	}
	if s.ring == nil {
		s.ring = make([]byte, s.room)
		if _, err := s.file.ReadAt(s.ring, s.head); err != nil {
			return fmt.Errorf("put kept output in order: %w", err)
		}
	}
	line := fmt.Sprintf("\n[… %d bytes are not kept …]\n", tail-head)
	// Its length first: from here on it is no ring to whom opens it.
	err := s.file.Truncate(head + int64(len(line)) + s.room)
	in, at := (s.written-s.head)%s.room, head
	for _, part := range [][]byte{[]byte(line), s.ring[in:], s.ring[:in]} {
		if err == nil {
			_, err = s.file.WriteAt(part, at)
		}
		at += int64(len(part))
	}
	if err != nil {
		return fmt.Errorf("put kept output in order: %w", err)
	}
	s.flushed = s.written
	return nil
}

func (s *spill) close() { _ = s.file.Close() }

func (s *spill) remove() {
	s.close()
	_ = os.Remove(s.path)
}
