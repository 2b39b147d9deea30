package run

import (
	"bytes"
	"sync"
	"time"
)

// Sizes of what a recorder holds in memory, whatever an execution prints.
const (
	keepInMemory = 256 << 10 // shorter output is not read back from disk
	pendingSize  = 64 << 10  // display text between two frames
	frame        = time.Second / 30
	chunkBacklog = 32
	batchSize    = 64 << 10 // what is written to disk together
	batchTime    = time.Millisecond
)

// recorder takes in what an execution prints, for the record, the disk and the
// screen. What the screen cannot follow is skipped and counted; the record is
// complete as far as its limits go.
type recorder struct {
	limit  int64 // bytes produced at which tooMuch is called; <= 0 never
	mask   *masker
	onOver func()

	mu         sync.Mutex
	produced   int64 // before masking
	lines      int
	lastByte   byte
	small      []byte // the beginning, as long as it is all
	disk       *spill
	diskErr    error
	batch      []byte                 // not on disk yet
	batchTimer *time.Timer            // runs while pieces are gathered
	open       func() (*spill, error) // makes disk at the first byte; nil keeps none
	over       bool
	closed     bool // the record is made: what still comes is dropped

	screen     display
	fullScreen *screenWatch
}

func newRecorder(limit int64, open func() (*spill, error), onOver func()) *recorder {
	r := &recorder{limit: limit, mask: &masker{}, open: open, onOver: onOver}
	r.screen.chunks = make(chan Chunk, chunkBacklog)
	r.screen.cleaner.colour = true
	return r
}

// hide masks values in what is written from here on.
func (r *recorder) hide(secrets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mask = newMasker(secrets)
}

// Write implements io.Writer and never fails. The speed of `!` hangs on it: one
// count of newlines and one write to disk for each piece.
func (r *recorder) Write(p []byte) (int, error) {
	if len(p) > 0 {
		r.write(p)
	}
	return len(p), nil
}

func (r *recorder) write(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.produced += int64(len(p))
	r.lines += bytes.Count(p, []byte{'\n'})
	r.lastByte = p[len(p)-1]
	r.fullScreen.read(p)
	r.keep(r.mask.write(p))
	if r.limit > 0 && r.produced >= r.limit && !r.over {
		r.over = true
		r.onOver()
	}
}

// keep stores what has been masked. The lock is held.
func (r *recorder) keep(p []byte) {
	if len(p) == 0 {
		return
	}
	if r.disk == nil && r.diskErr == nil && r.open != nil {
		r.disk, r.diskErr = r.open()
	}
	r.store(p)
	if room := keepInMemory - len(r.small); room > 0 {
		r.small = append(r.small, p[:min(room, len(p))]...)
	}
	r.screen.write(p)
}

// store writes to disk, at once after a pause; small pieces that follow each
// other are written together, a millisecond later: a crash may lose as
// much. The lock is held.
func (r *recorder) store(p []byte) {
	if r.disk == nil || r.diskErr != nil {
		return
	}
	if len(r.batch)+len(p) < batchSize {
		if r.batchTimer != nil {
			r.batch = append(r.batch, p...)
			return
		}
		r.batchTimer = time.AfterFunc(batchTime, r.storeBatch)
	}
	r.flushBatch()
	if r.diskErr == nil {
		r.diskErr = r.disk.write(p)
	}
}

func (r *recorder) storeBatch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if len(r.batch) == 0 {
		r.batchTimer = nil
		return
	}
	r.flushBatch()
	r.batchTimer.Reset(batchTime)
}

func (r *recorder) flushBatch() {
	if len(r.batch) > 0 && r.diskErr == nil {
		r.diskErr = r.disk.write(r.batch)
	}
	r.batch = r.batch[:0]
}

// count is what has been produced so far.
func (r *recorder) count() (produced, lines int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines = r.lines
	if r.produced > 0 && r.lastByte != '\n' {
		lines++
	}
	return int(r.produced), lines
}

// result is the end of a recording.
type result struct {
	text      string // for the record
	cut       bool
	produced  int64
	lines     int
	spill     string // path; "" when the record has it all
	diskError error
	screen    bool   // it drew a full screen
	disk      *spill // to be straightened and closed; nil without spill
}

// finish makes the record's text. What is on disk is left as it was written:
// putting it in order costs more than all the rest, and no record waits for it.
func (r *recorder) finish() result {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(r.mask.finish())
	r.closed = true
	if r.batchTimer != nil {
		r.batchTimer.Stop()
	}
	if r.disk != nil {
		r.flushBatch()
	}
	r.batch = nil
	res := result{produced: r.produced, lines: r.lines, diskError: r.diskErr, screen: r.fullScreen.end()}
	if r.lastByte != '\n' && r.produced > 0 {
		res.lines++
	}
	var whole output = memory(r.small)
	if r.disk != nil && r.diskErr == nil && r.disk.size() > int64(len(r.small)) {
		whole = r.disk
	}
	res.text, res.cut = excerpt(whole)
	if whole.size() < r.produced && r.diskErr != nil {
		res.cut = true
	}
	if r.disk != nil {
		res.spill = r.disk.path
		if !res.cut && bytes.Equal(r.small, []byte(res.text)) {
			r.disk.remove()
			res.spill = ""
		} else {
			res.disk = r.disk
		}
	}
	r.screen.finish()
	r.small = nil
	return res
}

// display turns output into chunks: at once when nothing was shown for a frame,
// else with the next frame.
type display struct {
	chunks chan Chunk

	mu      sync.Mutex
	cleaner cleaner
	pending []byte // raw, not yet cleaned
	skipped int64
	resync  bool // bytes were skipped: go on at the next line
	partial bool // the last chunk ended within a line
	timer   *time.Timer
	last    time.Time
	done    bool
}

func (d *display) write(p []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if over := len(d.pending) + len(p) - pendingSize; over > 0 {
		// The newest output is what a screen shows.
		fromOld := min(over, len(d.pending))
		d.pending = append(d.pending[:0], d.pending[fromOld:]...)
		p = p[over-fromOld:]
		d.skipped += int64(over)
		d.resync = true
	}
	d.pending = append(d.pending, p...)
	if d.timer != nil || d.done {
		return
	}
	if wait := frame - time.Since(d.last); wait > 0 {
		d.timer = time.AfterFunc(wait, d.tick)
		return
	}
	d.flush(false)
}

func (d *display) tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = nil
	if !d.done {
		d.flush(false)
	}
}

// flush sends what is pending. When nobody reads it waits for the next frame,
// and the oldest is skipped; at the end the oldest chunk makes room for the last.
func (d *display) flush(end bool) {
	if !end && len(d.chunks) == cap(d.chunks) {
		d.timer = time.AfterFunc(frame, d.tick)
		return
	}
	if len(d.pending) == 0 && d.skipped == 0 && len(d.cleaner.part) == 0 {
		return
	}
	d.last = time.Now()
	chunk := Chunk{Skipped: d.skipped, Rewind: d.partial && d.skipped == 0}
	raw := d.pending
	if d.resync {
		d.cleaner = cleaner{colour: true}
		if i := bytes.IndexByte(raw, '\n'); i >= 0 {
			chunk.Skipped += int64(i) + 1
			raw = raw[i+1:]
		}
	}
	d.cleaner.write(raw, 0)
	if end {
		d.cleaner.finish()
	}
	chunk.Text = string(d.cleaner.out) + string(d.cleaner.line)
	d.partial = len(d.cleaner.line) > 0
	d.cleaner.out, d.cleaner.cost = d.cleaner.out[:0], 0
	d.pending, d.skipped, d.resync = d.pending[:0], 0, false
	if chunk.Text == "" && chunk.Skipped == 0 && !chunk.Rewind {
		return // colours alone, or the first half of a sequence
	}
	for {
		select {
		case d.chunks <- chunk:
			return
		default:
		}
		select {
		case old := <-d.chunks:
			chunk.Skipped += old.Skipped + int64(len(old.Text))
		default:
		}
	}
}

func (d *display) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.flush(true)
	d.done = true
	close(d.chunks)
}
