package tmux

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// Gone says of each origin whether its pane is certainly gone: the server that
// held it has ended, or is the one that this Server speaks to and has no such
// pane, or a dead one. What no answer tells about is not gone. A server that was
// just told to end answers nobody and still runs: it gets Options.Timeout to end.
// Gone blocks for at most twice that.
func (s *Server) Gone(ctx context.Context, origins []engine.PaneOrigin) []bool {
	patience, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		gone, decided := s.gone(ctx, origins)
		if decided {
			return gone
		}
		select {
		case <-patience.Done():
			return gone
		case <-time.After(pause):
		}
	}
}

// gone is Gone as it is now; decided says that waiting would change nothing.
func (s *Server) gone(ctx context.Context, origins []engine.PaneOrigin) (gone []bool, decided bool) {
	gone, decided = make([]bool, len(origins)), true
	if len(origins) == 0 {
		return gone, decided
	}
	list := s.Refresh(ctx)
	for i, o := range origins {
		server, ok := serverOf(o)
		switch {
		case !ok || validPane(o.Pane) != nil:
		case list.Known && list.ServerPID == server:
			gone[i] = !slices.ContainsFunc(list.Panes, func(p Pane) bool { return p.ID == o.Pane && !p.Dead })
		default:
			// Without a process there is no server. An answer of "no server" alone
			// may come from a socket that somebody has removed.
			gone[i] = proc.Ended(server, o.Started)
			decided = decided && gone[i]
		}
	}
	return gone, decided
}

// serverOf is the PID of the server that an origin names: TMUX is the socket,
// the PID and a number, and the socket's path may hold commas.
func serverOf(o engine.PaneOrigin) (pid int, ok bool) {
	words := strings.Split(o.Server, ",")
	if len(words) < 3 {
		return 0, false
	}
	pid, err := strconv.Atoi(words[len(words)-2])
	return pid, err == nil && pid > 1
}
