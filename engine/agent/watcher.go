package agent

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/engine/tmux"
)

// Slot is what the watcher must know of one slot. It is fed anew whenever the
// list of panes changes.
type Slot struct {
	Key    string // the caller's own name for it
	Agent  string
	Config cfg.Config
	Home   string // host path of the home in which the agent keeps its files
	// SessionID is the slot's, BoundID the agent's own where it differs.
	SessionID, BoundID string
	Pane               tmux.Pane
}

// WatchOptions are what a Watcher needs of the world. The zero value works.
type WatchOptions struct {
	// Capture returns the visible rows of a pane. It is asked when nothing but
	// the screen tells what an agent asks; nil is never.
	Capture func(ctx context.Context, pane string) ([]string, error)
	Now     func() time.Time
	// Opened says when the program of a pane started; nil asks the system. What
	// files say from before that moment is an earlier program's.
	Opened func(pid int) (time.Time, bool)
}

// Watcher keeps the status of the slots that it is fed. Its methods are safe
// for concurrent use.
type Watcher struct {
	set     *Set
	options WatchOptions
	// notify begins to listen to the file system.
	notify  func() (*fsnotify.Watcher, error)
	wake    chan struct{}
	changes chan struct{}

	mu      sync.Mutex
	slots   map[string]Slot
	status  map[string]Status
	dirs    map[string][]string // watched directory → keys of the slots that it tells about
	screens map[string]captured
	opened  map[string]opening
	streams map[string]stream
	touched chan string // keys that a stream told about
	rewatch chan struct{}
	serial  int                 // of looks, over all slots
	taken   map[string]int      // serial of the look that Status is from
	looking map[string]*looking // what Run has under way
	watched map[string][]string // by slot, the directories of its sources
}

// stream is a goroutine that listens to one slot's agent; Run owns it.
type stream struct {
	name string
	stop context.CancelFunc
}

// opening is when the program of a pane started.
type opening struct {
	pid int
	at  time.Time
}

// captured is a screen that was read because of a level: it is read again when
// the level changes, or when the pane has shown something new.
type captured struct {
	state    State
	activity time.Time
	rows     []string
}

// Watch returns a watcher; it does nothing until Run.
func (s *Set) Watch(o WatchOptions) *Watcher {
	if o.Now == nil {
		o.Now = s.now
	}
	if o.Opened == nil {
		o.Opened = startOf
	}
	return &Watcher{
		set: s, options: o, notify: fsnotify.NewWatcher,
		wake: make(chan struct{}, 1), changes: make(chan struct{}, 1),
		slots: map[string]Slot{}, status: map[string]Status{}, dirs: map[string][]string{}, screens: map[string]captured{},
		opened: map[string]opening{}, streams: map[string]stream{}, touched: make(chan string, 64), rewatch: make(chan struct{}, 1),
		taken: map[string]int{}, looking: map[string]*looking{}, watched: map[string][]string{},
	}
}

// Observe replaces the list of slots that have a pane. It returns at once.
func (w *Watcher) Observe(slots []Slot) {
	w.mu.Lock()
	next := make(map[string]Slot, len(slots))
	for _, slot := range slots {
		next[slot.Key] = slot
	}
	w.slots = next
	gone := func(key string) bool { _, ok := next[key]; return !ok }
	known := len(w.status)
	maps.DeleteFunc(w.status, func(key string, _ Status) bool { return gone(key) })
	maps.DeleteFunc(w.taken, func(key string, _ int) bool { return gone(key) })
	maps.DeleteFunc(w.watched, func(key string, _ []string) bool { return gone(key) })
	maps.DeleteFunc(w.screens, func(key string, _ captured) bool { return gone(key) })
	maps.DeleteFunc(w.opened, func(key string, _ opening) bool { return gone(key) })
	if len(w.status) != known {
		nudge(w.changes)
	}
	w.mu.Unlock()
	nudge(w.wake)
}

// Status returns what is known of a slot; unknown for one that has no pane.
func (w *Watcher) Status(key string) Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status[key]
}

// Read reads the sources of all observed slots now and returns when Status
// knows them: for a caller that wants one answer and does not Run the watcher.
func (w *Watcher) Read(ctx context.Context) {
	w.mu.Lock()
	keys := slices.Collect(maps.Keys(w.slots))
	w.mu.Unlock()
	var reading sync.WaitGroup
	for _, key := range keys {
		if l, ok := w.begin(key); ok {
			reading.Go(func() { w.take(ctx, l) })
		}
	}
	reading.Wait()
}

// Changes tells that the status of some slot has changed. It holds one: a slow
// reader misses how often, never that.
func (w *Watcher) Changes() <-chan struct{} { return w.changes }

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Periods of Run: events of the file system are gathered for settle, and every
// source is read again each backstop, which finds what they did not tell (a
// directory that was not there, a file system without notifications).
const (
	gather   = 30 * time.Millisecond
	backstop = time.Second
)

// Run watches until ctx ends. Without notifications from the file system it
// reads the sources every second, and asks for them again each time: a user may
// have a limited number of listeners, and other programs give theirs back.
func (w *Watcher) Run(ctx context.Context) {
	var notify *fsnotify.Watcher
	var happened <-chan fsnotify.Event
	var faults <-chan error
	listenToFiles := func() {
		if notify != nil {
			return
		}
		if begun, err := w.notify(); err == nil {
			notify, happened, faults = begun, begun.Events, begun.Errors
		}
	}
	listenToFiles()
	defer func() {
		if notify != nil {
			_ = notify.Close()
		}
	}()
	tick := time.NewTicker(backstop)
	defer tick.Stop()
	dirty := map[string]bool{}
	var soon <-chan time.Time
	var listening sync.WaitGroup
	defer listening.Wait()
	ctx, cancel := context.WithCancel(ctx) // ends the streams before they are waited for
	defer cancel()
	all := func() {
		w.refresh(ctx, &listening, nil)
		w.listen(ctx, &listening)
		w.watch(notify)
	}
	all()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			all()
		case <-tick.C:
			listenToFiles()
			all()
		case key := <-w.touched:
			dirty[key] = true
			if soon == nil {
				soon = time.After(gather)
			}
		case <-faults:
			// An overflow loses events; the backstop reads everything anyway.
		case e, ok := <-happened:
			if !ok {
				happened = nil
				continue
			}
			w.mu.Lock()
			for _, key := range w.dirs[filepath.Dir(e.Name)] {
				dirty[key] = true
			}
			w.mu.Unlock()
			if soon == nil && len(dirty) > 0 {
				soon = time.After(gather)
			}
		case <-soon:
			soon = nil
			w.refresh(ctx, &listening, dirty)
			dirty = map[string]bool{}
		case <-w.rewatch:
			w.watch(notify)
			// What was written before a directory was watched was not told.
			w.refresh(ctx, &listening, nil)
		}
	}
}

// listen keeps a stream to each slot whose agent has one. A stream that ended is
// begun anew with the next backstop.
func (w *Watcher) listen(ctx context.Context, running *sync.WaitGroup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, s := range w.streams {
		slot, ok := w.slots[key]
		if !ok || slot.Pane.Dead {
			s.stop()
			delete(w.streams, key)
		}
	}
	for key, slot := range w.slots {
		a, ok := w.set.Lookup(slot.Agent)
		if !ok || a.follow == nil || slot.Pane.Dead {
			continue
		}
		follow, name := a.follow(w.set.sightOf(slot))
		current, has := w.streams[key]
		if has && current.name == name {
			continue
		}
		if has {
			current.stop()
			delete(w.streams, key)
		}
		if follow == nil {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		w.streams[key] = stream{name: name, stop: stop}
		running.Go(func() {
			defer stop()
			_ = follow(ctx, func(change tidings) {
				w.told(key, change)
				select {
				case w.touched <- key:
				default: // full: the backstop reads it within a second
				}
			})
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.streams[key].name == name {
				delete(w.streams, key)
			}
		})
	}
}

// tidings is what an event says by itself of a status; nil says nothing. The look
// that the event causes has the last word, but an agent at work may take its time
// to answer it.
type tidings func(now Status) Status

// told changes a status as an event says. What was looked at before it is old.
func (w *Watcher) told(key string, change tidings) {
	if change == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before, ok := w.status[key]
	if _, observed := w.slots[key]; !ok || !observed {
		return
	}
	after := change(before)
	if after == before {
		return
	}
	after.Since = w.options.Now()
	w.serial++
	w.taken[key], w.status[key] = w.serial, after
	nudge(w.changes)
}

// sight is what a declaration's observe looks at.
type sight struct {
	ctx    context.Context // bounds what observe asks of the agent itself
	slot   Slot
	rooms  rooms
	launch launch
	events events
	opened time.Time // when the pane's program started; zero is unknown
	now    time.Time
	before Status
	screen func() []string // the visible rows, or nil; asked only where needed
	// listeners tells whose a port of this host is.
	listeners *listeners
}

// sightOf is what can be seen of a slot without asking anybody: its places, and
// what its last plan left.
func (s *Set) sightOf(slot Slot) sight {
	r := rooms{config: slot.Config, agentHome: slot.Home, slot: SlotDir(slot.Config)}
	r.spool = filepath.Join(r.slot, "spool")
	if r.agentHome == "" {
		r.agentHome = slot.Config.WorkspaceHome
	}
	seen := sight{ctx: context.Background(), slot: slot, rooms: r, now: s.now(), screen: func() []string { return nil }, listeners: &s.listeners}
	if slot.Config.WorkspaceHome == "" {
		return seen
	}
	if _, err := readJSON(slot.Config.WorkspaceHome, filepath.Join(r.slot, launchFile), &seen.launch); err != nil || seen.launch.Agent != slot.Agent {
		seen.launch = launch{}
	}
	return seen
}

// top is the folder that holds the agent's own files and below which alone they
// are read.
func (s sight) top() string {
	if s.slot.Config.Guest.Isolated {
		return s.slot.Config.WorkspaceHome
	}
	return s.rooms.agentHome
}

// planned are the IDs under which the agent was started.
func (s sight) planned(id string) bool {
	return id != "" && (id == s.slot.SessionID || id == s.slot.BoundID || id == s.launch.Session)
}

func (w *Watcher) observe(ctx context.Context, slot Slot, before Status) (Status, []string) {
	now := w.options.Now()
	a, ok := w.set.Lookup(slot.Agent)
	if !ok {
		a, _ = w.set.Lookup("shell")
	}
	var status Status
	var dirs []string
	switch {
	case slot.Pane.Dead:
		status = Status{State: Ended, Source: "tmux", Session: before.Session, TurnBegan: before.TurnBegan, TurnEnded: before.TurnEnded}
	case a.observe == nil:
		s := sight{ctx: ctx, slot: slot, now: now, before: before}
		s.screen = func() []string { return w.capture(ctx, slot, before.State) }
		status = byActivity(s, a, status)
	default:
		s := w.set.sightOf(slot)
		s.ctx, s.now, s.before = ctx, now, before
		s.opened = w.openedAt(slot)
		if slot.Config.WorkspaceHome != "" {
			s.events = readSpool(slot.Config.WorkspaceHome, s.rooms.spool, s.opened)
			dirs = append(dirs, s.rooms.spool)
		}
		s.screen = func() []string { return w.capture(ctx, slot, before.State) }
		status = a.observe(s)
		if !a.ValidSession(status.Session) {
			status.Session = ""
		}
		status.Adopted = status.Session != "" && s.launch.Agent == a.name && s.launch.Session == ""
		if a.sources != nil {
			dirs = append(dirs, a.sources(s)...)
		}
		if status.State == Unknown && status.Source == "" {
			status = byActivity(s, a, status)
		}
	}
	status.Detail, status.Question = line(status.Detail), line(status.Question)
	status.Answer = passage(status.Reply)
	status.Prompt, status.Reply = line(status.Prompt), line(status.Reply)
	switch {
	case status.State == before.State && status.Question == before.Question && !before.Since.IsZero():
		status.Since = before.Since
	case status.Since.IsZero():
		status.Since = now
	}
	return status, dirs
}

// openedAt is when a pane's program started, zero when nobody knows. It is asked
// once for each program: what started does not start again.
func (w *Watcher) openedAt(slot Slot) time.Time {
	w.mu.Lock()
	known, ok := w.opened[slot.Key]
	w.mu.Unlock()
	if ok && known.pid == slot.Pane.PID {
		return known.at
	}
	at, ok := w.options.Opened(slot.Pane.PID)
	if !ok {
		return time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened[slot.Key] = opening{slot.Pane.PID, at}
	return at
}

// capture reads a pane's screen, at most once for each second in which it has
// shown something new.
func (w *Watcher) capture(ctx context.Context, slot Slot, state State) []string {
	if w.options.Capture == nil || slot.Pane.ID == "" {
		return nil
	}
	w.mu.Lock()
	c, ok := w.screens[slot.Key]
	w.mu.Unlock()
	settled := w.options.Now().Sub(c.activity) > 2*time.Second
	if ok && settled && c.activity.Equal(slot.Pane.Activity) && c.state == state {
		return c.rows
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	rows, err := w.options.Capture(ctx, slot.Pane.ID)
	if err != nil {
		return nil
	}
	w.mu.Lock()
	w.screens[slot.Key] = captured{state: state, activity: slot.Pane.Activity, rows: rows}
	w.mu.Unlock()
	return rows
}

// quietAfter is how long a pane must be silent to count as idle where nothing
// but its output tells. tmux gives whole seconds.
const quietAfter = 3 * time.Second

// byActivity is the last resort: a pane that prints works, one that is silent
// is idle. A screen rule of the user's own finds its questions.
func byActivity(s sight, a *Agent, status Status) Status {
	status.Source = "output activity"
	if a.rule != nil && !a.rule.empty() {
		if rows := s.screen(); rows != nil {
			switch b := a.rule.read(Look{Rows: rows, Title: s.slot.Pane.Title}); {
			case b.Asking:
				return Status{State: Waiting, Question: questionOn(rows, a.rule.Asking), Source: "screen rule"}
			case b.Busy:
				return Status{State: Working, Source: "screen rule"}
			case a.rule.Busy != "" && b.Known:
				return Status{State: Idle, Source: "screen rule"}
			}
		}
	}
	switch activity := s.slot.Pane.Activity; {
	case activity.IsZero():
		status.State, status.Source = Unknown, ""
	case s.now.Sub(activity) < quietAfter:
		status.State = Working
	default:
		status.State, status.Since = Idle, activity
	}
	return status
}

// startOf is when a process of this host started.
func startOf(pid int) (time.Time, bool) {
	if pid <= 0 {
		return time.Time{}, false
	}
	start, err := proc.StartTime(pid)
	if err != nil {
		return time.Time{}, false
	}
	return wallClock(start)
}
