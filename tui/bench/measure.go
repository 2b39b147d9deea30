//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// contestant is one of the two programs that are measured.
type contestant struct {
	name string
	path string
	args []string
}

// figures are samples in milliseconds unless named otherwise.
type figures struct {
	KeyQuiet, KeyYes                                    []float64 // before, and while, a ! command prints without pause
	Start, Key, KeyBusy, Follow, FollowBusy, Burst, Age []float64
	Idle, Busy                                          []float64 // per cent of one core, tmux's share included
	IdleOwn, BusyOwn                                    []float64 // without it
	RSS                                                 []float64 // MiB, whole tree
	StartCPU, KeyCPU                                    []float64 // CPU of its own processes until the start is over, and for a key
	Started                                             int       // windows of idle time in which a process was started
	Lost                                                int       // bursts that did not end on the right row
	Bytes                                               []float64 // written to the terminal in an idle second
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// measurement takes every figure in turns, a round of the one program and a
// round of the other, so that other load on the machine meets both.
type measurement struct {
	o           options
	s           *stage
	contestants []contestant
	got         map[string]*figures
}

// turns runs f with a started program of each contestant, rounds times.
func (m *measurement) turns(rounds int, start func(contestant) (*program, error), f func(*figures, *program) error) error {
	for range rounds {
		for _, c := range m.contestants {
			p, err := start(c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			err = f(m.got[c.name], p)
			p.quit()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return nil
}

func (m *measurement) launch(c contestant) (*program, error) {
	p, took, spent, err := m.s.launch(c)
	if err == nil {
		g := m.got[c.name]
		g.Start, g.StartCPU = append(g.Start, took), append(g.StartCPU, spent)
	}
	return p, err
}

func (m *measurement) starts() error {
	return m.turns(m.o.rounds*m.o.starts, m.launch, func(*figures, *program) error { return nil })
}

func (m *measurement) keys() error {
	return m.turns(m.o.rounds, m.launch, func(g *figures, p *program) error {
		before := p.spent()
		key, follow, err := keys(p, m.o.presses, false)
		g.KeyCPU = append(g.KeyCPU, ms(p.spent()-before)/float64(max(len(key), 1)))
		g.Key, g.Follow = append(g.Key, key...), append(g.Follow, follow...)
		if err != nil {
			return err
		}
		if len(key) == 0 {
			return errors.New("no key was measured")
		}
		for range 5 {
			took, err := burst(p)
			if err != nil {
				g.Lost++
				continue
			}
			g.Burst = append(g.Burst, took)
		}
		return nil
	})
}

func (m *measurement) rests() error {
	return m.turns(1, m.launch, func(g *figures, p *program) error {
		total, own, bytes, rss, started := m.s.rest(p, m.o.rest)
		g.Idle, g.IdleOwn, g.Bytes, g.RSS = append(g.Idle, total), append(g.IdleOwn, own), append(g.Bytes, bytes), append(g.RSS, rss)
		if started {
			g.Started++
		}
		return nil
	})
}

// yes measures keys of cellmux alone, before and while a `!` command prints as
// fast as it can. The one is measured beside the other, in one program.
func (m *measurement) yes() error {
	config := filepath.Join(m.s.dir, "config", "cellmux")
	if err := os.MkdirAll(config, 0o700); err != nil {
		return err
	}
	file := filepath.Join(config, "config.toml")
	if err := os.WriteFile(file, []byte("[shell]\nmax_output = -1\n"), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(file) }()
	c, g := m.contestants[0], m.got[m.contestants[0].name]
	round := func() error {
		p, err := m.launch(c)
		if err != nil {
			return err
		}
		defer p.quit()
		quiet, _, err := keys(p, m.o.presses, true)
		if err != nil {
			return err
		}
		if err := p.press("!"); err != nil {
			return err
		}
		if _, err := p.until("the composer", 5*time.Second, holds(" $")); err != nil {
			return err
		}
		if err := p.press("yes\r"); err != nil {
			return err
		}
		if _, err := p.until("the command's output", 10*time.Second, holds("! yes")); err != nil {
			return err
		}
		if err := p.press("\x1b"); err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond) // until the list has the keys
		printing, _, err := keys(p, m.o.presses, true)
		if err != nil {
			return err
		}
		if !p.look(holds("running")) {
			return fmt.Errorf("the command does not run any more:\n%s", p.text())
		}
		g.KeyQuiet, g.KeyYes = append(g.KeyQuiet, quiet...), append(g.KeyYes, printing...)
		return nil
	}
	for range m.o.rounds {
		if err := round(); err != nil {
			return fmt.Errorf("keys while a command prints: %w", err)
		}
	}
	return nil
}

func holds(text string) func([]string) bool {
	return func(rows []string) bool {
		return slices.ContainsFunc(rows, func(r string) bool { return strings.Contains(r, text) })
	}
}

// busy measures what changes while ten panes print without pause; they do from
// here on.
func (m *measurement) busy() error {
	const printing = 10
	if err := m.s.busy(printing); err != nil {
		return err
	}
	minRows = min(len(m.s.panes), 25) // a busy list is as full; marks are gone from some
	anyPreview := func(c contestant) (*program, error) {
		p, err := launch(m.s.env, filepath.Join(m.s.dir, "p00"), c.path, c.args...)
		if err != nil {
			return nil, err
		}
		if _, err = p.until("the list", 10*time.Second, full); err != nil {
			p.quit()
		}
		return p, err
	}
	if err := m.turns(m.o.rounds, anyPreview, func(g *figures, p *program) error {
		key, _, err := keys(p, m.o.presses, true)
		g.KeyBusy = append(g.KeyBusy, key...)
		return err
	}); err != nil {
		return err
	}
	return m.turns(1, anyPreview, func(g *figures, p *program) error {
		if err := selectBusy(p); err != nil {
			return err
		}
		g.Age = append(g.Age, ages(p, m.o.rest/2)...)
		total, own, _, _, started := m.s.rest(p, m.o.rest)
		g.Busy, g.BusyOwn = append(g.Busy, total), append(g.BusyOwn, own)
		if started {
			g.Started++
		}
		return nil
	})
}

// launch starts a contestant and waits for the full list and the first preview.
func (s *stage) launch(c contestant) (p *program, took, spent float64, err error) {
	p, err = launch(s.env, filepath.Join(s.dir, "p00"), c.path, c.args...)
	if err != nil {
		return nil, 0, 0, err
	}
	at, err := p.until("the full list and the first preview", 10*time.Second, func(rows []string) bool { return full(rows) && shows(rows, "-") })
	if err != nil {
		p.quit()
		return nil, 0, 0, err
	}
	return p, ms(at.Sub(p.started)), ms(p.spent()), nil
}

// spent is the CPU time of a program's own processes so far.
func (p *program) spent() time.Duration {
	var total time.Duration
	for _, pid := range tree(p.cmd.Process.Pid) {
		total += cpu(pid)
	}
	return total
}

// full says that the list's last visible row is there: the lower half of its
// column is not empty.
func full(rows []string) bool {
	if cursorRow(rows) < 0 {
		return false
	}
	n := 0
	for _, r := range rows {
		if strings.TrimSpace(strings.Trim(firstRunes(r, 44), "│┃|╭╰─ ")) != "" {
			n++
		}
	}
	return n >= minRows
}

// minRows is set from the number of panes: each has a row where they fit.
var minRows = 20

// shows says whether the preview shows a pane's mark or stamps.
func shows(rows []string, session string) bool {
	want := mark(session)
	if session == "-" {
		want = "mark-"
	}
	for _, r := range rows {
		if strings.Contains(preview(r), want) {
			return true
		}
	}
	return false
}

// keys presses j and k, n times, and measures until another row is selected and
// until that row's pane is previewed.
func keys(p *program, n int, busy bool) (key, follow []float64, err error) {
	down := true
	at := -1
	p.look(func(rows []string) bool { at = cursorRow(rows); return true })
	turns := 0
	for len(key) < n {
		time.Sleep(time.Duration(25+rand.IntN(50)) * time.Millisecond)
		stroke := "k"
		if down {
			stroke = "j"
		}
		before := ""
		p.look(func(rows []string) bool { before = previewed(rows); return true })
		pressed := time.Now()
		if err := p.press(stroke); err != nil {
			return nil, nil, err
		}
		row := -1
		moved, err := p.until("another row", 500*time.Millisecond, func(rows []string) bool { row = cursorRow(rows); return row >= 0 && row != at })
		if err != nil { // the end of the list, or a list that scrolls
			down = !down
			if turns++; turns > n {
				return nil, nil, err
			}
			continue
		}
		key = append(key, ms(moved.Sub(pressed)))
		at = row
		// A cell's own row has no pane; where the preview is another, it followed.
		if busy {
			continue
		}
		shown, err := p.until("the preview", 300*time.Millisecond, func(rows []string) bool { now := previewed(rows); return now != "" && now != before })
		if err == nil {
			follow = append(follow, ms(shown.Sub(pressed)))
		}
	}
	return key, follow, nil
}

var markPattern = regexp.MustCompile(`mark-([a-z0-9-]+)-`)

func previewed(rows []string) string {
	for _, r := range rows {
		if m := markPattern.FindStringSubmatch(preview(r)); m != nil {
			return m[1]
		}
	}
	return ""
}

// burst is 15 keys in one write, letters and arrows mixed. From the top, the
// first two do nothing; were the order not kept, they would.
const (
	up, arrowDown = "\x1b[A", "\x1b[B"
	burstKeys     = "k" + up + "jj" + arrowDown + "k" + "j" + arrowDown + "jj" + up + arrowDown + "j" + up + "j"
	burstDown     = 7
	toTheTop      = 200 // presses of k that lead there from any row
)

func burst(p *program) (float64, error) {
	for range toTheTop {
		if err := p.press("k"); err != nil {
			return 0, err
		}
	}
	time.Sleep(150 * time.Millisecond)
	top := -1
	p.look(func(rows []string) bool { top = cursorRow(rows); return true })
	pressed := time.Now()
	if err := p.press(burstKeys); err != nil {
		return 0, err
	}
	at, err := p.until("the row of a burst", time.Second, func(rows []string) bool { return cursorRow(rows) == top+burstDown })
	if err != nil {
		return 0, err
	}
	return ms(at.Sub(pressed)), nil
}

var stampPattern = regexp.MustCompile(`stamp-(\d+)-`)

// ages samples how old the newest stamp in the preview is.
func ages(p *program, d time.Duration) []float64 {
	var out []float64
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
		var newest int64
		p.look(func(rows []string) bool {
			for _, r := range rows {
				for _, m := range stampPattern.FindAllStringSubmatch(preview(r), -1) {
					if n, _ := strconv.ParseInt(m[1], 10, 64); n > newest {
						newest = n
					}
				}
			}
			return true
		})
		if newest > 0 {
			out = append(out, float64(time.Now().UnixMicro()-newest)/1000)
		}
	}
	return out
}

// rest leaves a program untouched and measures what it uses.
func (s *stage) rest(p *program, d time.Duration) (total, own, bytes, rss float64, started bool) {
	time.Sleep(time.Second) // for what the last key set off
	before := use(p.cmd.Process.Pid, s.server)
	p.mu.Lock()
	written := p.bytes
	p.mu.Unlock()
	time.Sleep(d)
	after := use(p.cmd.Process.Pid, s.server)
	p.mu.Lock()
	written = p.bytes - written
	p.mu.Unlock()
	own = 100 * float64(after.cpu-before.cpu) / float64(after.at.Sub(before.at))
	return after.percent(before), own, float64(written) / d.Seconds(), float64(after.rssKiB) / 1024, after.started(before)
}

func quantile(samples []float64, q float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// selectBusy moves the selection to a row whose pane prints.
func selectBusy(p *program) error {
	for range 8 {
		if _, err := p.until("stamps", 700*time.Millisecond, func(rows []string) bool {
			for _, r := range rows {
				if stampPattern.MatchString(preview(r)) {
					return true
				}
			}
			return false
		}); err == nil {
			return nil
		}
		if err := p.press("j"); err != nil {
			return err
		}
	}
	return fmt.Errorf("no busy pane could be selected:\n%s", p.text())
}
