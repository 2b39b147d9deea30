package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPaste bounds one paste; what is larger is for a file that the text names.
const maxPaste = 1 << 20

// deadMark is what a guarded command prints in place of acting.
const deadMark = "cellmux:dead"

// guarded runs cmds when the pane lives, in one turn of the server: between a
// check of our own and the command the program could end, and pasting into a
// dead pane crashes a tmux 3.3a server with every pane in it.
func guarded(pane string, cmds ...command) command {
	return command{"if-shell", "-F", "-t", pane, "#{pane_dead}", line(command{"display-message", "-p", deadMark}), line(cmds...)}
}

func deadOr(lines []string, err error) error {
	if err == nil && len(lines) > 0 && lines[len(lines)-1] == deadMark {
		return ErrDead
	}
	return err
}

// Paste puts text into the pane as one bracketed paste when its program asked
// for those; line ends become carriage returns. Control characters but for
// newline and tab are removed: an embedded end of paste would let the rest be
// typed. It presses no Enter.
//
// The error is ErrDead, ErrGone or ErrNoServer when nothing was pasted; with
// ErrNoAnswer nobody knows, and only the user may repeat it.
func (s *Server) Paste(ctx context.Context, pane, text string) error {
	if err := validPane(pane); err != nil {
		return err
	}
	text = pasteable(text)
	if text == "" {
		return nil
	}
	if len(text) > maxPaste {
		return fmt.Errorf("paste %d bytes: at most %d fit; put them in a file and name it", len(text), maxPaste)
	}
	// A buffer of its own: neither the user's copies nor another paste can get
	// in between, and it is gone afterwards.
	buffer := "cellmux-" + rand.Text()
	paste := guarded(pane, command{"paste-buffer", "-p", "-d", "-b", buffer, "-t", pane})
	s.mu.Lock()
	connected := s.control != nil
	s.mu.Unlock()
	var lines []string
	var err error
	if connected {
		lines, err = s.run(ctx, command{"set-buffer", "-b", buffer, "--", text}, paste)
	} else {
		lines, err = s.exec(ctx, false, []byte(text), command{"load-buffer", "-b", buffer, "-"}, paste)
	}
	if err = deadOr(lines, err); err != nil {
		if !errors.Is(err, ErrNoServer) {
			_, _ = s.run(context.WithoutCancel(ctx), command{"delete-buffer", "-b", buffer})
		}
		return fmt.Errorf("paste into pane %s: %w", pane, err)
	}
	s.poke(pane)
	return nil
}

// pasteable keeps what a paste may carry.
func pasteable(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// Keys presses keys as tmux names them: "Enter", "C-c", "Escape", "Up", or a
// character. ErrDead, ErrGone, ErrNoServer: nothing was pressed.
func (s *Server) Keys(ctx context.Context, pane string, keys ...string) error {
	return s.press(ctx, pane, append(command{"send-keys", "-t", pane, "--"}, keys...), len(keys))
}

// Type types text as it is, each character as a key press, unlike Paste.
func (s *Server) Type(ctx context.Context, pane, text string) error {
	return s.press(ctx, pane, command{"send-keys", "-l", "-t", pane, "--", text}, len(text))
}

func (s *Server) press(ctx context.Context, pane string, send command, n int) error {
	if err := validPane(pane); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	if err := deadOr(s.run(ctx, guarded(pane, send))); err != nil {
		return fmt.Errorf("type into pane %s: %w", pane, err)
	}
	s.poke(pane)
	return nil
}
