package tmux

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Screen is the text of a pane at one moment.
type Screen struct {
	Pane          string
	Rows          []string // one a row, SGR colours alone; each begins and ends with default colours
	Width, Height int
	CursorX       int // from 0
	CursorY       int
	CursorShown   bool
	History       int // lines above the visible screen
	Offset        int // lines of history that Rows begin above the visible screen
	Dead          bool
	Taken         time.Time
}

// rawScreen is a capture before its rows are made safe; equal ones need no work.
type rawScreen struct {
	meta string
	rows []string
}

func (r rawScreen) equal(o rawScreen) bool { return r.meta == o.meta && slices.Equal(r.rows, o.rows) }

const captureFormat = "#{pane_id} #{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{cursor_flag} #{history_size} #{pane_dead}"

// captureMeta is captureFormat, parsed.
type captureMeta struct {
	width, height, cursorX, cursorY, history int
	cursorShown, dead                        bool
}

func parseMeta(meta, pane string) (captureMeta, error) {
	fields := strings.Fields(meta)
	if len(fields) != 8 || fields[0] != pane {
		return captureMeta{}, ErrGone // display-message does not mind a target that is not there
	}
	number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
	return captureMeta{
		width: number(1), height: number(2), cursorX: number(3), cursorY: number(4),
		cursorShown: fields[5] == "1", history: number(6), dead: fields[7] == "1",
	}, nil
}

// Capture returns the visible screen of a pane, or with a positive offset the
// screen that begins so many lines above it; the offset is bounded by the
// history. It changes nothing: not the pane's size, nor its copy mode.
func (s *Server) Capture(ctx context.Context, pane string, offset int) (Screen, error) {
	raw, err := s.capture(ctx, pane, offset)
	if err != nil {
		return Screen{}, fmt.Errorf("look at pane %s: %w", pane, err)
	}
	return raw.screen(pane, offset)
}

func (s *Server) capture(ctx context.Context, pane string, offset int) (rawScreen, error) {
	if err := validPane(pane); err != nil {
		return rawScreen{}, err
	}
	offset = max(offset, 0)
	a, err := s.runBlocks(ctx, func(before []block) int {
		if len(before) != 2 || len(before[1].lines) != 1 {
			return -1
		}
		m, err := parseMeta(before[1].lines[0], pane)
		if err != nil {
			return -1
		}
		return m.height + min(offset, m.history)
	},
		// Fails for a pane that is being closed, which display-message still
		// describes and capture-pane does not find.
		command{"has-session", "-t", pane},
		command{"display-message", "-p", "-t", pane, captureFormat},
		command{"capture-pane", "-p", "-e", "-t", pane, "-S", strconv.Itoa(-offset)})
	if err != nil {
		return rawScreen{}, err
	}
	lines, err := a.lines()
	if err != nil {
		return rawScreen{}, err
	}
	if len(lines) == 0 {
		return rawScreen{}, ErrGone
	}
	return rawScreen{meta: lines[0], rows: lines[1:]}, nil
}

func (r rawScreen) screen(pane string, offset int) (Screen, error) {
	m, err := parseMeta(r.meta, pane)
	if err != nil {
		return Screen{}, err
	}
	rows := plainRows(r.rows)
	for len(rows) < m.height { // a process's output ends without its empty lines
		rows = append(rows, "")
	}
	return Screen{
		Pane: pane, Rows: rows[:m.height], Width: m.width, Height: m.height,
		CursorX: m.cursorX, CursorY: m.cursorY, CursorShown: m.cursorShown,
		History: m.history, Offset: min(max(offset, 0), m.history), Dead: m.dead, Taken: time.Now(),
	}, nil
}
