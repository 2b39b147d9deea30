package tmux

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cellmux/cell/proc"
)

const (
	// heartbeat is the longest silence before the server is asked for a sign of
	// life; subscriptions tick on whole seconds, but only when something changed.
	heartbeat = time.Second
	// reconcile is how often the list is asked for although nothing was told.
	reconcile = 30 * time.Second
	// listSpacing bounds the rate of list requests when notifications pour in.
	listSpacing = 50 * time.Millisecond
	pollEvery   = time.Second
	firstPause  = 100 * time.Millisecond
	lastPause   = 5 * time.Second
	// oldPause is how long a tmux that cannot do what we need is left alone.
	oldPause = 30 * time.Second
)

// Run keeps one control client on the server, which it starts when there is
// none, and keeps List current, until ctx ends. While the control client is
// away it lists by one process a second and tries again with a growing pause.
// It returns nil; what went wrong meanwhile is in List.Err.
func (s *Server) Run(ctx context.Context) error {
	pause := firstPause
	for ctx.Err() == nil {
		c, err := s.connect(ctx)
		if err == nil {
			began := time.Now()
			s.serve(ctx, c)
			if time.Since(began) > 2*lastPause {
				pause = firstPause
			}
		} else {
			s.opts.Log.Warn("tmux control client", "error", err.Error())
			if errors.Is(err, ErrOld) || errors.Is(err, proc.ErrNotFound) {
				s.publish(rowsOf{}, err)
				pause = oldPause
			}
		}
		s.poll(ctx, pause, err)
		pause = min(2*pause, lastPause)
	}
	return nil
}

// Begin starts the control client, and returns when its process runs: what Run
// finds ready then. Run must follow; what fails here, Run tries again.
func (s *Server) Begin(ctx context.Context) {
	process, err := s.startClient(ctx)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = process
}

// startClient starts one process that attaches to the hub, and makes it and the
// server if need be. The hub's program waits for input that never comes.
func (s *Server) startClient(ctx context.Context) (proc.Process, error) {
	conf, err := writeConf(s.opts.RuntimeDir, s.conf)
	if err != nil {
		return nil, err
	}
	process, err := s.opts.Runner.Start(context.WithoutCancel(ctx), proc.Cmd{
		Argv: s.argv(conf, "-C", "new-session", "-A", "-s", hubSession, "-n", "hub",
			"-f", "no-output,ignore-size", "-x", "80", "-y", "24", "-c", "/", "exec cat"),
		Dir: "/", Env: s.env(), Grace: closeGrace, LeavesDaemon: true,
	})
	if errors.Is(err, proc.ErrNotFound) {
		return nil, fmt.Errorf("tmux is not installed; install the package tmux, %d.%d or later: %w", minMajor, minMinor, err)
	}
	return process, err
}

// connect takes a control client, that of Begin or a new one, and sees it through
// to the first list.
func (s *Server) connect(ctx context.Context) (*control, error) {
	s.mu.Lock()
	process := s.begun
	s.begun = nil
	s.mu.Unlock()
	if process == nil {
		var err error
		if process, err = s.startClient(ctx); err != nil {
			return nil, err
		}
	}
	c := newControl(process, &s.order)
	query, queryErr := c.send(s.queryLine(), nil) // it fails where the client has ended
	timer := time.NewTimer(s.opts.Timeout)
	defer timer.Stop()
	select {
	case <-c.ready:
	case <-c.done:
		c.close(closeGrace)
		// An old tmux refuses the flags; its version says so in better words.
		if _, err := s.Probe(ctx); err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return nil, fmt.Errorf("start the tmux control client: %s", strings.Join(append(c.early, c.exit), " "))
	case <-timer.C:
		c.close(0)
		return nil, fmt.Errorf("%w: the control client was not attached within %v", ErrNoAnswer, s.opts.Timeout)
	case <-ctx.Done():
		c.close(closeGrace)
		return nil, context.Cause(ctx)
	}

	// tmux may read what is sent before it has attached the client, and a client
	// that is not attached gets no subscription. It tells the whole list within its
	// first second; the query tells it now.
	_, _ = c.send(line(command{"refresh-client", "-B", "panes::" + s.rows.all()}), nil)
	if err := s.firstList(ctx, c, query, queryErr); err != nil {
		c.close(closeGrace)
		return nil, err
	}
	return c, nil
}

// firstList takes the answer to the first query.
func (s *Server) firstList(ctx context.Context, c *control, query *request, err error) error {
	if err != nil {
		return err
	}
	a, err := c.await(ctx, query, s.opts.Timeout)
	if err != nil {
		return err
	}
	rows, err := s.rows.parseQuery(a)
	if err != nil {
		return err
	}
	return s.adopt(ctx, c, rows)
}

func (s *Server) queryLine() string {
	return line(
		command{"display-message", "-p", serverFormat},
		command{"display-message", "-p", s.rows.all()})
}

func (s *Server) queryOver(ctx context.Context, c *control) (rowsOf, error) {
	a, err := c.do(ctx, s.opts.Timeout, s.queryLine(), nil)
	if err != nil {
		return rowsOf{}, err
	}
	return s.rows.parseQuery(a)
}

// adopt makes a server that answers ours: it must be new enough, and has to
// read our configuration when it has an older one or, started by somebody
// else, none.
func (s *Server) adopt(ctx context.Context, c *control, rows rowsOf) error {
	if !supported(rows.version) {
		return fmt.Errorf("%w: the server that runs is %s, and cellmux needs %d.%d or later; end it when its panes are no longer needed",
			ErrOld, rows.version, minMajor, minMinor)
	}
	if rows.conf != confHash(s.conf) {
		a, err := c.do(ctx, s.opts.Timeout, line(command{"source-file", s.confPath()}), nil)
		if err != nil {
			return err
		}
		if _, err := a.lines(); err != nil { // such as an option that this version does not have
			s.opts.Log.Warn("tmux configuration", "error", err.Error())
		}
	}
	s.mu.Lock()
	s.control = c
	s.mu.Unlock()
	s.publish(rows, nil)
	return nil
}

// serve follows a control client until it or ctx ends.
func (s *Server) serve(ctx context.Context, c *control) {
	defer func() {
		s.mu.Lock()
		s.control = nil
		s.mu.Unlock()
		c.close(closeGrace)
	}()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	listed := time.Now()
	stalled := false
	var listing chan rowsAnswer // one list request at a time
	var spacing <-chan time.Time
	request := func() {
		listing = make(chan rowsAnswer, 1)
		answer := listing
		go func() {
			rows, err := s.queryOver(ctx, c)
			answer <- rowsAnswer{rows, err}
		}()
	}
	for {
		var dirty <-chan struct{}
		if listing == nil && spacing == nil {
			dirty = c.dirty
		}
		select {
		case <-ctx.Done():
			s.leave(c)
			return
		case <-c.done:
			s.opts.Log.Warn("tmux control client", "error", c.why())
			return
		case <-dirty:
			request()
		case <-spacing:
			spacing = nil
		case a := <-listing:
			listing, listed = nil, time.Now()
			spacing = time.After(listSpacing)
			if errors.Is(a.err, errControlEnded) || ctx.Err() != nil {
				continue // the other cases tell
			}
			stalled = a.err != nil
			s.publish(a.rows, a.err)
			if a.err == nil && s.remind(a.rows.pid, a.rows.panes) {
				c.changed()
			}
		case n := <-c.notices:
			panes, err := s.rows.parseAll(n.value)
			if err != nil {
				s.opts.Log.Warn("tmux subscription", "error", err.Error())
				if listing == nil {
					request()
				}
				continue
			}
			listed = time.Now()
			s.publishPanes(panes, n.order)
			if s.remind(s.List().ServerPID, panes) {
				c.changed()
			}
		case <-beat.C:
			switch {
			case c.waiting() > s.opts.Timeout:
				if !stalled {
					stalled = true
					s.publish(rowsOf{}, ErrNoAnswer)
				}
			case listing != nil:
			case stalled, !s.List().Known, time.Since(listed) > reconcile:
				request()
			case c.silent() >= heartbeat:
				_, _ = c.send(line(command{"display-message", "-p", ""}), nil)
			}
		}
	}
}

type rowsAnswer struct {
	rows rowsOf
	err  error
}

// leave takes the hub away when nothing else is on the server and nobody else
// looks at it, so that the last cellmux leaves no server behind.
func (s *Server) leave(c *control) {
	lonely := "#{&&:#{==:#{S:x},x},#{==:#{session_attached},1}}"
	_, _ = c.do(context.Background(), closeGrace, line(command{
		"if-shell", "-F", "-t", "=" + hubSession + ":", lonely,
		line(command{"kill-session", "-t", "=" + hubSession}),
	}), nil)
}

// poll is the way without a control client: for the length of pause, at least
// once, it lists by one process a second.
func (s *Server) poll(ctx context.Context, pause time.Duration, connectErr error) {
	until := time.NewTimer(pause)
	defer until.Stop()
	fatal := errors.Is(connectErr, ErrOld) || errors.Is(connectErr, proc.ErrNotFound)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if !fatal {
			s.Refresh(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.nudge:
			return
		case <-until.C:
			return
		case <-tick.C:
		}
	}
}
