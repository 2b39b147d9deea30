package tmux

import (
	"path/filepath"
	"strconv"
	"strings"

	"cellmux/cell/proc"
)

// AttachCommand lends the terminal to a pane: a plain `tmux attach`, for
// proc.Foreground, which ends when the user detaches. With cellmux itself in a
// pane of this very server it is `switch-client` instead, which ends at once
// and shows the pane in the client that the user looks through.
func (s *Server) AttachCommand(pane string) (proc.Cmd, error) {
	if err := validPane(pane); err != nil {
		return proc.Cmd{}, err
	}
	env := make([]string, 0, len(s.opts.Env))
	inside := s.inside()
	for _, kv := range s.opts.Env {
		// tmux refuses to attach within itself, even to another server.
		if !inside && (strings.HasPrefix(kv, "TMUX=") || strings.HasPrefix(kv, "TMUX_PANE=")) {
			continue
		}
		env = append(env, kv)
	}
	conf := s.confPath()
	c := proc.Cmd{Dir: "/", Env: env}
	if inside {
		c.Argv = s.argv(conf, "switch-client", "-t", pane)
		return c, nil
	}
	var features []string
	// tmux knows by TERM alone what a terminal can do, and most that have
	// 24-bit colour do not say so there.
	if colour := s.getenv("COLORTERM"); colour == "truecolor" || colour == "24bit" {
		features = []string{"-T", "256,RGB"}
	}
	c.Argv = s.argv(conf, append(features, "attach-session", "-t", pane)...)
	return c, nil
}

// inside says whether cellmux runs in a pane of this server.
func (s *Server) inside() bool {
	socket, _, _ := strings.Cut(s.getenv("TMUX"), ",")
	return socket != "" && filepath.Base(socket) == s.opts.Socket && socket == s.socketPath()
}

// socketPath is where tmux -L puts a socket.
func (s *Server) socketPath() string {
	dir := s.getenv("TMUX_TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Join(dir, "tmux-"+strconv.Itoa(userID()), s.opts.Socket)
}

// ResetTerminal is to be written to the terminal after a pane had it: modes that
// a program or tmux left on would make keys dead or print garbage. Bubble Tea
// turns on again what it needs (mouse, bracketed paste) afterwards.
const ResetTerminal = "" +
	"\x1b[<u" + // pop the kitty keyboard protocol
	"\x1b[>4;0m" + // modifyOtherKeys off
	"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l" + // mouse off
	"\x1b[?1004l" + // focus reports off
	"\x1b[?1l\x1b>" + // cursor keys and keypad as normal
	"\x1b]8;;\x1b\\" + // end of a hyperlink
	"\x1b[0m"
