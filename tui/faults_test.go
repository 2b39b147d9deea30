//go:build linux

package tui_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"golang.org/x/sys/unix"
)

func TestAPanicInACommandLeavesTheTerminalAsItWas(t *testing.T) {
	tm := start(t)
	tm.waitFor("api-auth")
	tm.press("a")
	if err := tm.wait(); err == nil {
		t.Error("a panic counts as success")
	}
	tm.assertRestored()
	tm.waitFor("the screen failed")
}

func TestCtrlZIsRefusedWhereNothingCouldWakeUs(t *testing.T) {
	tm := start(t) // its own session leader, as a tmux pane's own command is
	tm.waitFor("api-auth")
	tm.press("\x1a")
	tm.waitFor("no shell waits for this program")
	tm.press("q")
	if err := tm.wait(); err != nil {
		t.Error(err)
	}
}

func TestCtrlZStopsAndTheShellBringsItBack(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs a shell with job control: no bash on PATH")
	}
	tm := startProgram(t, []string{bash, "--norc", "--noprofile", "-i"}, "PS1=READY:")
	tm.waitFor("READY:")
	tm.forget()
	tm.press(childVariable + "=1 " + os.Args[0] + "\r")
	tm.waitFor("api-auth")
	tm.press("\x1a")
	tm.waitFor("Stopped")
	tm.waitFor("READY:")
	if left := modes(tm.text()); left["1049"] || left["1004"] || left["1002"] || left["1006"] {
		t.Errorf("stopped with modes still set: %v", left)
	}
	tm.forget()
	tm.press("fg\r")
	tm.waitFor("api-auth")
	tm.waitFor("\x1b[?1002h") // the mouse is back too
	tm.press("jj")
	tm.waitFor("this is pane %2")
	tm.forget()
	tm.press("q")
	tm.waitFor("READY:")
}

func TestAResizeStormEndsInTheRightFrame(t *testing.T) {
	tm := start(t)
	tm.waitFor("api-auth")
	for i := range 200 {
		size := pty.Winsize{Cols: uint16(1 + i*7%160), Rows: uint16(1 + i*5%60)}
		if err := pty.Setsize(tm.pty, &size); err != nil {
			t.Fatal(err)
		}
	}
	if err := pty.Setsize(tm.pty, &pty.Winsize{Cols: 90, Rows: 25}); err != nil {
		t.Fatal(err)
	}
	tm.waitFor("claude in api-auth has waited")
	tm.forget()
	tm.press("\x0c") // draws the whole frame
	tm.waitForScreen(90, 25, func(rows []string) bool {
		return strings.Contains(rows[1], "[1] Cells") && strings.Contains(rows[24], "has waited")
	})
	tm.press("q")
	if err := tm.wait(); err != nil {
		t.Error(err)
	}
}

// waitForScreen blocks until the output since the last forget, drawn by a
// terminal emulator of w by h cells, is right.
func (tm *terminal) waitForScreen(w, h int, right func(rows []string) bool) {
	tm.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		emulator := vt10x.New(vt10x.WithSize(w, h))
		fmt.Fprint(emulator, tm.text())
		if right(strings.Split(emulator.String(), "\n")) {
			return
		}
		select {
		case <-tm.came:
		case <-deadline:
			tm.t.Fatalf("the screen is never right; it is\n%s", emulator.String())
		}
	}
}

func TestTwentyByFiveIsASentenceAndComesBack(t *testing.T) {
	tm := start(t)
	tm.waitFor("api-auth")
	if err := pty.Setsize(tm.pty, &pty.Winsize{Cols: 20, Rows: 5}); err != nil {
		t.Fatal(err)
	}
	tm.waitFor("needs 40x12")
	tm.forget()
	if err := pty.Setsize(tm.pty, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
		t.Fatal(err)
	}
	tm.waitFor("api-auth")
	tm.press("q")
	if err := tm.wait(); err != nil {
		t.Error(err)
	}
}

func TestAnswersOfTheTerminalPressNoKey(t *testing.T) {
	tm := start(t)
	tm.waitFor("api-auth")
	// Typed, these would open dialogs, and quit.
	for _, answer := range []string{"\x1b]11;rgb:dddd/qqqq/xxxx\x07", "\x1b[?62;4c", "\x1bP>|xterm(q)\x1b\\", "\x1b[12;40R"} {
		for i := range len(answer) {
			tm.press(answer[i : i+1])
		}
	}
	tm.press("jj")
	tm.waitFor("this is pane %2")
	tm.press("q")
	if err := tm.wait(); err != nil {
		t.Error(err)
	}
}

func TestAttachingManyTimesLeavesNothingBehind(t *testing.T) {
	const times = 100
	tm := start(t)
	tm.waitFor("api-auth")
	tm.press("j")
	attachOnce := func() {
		tm.forget()
		tm.press("\r")
		tm.waitFor("\x1b[?1049l")
		tm.waitFor("\x1b[?1002h") // back, with the mouse armed again
	}
	attachOnce()
	before := descriptors(t, tm.command.Process.Pid)
	for range times {
		attachOnce()
	}
	if after := descriptors(t, tm.command.Process.Pid); after > before {
		t.Errorf("%d attaches left %d descriptors open", times, after-before)
	}
	tm.press("q")
	if err := tm.wait(); err != nil {
		t.Error(err)
	}
	tm.assertRestored()
}

func TestNoKeyIsTheTerminalsOwnWhileAPaneIsAttached(t *testing.T) {
	tm := start(t)
	tm.waitFor("api-auth")
	tm.press("j")
	looking, seen := make(chan struct{}), make(chan uint32)
	go func() {
		var usual uint32
		for {
			if now, err := unix.IoctlGetTermios(int(tm.pty.Fd()), unix.TCGETS); err == nil {
				usual |= now.Lflag&(unix.ICANON|unix.ISIG) | now.Iflag&unix.IXON
			}
			select {
			case <-looking:
				seen <- usual
				return
			default:
			}
		}
	}()
	for range 30 {
		tm.forget()
		tm.press("\r")
		tm.waitFor("\x1b[?1049l")
		tm.waitFor("\x1b[?1002h")
	}
	close(looking)
	if usual := <-seen; usual != 0 {
		t.Errorf("between the screen and the pane the terminal was in its usual modes (%#x): a ctrl-q is lost there", usual)
	}
	tm.press("q")
	if err := tm.wait(); err != nil {
		t.Error(err)
	}
	tm.assertRestored()
}

func TestKeyboardModesThatAPaneLeftOnReachNobody(t *testing.T) {
	const push, pop, other, plain = "\x1b[>1u", "\x1b[<u", "\x1b[>4;2m", "\x1b[>4;0m"
	tm := start(t, leavesVariable+"="+push+other+"\x1b[?1003h\x1b[?1004h\x1b[?2004h\x1b[?25l\x1b[?1h\x1b[?7l")
	tm.waitFor("api-auth")
	tm.press("j\r")
	tm.waitFor(push)
	tm.forgetUntil(push)
	tm.waitFor("\x1b[?1002h") // back, with the mouse armed again
	if text := tm.text(); !strings.Contains(text, pop) || !strings.Contains(text, plain) || strings.LastIndex(text, other) > strings.LastIndex(text, plain) {
		t.Errorf("the keyboard's modes are still on in the screen: %q", text)
	}
	tm.press("q")
	if err := tm.wait(); err != nil {
		t.Error(err)
	}
	tm.assertRestored()
}

// forgetUntil drops the output before the first text.
func (tm *terminal) forgetUntil(text string) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	if i := strings.Index(tm.output.String(), text); i > 0 {
		tm.output.Next(i)
	}
}

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	return len(entries)
}

func TestNoSubcommandAsksTheTerminalAnythingOrWaitsForIt(t *testing.T) {
	program := filepath.Join(t.TempDir(), "cellmux")
	if out, err := exec.Command("go", "build", "-o", program, "cellmux").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	home := t.TempDir()
	for _, arguments := range [][]string{{"--version"}, {"--help"}, {"ls", "--help"}, {"session-id", "api-0"}, {"completion", "bash"}} {
		t.Run(strings.Join(arguments, " "), func(t *testing.T) {
			begin := time.Now()
			tm := startProgram(t, append([]string{program}, arguments...), "HOME="+home, "XDG_RUNTIME_DIR="+home)
			_ = tm.wait()
			// Bubble Tea's own init would ask, and wait 5 s for the answer.
			t.Logf("it took %v", time.Since(begin))
			if strings.Contains(tm.text(), "\x1b]1") || strings.Contains(tm.text(), "\x1b[6n") {
				t.Errorf("it asked the terminal: %q", tm.text())
			}
		})
	}
}

func TestSignalsWhileStoppedDoNotLoseTheTerminal(t *testing.T) {
	tm := start(t)
	tm.waitFor("api-auth")
	_ = tm.command.Process.Signal(unix.SIGSTOP)
	_ = tm.command.Process.Signal(unix.SIGTERM)
	_ = tm.command.Process.Signal(unix.SIGCONT)
	if err := tm.wait(); err != nil {
		t.Error(err)
	}
	tm.assertRestored()
}
