//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

const width, height = 120, 40

// program is a program in a terminal of 120x40 whose screen is read by an
// emulator.
type program struct {
	cmd     *exec.Cmd
	pty     *os.File
	started time.Time

	mu     sync.Mutex
	screen vt10x.Terminal
	bytes  int64
	moved  chan struct{} // the screen has changed; holds one
	ended  chan struct{}
}

func launch(env []string, dir, path string, args ...string) (*program, error) {
	p := &program{
		cmd:    exec.Command(path, args...),
		screen: vt10x.New(vt10x.WithSize(width, height)),
		moved:  make(chan struct{}, 1),
		ended:  make(chan struct{}),
	}
	p.cmd.Env, p.cmd.Dir = env, dir
	p.started = time.Now()
	f, err := pty.StartWithSize(p.cmd, &pty.Winsize{Cols: width, Rows: height})
	if err != nil {
		return nil, err
	}
	p.pty = f
	go p.read()
	return p, nil
}

func (p *program) read() {
	defer close(p.ended)
	buf := make([]byte, 64<<10)
	for {
		n, err := p.pty.Read(buf)
		if n > 0 {
			p.answer(buf[:n])
			p.mu.Lock()
			_, _ = p.screen.Write(buf[:n])
			p.bytes += int64(n)
			p.mu.Unlock()
			select {
			case p.moved <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// answer replies to what a program may ask a terminal at its start, as a quick
// terminal would.
func (p *program) answer(out []byte) {
	s := string(out)
	for query, reply := range map[string]string{
		"\x1b[6n":     "\x1b[1;1R",
		"\x1b[c":      "\x1b[?62;22c",
		"\x1b[?u":     "\x1b[?0u",
		"\x1b]11;?":   "\x1b]11;rgb:0000/0000/0000\x1b\\",
		"\x1b]10;?":   "\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
		"\x1b[?2027$": "\x1b[?2027;0$y",
		"\x1b[?2026$": "\x1b[?2026;0$y",
	} {
		if strings.Contains(s, query) {
			_, _ = p.pty.WriteString(reply)
		}
	}
}

// look runs f over the screen's rows.
func (p *program) look(f func(rows []string) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	rows := make([]string, height)
	line := make([]rune, width)
	for y := range rows {
		for x := range line {
			if line[x] = p.screen.Cell(x, y).Char; line[x] == 0 {
				line[x] = ' '
			}
		}
		rows[y] = string(line)
	}
	return f(rows)
}

// until waits for the screen to be as f wants it, and says when it was.
func (p *program) until(what string, limit time.Duration, f func(rows []string) bool) (time.Time, error) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		if p.look(f) {
			return time.Now(), nil
		}
		select {
		case <-p.moved:
		case <-p.ended:
			return time.Time{}, fmt.Errorf("it ended while waiting for %s:\n%s", what, p.text())
		case <-deadline.C:
			return time.Time{}, fmt.Errorf("waited %v in vain for %s:\n%s", limit, what, p.text())
		}
	}
}

func (p *program) text() string {
	var all string
	p.look(func(rows []string) bool { all = strings.Join(rows, "\n"); return true })
	return all
}

func (p *program) press(keys string) error {
	_, err := p.pty.WriteString(keys)
	return err
}

// quit ends the program as a user does, and if that fails by signal.
func (p *program) quit() {
	_ = p.press("q")
	select {
	case <-p.ended:
	case <-time.After(3 * time.Second):
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	done := make(chan struct{})
	go func() { _ = p.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		_ = p.cmd.Process.Kill()
		<-done
	}
	_ = p.pty.Close()
}

// cursorRow is the row of the list that has the selection mark, or -1.
func cursorRow(rows []string) int {
	for y, r := range rows {
		if strings.ContainsRune(firstRunes(r, 6), '❯') {
			return y
		}
	}
	return -1
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// preview is the part of a row right of the list.
func preview(row string) string {
	const list = 44
	for i := range row {
		if n := len([]rune(row[:i])); n == list {
			return row[i:]
		}
	}
	return ""
}
