package tmux

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// Options say which server to speak to, and how.
type Options struct {
	Runner     proc.Runner
	Program    string // path of tmux; "" looks it up on the PATH of Env
	Socket     string // name for tmux -L; "" is "cellmux"
	RuntimeDir string // for our configuration; created 0700
	// Env is the environment of cellmux ("KEY=VALUE"). A server that we start
	// gets the few names of serverEnv from it, since every pane inherits the
	// server's environment.
	Env     []string
	Prefs   Prefs
	Timeout time.Duration // for one answer; 0 is 2 s
	Log     *slog.Logger  // nil discards
}

// Server is the private tmux server. It is safe for concurrent use.
type Server struct {
	opts Options
	conf string // text of our configuration
	rows rowForm

	mu      sync.Mutex
	control *control     // nil while there is none
	begun   proc.Process // the client of Begin, until Run takes it
	list    List
	applied uint64 // order of the answer that list shows
	width   int    // of the terminal that will attach
	height  int
	feeds   map[*feed]struct{}
	// reminded counts reminders by PID of a pane's program; see remind. Few ever
	// need one.
	reminded map[int]int

	order   atomic.Uint64
	changes chan struct{}
	nudge   chan struct{} // asks Run to try the control client now
}

var _ engine.Panes = (*Server)(nil)

const (
	hubSession     = "_hub"
	defaultTimeout = 2 * time.Second
	// closeGrace is how long a control client may take to leave.
	closeGrace = 500 * time.Millisecond
)

// New returns a Server; nothing starts before Run or the first call.
func New(o Options) *Server {
	if o.Socket == "" {
		o.Socket = "cellmux"
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		opts:     o,
		rows:     newRowForm(),
		width:    120,
		height:   36,
		list:     List{Err: "tmux has not been asked yet"},
		feeds:    make(map[*feed]struct{}),
		reminded: make(map[int]int),
		changes:  make(chan struct{}, 1),
		nudge:    make(chan struct{}, 1),
	}
	s.conf = confText(o.Prefs, s.getenv)
	return s
}

func (s *Server) getenv(name string) string {
	for _, kv := range slices.Backward(s.opts.Env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// serverEnv are the variables that a server needs, and that may be seen in
// every pane: where it keeps its socket, the language, the terminal's name.
var serverEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
	"TERM", "TERMINFO", "TERMINFO_DIRS", "TMUX_TMPDIR", "TMPDIR"}

func (s *Server) env() []string {
	env := make([]string, 0, len(serverEnv))
	for _, name := range serverEnv {
		if value := s.getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (s *Server) program() string {
	if s.opts.Program != "" {
		return s.opts.Program
	}
	return "tmux"
}

// argv returns the whole command line for arguments of tmux: -u, since without
// it tmux replaces what the locale does not have.
func (s *Server) argv(conf string, args ...string) []string {
	return append([]string{s.program(), "-u", "-L", s.opts.Socket, "-f", conf}, args...)
}

// SetSize says how large the terminal is that will attach, in cells, so that a
// new pane is born at its real size.
func (s *Server) SetSize(width, height int) {
	if width < 2 || height < 2 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width, s.height = width, height
}

// List returns what is known now; it does not block.
func (s *Server) List() List {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

// Changes tells that List has changed. It holds one, for one reader.
func (s *Server) Changes() <-chan struct{} { return s.changes }

// Refresh asks the server now. It blocks for at most Options.Timeout; without
// an answer, List.Known is false.
func (s *Server) Refresh(ctx context.Context) List {
	rows, err := s.query(ctx)
	if err == nil && s.remind(rows.pid, rows.panes) {
		rows, err = s.query(ctx)
	}
	return s.publish(rows, err)
}

// mostReminders bounds the reminders about one pane: tmux 3.2 never tells how a
// program ended that a signal ended.
const mostReminders = 3

// remind makes the server collect a child whose end it has missed, and says
// whether there was a pane to ask about again. tmux 3.3a misses one now and
// then: the pane is dead, its program stays defunct, and no exit status comes.
func (s *Server) remind(server int, panes []Pane) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	needed := false
	for _, p := range panes {
		if p.Dead && !p.ExitKnown && s.reminded[p.PID] < mostReminders {
			s.reminded[p.PID]++
			needed = true
		}
	}
	if needed {
		childEnded(server)
	}
	return needed
}

// rowsOf is an answer about the server and all its panes.
type rowsOf struct {
	panes   []Pane
	pid     int
	version string
	conf    string // value of confOption
	order   uint64 // of the answer
}

// query asks for the list over whatever way there is.
func (s *Server) query(ctx context.Context) (rowsOf, error) {
	ask := func() (answer, error) {
		return s.runBlocks(ctx, nil,
			command{"display-message", "-p", serverFormat},
			command{"display-message", "-p", s.rows.all()})
	}
	a, err := ask()
	if errors.Is(err, errControlEnded) {
		a, err = ask() // it ended with the question; a process asks it
	}
	if a.raced && s.connected() {
		// The subscription, which tells of a change once, may have told what the
		// process did not see yet. The client's own answers come in order.
		a, err = ask()
	}
	if errors.Is(err, ErrNoServer) {
		return rowsOf{order: s.order.Add(1)}, nil // certain: nothing lives
	}
	if err != nil {
		return rowsOf{}, err
	}
	return s.rows.parseQuery(a)
}

var serverFormat = "#{pid}|#{version}|#{" + confOption + "}"

func (f rowForm) parseQuery(a answer) (rowsOf, error) {
	lines, err := a.lines()
	if err != nil {
		return rowsOf{}, err
	}
	if len(lines) == 0 {
		return rowsOf{}, errors.New("tmux answered nothing")
	}
	fields := strings.SplitN(lines[0], "|", 3)
	if len(fields) != 3 {
		return rowsOf{}, fmt.Errorf("tmux described itself as %q", clip(lines[0]))
	}
	panes, err := f.parseAll(strings.Join(lines[1:], ""))
	return rowsOf{panes: panes, pid: idNumber(fields[0]), version: printable(fields[1]),
		conf: printable(fields[2]), order: a.order}, err
}

// publish makes an answer the current list. An error leaves the panes as they
// were last known.
func (s *Server) publish(rows rowsOf, err error) List {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := List{Known: true, Panes: rows.panes, ServerPID: rows.pid, Version: rows.version}
	if err != nil {
		next = s.list
		next.Known = false
		next.Err = sentence(err)
		return s.replace(next)
	}
	if rows.order < s.applied {
		return s.list // an answer that was overtaken by a newer one
	}
	s.applied = rows.order
	return s.replace(next)
}

// publishPanes updates the panes alone, from the subscription.
func (s *Server) publishPanes(panes []Pane, order uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if order < s.applied {
		return
	}
	s.applied = order
	next := s.list
	next.Known, next.Err, next.Panes = true, "", panes
	s.replace(next)
}

func (s *Server) replace(next List) List {
	old := s.list
	s.list = next
	if old.Known != next.Known || old.Err != next.Err || old.ServerPID != next.ServerPID ||
		old.Version != next.Version || !slices.Equal(old.Panes, next.Panes) {
		select {
		case s.changes <- struct{}{}:
		default: // the reader has one to take, and will see the newest
		}
	}
	return next
}

func sentence(err error) string {
	switch {
	case errors.Is(err, ErrNoAnswer), errors.Is(err, proc.ErrTimeout):
		return "tmux gives no answer; is its server stopped or the machine very busy?"
	default:
		return err.Error()
	}
}

// client is the control client, nil while there is none. One that has ended is
// none: Run takes a moment to see that.
func (s *Server) client() *control {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.control == nil || s.control.ended() {
		return nil
	}
	return s.control
}

// connected says whether there is a control client.
func (s *Server) connected() bool { return s.client() != nil }

// run runs commands and returns what they printed, over the control client when
// there is one. The error of a command that tmux refused is its own message.
func (s *Server) run(ctx context.Context, cmds ...command) ([]string, error) {
	a, err := s.runBlocks(ctx, nil, cmds...)
	if err != nil {
		return nil, err
	}
	return a.lines()
}

// runBlocks is run with the answer of each command apart, as far as the way
// tells: a process prints all as one. count is for control.do.
func (s *Server) runBlocks(ctx context.Context, count func([]block) int, cmds ...command) (answer, error) {
	c := s.client()
	if c == nil {
		before := s.order.Load()
		lines, err := s.exec(ctx, false, nil, cmds...)
		order := s.order.Add(1)
		return answer{blocks: []block{{lines: lines}}, order: order, raced: order != before+1}, err
	}
	if c.waiting() > s.opts.Timeout {
		return answer{}, ErrNoAnswer // it would only wait behind the others
	}
	a, err := c.do(ctx, s.opts.Timeout, line(cmds...), count)
	if errors.Is(err, errControlEnded) {
		err = fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return a, err
}

// exec runs commands in one process. start says that they may start the server.
func (s *Server) exec(ctx context.Context, start bool, stdin []byte, cmds ...command) ([]string, error) {
	conf := s.confPath()
	if start {
		var err error
		if conf, err = writeConf(s.opts.RuntimeDir, s.conf); err != nil {
			return nil, err
		}
	}
	c := proc.Cmd{
		Argv: s.argv(conf, argv(cmds...)...), Dir: "/", Env: s.env(),
		Timeout: s.opts.Timeout, MaxOutput: maxLine, LeavesDaemon: true,
	}
	if stdin != nil {
		c.Stdin = strings.NewReader(string(stdin))
	}
	res, err := s.opts.Runner.Run(ctx, c)
	switch {
	case errors.Is(err, proc.ErrNotFound):
		return nil, fmt.Errorf("tmux is not installed; install the package tmux, %d.%d or later: %w", minMajor, minMinor, err)
	case errors.Is(err, proc.ErrTimeout):
		return nil, fmt.Errorf("%w within %v", ErrNoAnswer, s.opts.Timeout)
	case err != nil:
		return nil, err
	case res.ExitCode != 0:
		return nil, refusal(strings.TrimSpace(string(res.Stderr)))
	}
	out := strings.TrimSuffix(string(res.Stdout), "\n")
	if out == "" {
		return nil, nil
	}
	return strings.Split(out, "\n"), nil
}

// refusal turns tmux's message into an error that callers can branch on.
func refusal(message string) error {
	message = printable(strings.ReplaceAll(message, "\n", "; "))
	switch {
	case strings.Contains(message, "no server running"), strings.Contains(message, "server exited"),
		strings.Contains(message, "lost server"),
		strings.Contains(message, "error connecting to") && !strings.Contains(message, "ermission denied"):
		return ErrNoServer
	case strings.Contains(message, "can't find pane"), strings.Contains(message, "can't find session"),
		strings.Contains(message, "can't find window"):
		return fmt.Errorf("%w (tmux: %s)", ErrGone, message)
	case strings.Contains(message, "duplicate session"), strings.Contains(message, "still active"):
		return fmt.Errorf("%w (tmux: %s)", ErrLive, message)
	case message == "":
		return errors.New("tmux failed without a message")
	}
	return fmt.Errorf("tmux: %s", message)
}

func stat(dir string) error {
	switch info, err := os.Stat(dir); {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	}
	return nil
}
