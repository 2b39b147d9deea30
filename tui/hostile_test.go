package tui_test

import (
	"strings"
	"testing"
	"time"

	"cellmux/engine/fleet"
	"cellmux/shellctx/convo"
	"cellmux/shellctx/protocol"
	"cellmux/tui"
	"cellmux/tui/tuitest"
)

// hostile are strings that break rows elsewhere.
var hostile = []string{
	"plain", "日本語のタイトル", "한국어 제목", "👩‍👩‍👧‍👦 family", "⚠️ VS16", "1️⃣ keycap", "🏳️‍🌈🇩🇪", "e\u0301\u0301\u0301 combining", "עברית and עוד",
	"\u202eright to left override\u202c", "\x1b[31mred\x1b[m", "\x1b]0;title\x07", "\x1b[2J\x1b[H", "tab\tand\nnewline\r", "\x00\x01\x7f\u0085\u009b31m",
	"bad \xff\xfe utf8", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "ﷺ", "\u200b\u200d\ufeff", "\x1b", "\x1b[", "\x1bP", strings.Repeat("漢", 300), "", " ", "a\u0300",
	"\u1100\u1161\u11a8", "नमस्ते", "ก็กั้", "ẗ̴̬̲́e̵͇͒x̸̞̾t̵̰̂",
}

// fill puts one string wherever a guest, a pane or a file can write.
func fill(text string) *tuitest.Fleet {
	f := tuitest.NewFleet(func(now time.Time) fleet.Snapshot {
		return fleet.Snapshot{
			Cells: []fleet.Cell{{
				Name: "api", Title: text, Workspace: text, ProjectDir: "/" + text, Engine: text, Git: text, Problem: text, Approval: text,
				Slots: []fleet.Slot{
					{Ref: fleet.Ref{Cell: "api"}, Agent: text, Title: text, Status: fleet.Waiting, Question: text, Detail: text, Pane: "%1", Since: now},
					{Ref: fleet.Ref{Cell: "api", Slot: 1}, Agent: "claude", Title: text, Status: fleet.Running, Detail: text, Pane: "%2"},
				},
			}},
			Outside: []fleet.Outside{{Pane: "%9", Session: text, Command: text, Path: text, Title: text}},
			Engines: []fleet.Engine{{Kind: "host", Usable: true, Probed: true, Detail: text}},
			Work:    []fleet.Work{{ID: "1", What: text, Step: text, Unit: text, Done: 1, Started: now}},
		}
	})
	f.Screen("%1", text, "before"+text+"after", "\x1b[41m"+text)
	f.Approve("api", text, text)
	f.SetDiff("api", "+"+text+"\n-"+text)
	f.Say(fleet.Ref{Cell: "api"}, convo.Entry{Message: protocol.NewText("1", protocol.User, text, time.Time{}), Delivery: convo.Failed, Reason: text})
	f.Say(fleet.Ref{Cell: "api"}, convo.Entry{Message: protocol.NewText("2", protocol.Assistant, "# "+text+"\n\n- "+text+"\n\n> "+text+"\n\n| "+text+" | b |\n|--|--|\n| `"+text+"` | **"+text+"** |\n\n```\n"+text+"\n```\n", time.Time{})})
	return f
}

// tour shows every part of the screen. Settle itself asserts after every key
// that the frame has the right number of rows, each exactly as wide as the
// terminal.
func tour(ui *tuitest.UI) {
	ui.Press("j", "]", "]", "]", "]", "y", "esc", "?", "esc", ":", "esc", "@", "esc", "R", "esc", "x", "esc", "S", "esc")
	ui.Press("m").Paste(ui.Fleet.Text()).Press("esc", "!").Paste(ui.Fleet.Text()).Press("enter", "esc", "/").Paste(ui.Fleet.Text()).Press("esc", "i", "ctrl+q", "G")
}

func checkHarmless(t *testing.T, ui *tuitest.UI) {
	t.Helper()
	for row := range strings.SplitSeq(ui.Frame(), "\n") {
		for _, r := range row {
			if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e {
				t.Fatalf("the frame holds %U: %q", r, row)
			}
		}
	}
	for rest := ui.Colours(); ; {
		i := strings.IndexByte(rest, 0x1b)
		if i < 0 {
			return
		}
		rest = rest[i:]
		end := strings.IndexAny(rest, "mG")
		if end < 0 || rest[1] != '[' || strings.Trim(rest[2:end], "0123456789;:") != "" {
			t.Fatalf("the frame holds a sequence that neither colours nor places: %.20q", rest)
		}
		rest = rest[end:]
	}
}

func TestRowsKeepTheirWidthWhateverIsInThem(t *testing.T) {
	for _, text := range hostile {
		for _, size := range [][2]int{{40, 12}, {61, 21}, {120, 36}} {
			for _, lang := range []string{"C.UTF-8", "C"} {
				if lang == "C" && size[0] != 61 {
					continue // ASCII changes characters, not the layout
				}
				tuitest.Run(t, fill(text).Named(text), tuitest.Options{Width: size[0], Height: size[1], Env: map[string]string{"LANG": lang}}, func(ui *tuitest.UI) {
					tour(ui)
					checkHarmless(t, ui)
				})
			}
		}
	}
}

func FuzzRowsKeepTheirWidth(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, 60, 20)
	}
	f.Fuzz(func(t *testing.T, text string, w, h int) {
		if w < 1 || h < 1 || w > 300 || h > 100 || len(text) > 2000 {
			t.Skip("not a terminal's size")
		}
		tuitest.Run(t, fill(text).Named(text), tuitest.Options{Width: w, Height: h}, func(ui *tuitest.UI) {
			ui.Press("j", "]", "]", "]", "]")
			checkHarmless(t, ui)
		})
	})
}

func TestEveryThemeAndEveryKindOfColourDraws(t *testing.T) {
	for _, theme := range append(tui.Themes(), "") {
		for name, env := range map[string]map[string]string{
			"truecolor":  {},
			"256":        {"COLORTERM": ""},
			"16":         {"COLORTERM": "", "TERM": "xterm"},
			"NO_COLOR":   {"NO_COLOR": "1"},
			"CLICOLOR=0": {"CLICOLOR": "0"},
			"no TERM":    {"TERM": "", "COLORTERM": ""},
		} {
			f := tuitest.Sample()
			f.Screen("%1", "\x1b[38;2;255;0;0mtrue\x1b[m \x1b[38;5;196m256\x1b[m \x1b[1;31m16\x1b[m")
			tuitest.Run(t, f, tuitest.Options{Settings: tui.Settings{Theme: theme}, Env: env}, func(ui *tuitest.UI) {
				ui.Press("j").Row("true 256 16")
				colours := ui.Colours()
				switch name {
				case "NO_COLOR", "CLICOLOR=0", "no TERM":
					for rest := colours; ; {
						i := strings.Index(rest, "\x1b[")
						if i < 0 {
							break
						}
						rest = rest[i+2:]
						sgr := rest[:max(0, strings.IndexAny(rest, "mG"))]
						for p := range strings.SplitSeq(sgr, ";") {
							if len(p) == 2 && strings.ContainsAny(p[:1], "349") && rest[len(sgr)] == 'm' {
								t.Fatalf("%s, theme %q: a colour is left: %q", name, theme, sgr)
							}
						}
					}
					if !strings.Contains(colours, "\x1b[7m") {
						t.Errorf("%s: the selection cannot be seen", name)
					}
				case "truecolor":
					if !strings.Contains(colours, "38;2;255;0;0") {
						t.Errorf("truecolor was degraded")
					}
				case "256", "16":
					if strings.Contains(colours, "38;2;") {
						t.Errorf("%s: truecolor reaches the terminal", name)
					}
				}
				if name == "16" && strings.Contains(colours, "38;5;") {
					t.Errorf("256 colours reach a terminal of 16")
				}
			})
		}
	}
}

func TestAThemeThatCannotBeIsAnError(t *testing.T) {
	for want, s := range map[string]tui.Settings{
		`no theme is called "neon"`:        {Theme: "neon"},
		`styles "sparkle"`:                 {Theme: "mine", Themes: map[string]map[string]string{"mine": {"sparkle": "red"}}},
		`no style word is called "purple"`: {Theme: "mine", Themes: map[string]map[string]string{"mine": {"dead": "purple"}}},
	} {
		_, err := tui.New(t.Context(), tui.Options{Settings: s})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := tui.New(t.Context(), tui.Options{Settings: tui.Settings{Theme: "mine", Themes: map[string]map[string]string{"mine": {"dead": "on-bright-red white"}}}}); err != nil {
		t.Error(err)
	}
}
