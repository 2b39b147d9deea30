package tui

// A rect is a part of the screen, in cells from the top left.
type rect struct{ x, y, w, h int }

func (r rect) holds(x, y int) bool { return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h }

// areas are where the parts are. A part that is not shown has no height. Each
// shown part has a title on the row above it.
type areas struct {
	tooSmall           bool
	body               rect
	list, preview, log rect
	columns            bool // list and the rest side by side
	head               bool // the list has a line of column names, above list
	composer           int  // rows at the end of log
}

const (
	minWidth, minHeight = 40, 12
	headerRows          = 1
	footerRows          = 2
)

// layout is where everything goes, from the size and what has the focus alone.
func (m *Model) layout() areas {
	a := areas{tooSmall: m.width < minWidth || m.height < minHeight}
	a.body = rect{0, headerRows, m.width, m.height - headerRows - footerRows}
	if a.tooSmall {
		return a
	}
	composing := m.focus == inComposer
	switch {
	case m.zoomed && (m.focus == inLog || composing):
		a.log = below(a.body, 1)
	case m.zoomed, m.width < 60 && (m.focus == inPreview || m.focus == inTypeIn):
		a.preview = below(a.body, 1)
		if composing {
			a.split(4)
		}
	case m.width >= 100:
		a.inColumns(m.width)
	case m.width >= 60:
		a.stacked(composing || m.focus == inLog || len(m.log.live) > 0)
	default:
		a.list = below(a.body, 1)
		if m.focus == inLog || composing {
			n := a.body.h / 2
			a.list.h -= n
			a.log = rect{0, a.list.y + a.list.h + 1, m.width, n - 1}
		}
	}
	if a.list.h > 8 {
		a.head = true
		a.list.y, a.list.h = a.list.y+1, a.list.h-1
	}
	if a.log.h > 0 {
		a.composer = 1
		if composing {
			rows := 1
			if a.log.w > 10 {
				lines, _, _ := m.composer.field.view(max(1, a.log.w-min(a.log.w/2, 30)), 0)
				rows = len(lines)
			}
			a.composer = max(1, min(rows, a.log.h-1))
		}
	}
	return a
}

func below(r rect, n int) rect { return rect{r.x, r.y + n, r.w, r.h - n} }

// split takes rows for the log from the end of the preview.
func (a *areas) split(rows int) {
	a.preview.h -= rows + 1
	a.log = rect{a.preview.x, a.preview.y + a.preview.h + 1, a.preview.w, rows}
}

func (a *areas) inColumns(w int) {
	a.columns = true
	left := min(max(w*36/100, 44), 64)
	a.list = rect{0, a.body.y + 1, left, a.body.h - 1}
	a.preview = rect{left + 1, a.body.y + 1, w - left - 1, a.body.h - 1}
	a.split(min(max(a.body.h/4, 4), 10))
}

func (a *areas) stacked(log bool) {
	list := (a.body.h - 2) * 11 / 20
	a.list = rect{0, a.body.y + 1, a.body.w, list}
	a.preview = rect{0, a.body.y + list + 2, a.body.w, a.body.h - list - 2}
	if log {
		rows := max(2, min(a.body.h/3, 8))
		if a.preview.h-rows-1 < 3 {
			// Too low for all three: the log takes the preview's place.
			a.log = a.preview
			a.preview = rect{}
			return
		}
		a.split(rows)
	}
}
