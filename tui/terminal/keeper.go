// Package terminal gives the user's terminal back as it was, also when cellmux
// ends without a chance to do so itself.
//
// The rule it keeps: after `kill -9` the next prompt stands in a terminal that
// echoes, shows its cursor and its own screen, and sends no mouse reports. The
// keeper is a process of its own that does nothing until its pipe closes.
package terminal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"cellmux/cell/proc"
)

// keeping waits for a word on standard input. The end of the stream without it
// means that cellmux is gone.
//
// The modes are set back only while output processing is off, as cellmux has
// it: a shell that already took its terminal back and edits a line keeps it on,
// and must not have its settings changed under its hands. The terminal is
// opened anew since a session of its own has no /dev/tty; it does not become
// the keeper's controlling terminal, because it is somebody's already.
const keeping = `
terminal=$1
[ -n "$terminal" ] || terminal=/dev/$(ps -o tty= -p "$3" | tr -d ' ')
saved=$4
[ -n "$saved" ] || { saved=$(stty -g <"$terminal") || exit 1; echo ready; }
read -r word
[ "$word" = bye ] && exit 0
case $(stty -a <"$terminal") in *-opost*) stty "$saved" <"$terminal" || stty sane <"$terminal" ;; esac
printf "$2" >"$terminal"
`

// leave takes a terminal out of every mode that the screen or an attached pane
// may have set: a frame half drawn, mouse, focus and paste reports, keyboard
// protocols, no line wrap, colours, the alternate screen, a hidden cursor.
const leave = `\033[?2026l\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1004l\033[?2004l` +
	`\033[<u\033[>4;0m\033[?7h\033[0m\033[?1049l\033[?25h`

// Options says which terminal to keep, and how.
type Options struct {
	Runner proc.Runner
	// Path names the terminal, such as /dev/pts/3; "" is the one that this
	// process is on.
	Path string
	Env  []string // complete; PATH must lead to sh, stty and ps
}

// Keeper watches over one terminal until Release.
type Keeper struct {
	process proc.Process
	end     context.CancelFunc
}

// Keep remembers the terminal's modes as they are now and begins to watch. It
// returns when the modes are remembered: call it before the screen changes
// them. It blocks for one process start; where the process has to ask for the
// modes, until it has, at most a second.
func Keep(o Options) (*Keeper, error) {
	path := o.Path
	if path == "" {
		// Linux; elsewhere the script asks ps.
		path, _ = os.Readlink("/proc/self/fd/0")
	}
	modes := modesOf(path)
	ctx, cancel := context.WithCancel(context.Background())
	// A SIGHUP that ends the session must not end the keeper before its work.
	process, err := o.Runner.Start(ctx, proc.Cmd{
		Argv:         []string{"sh", "-c", "trap '' HUP INT TERM\n" + keeping, "cellmux-keeper", path, leave, strconv.Itoa(os.Getpid()), modes},
		Dir:          "/",
		Env:          o.Env,
		LeavesDaemon: true,
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("keep the terminal %s: %w", path, err)
	}
	k := &Keeper{process: process, end: cancel}
	ready := make(chan error, 1)
	go func() {
		// This reader ends with the process, whose pipe it follows to the end.
		out := bufio.NewReader(process.Stdout())
		line, err := out.ReadString('\n')
		if err == nil && line != "ready\n" {
			err = fmt.Errorf("it said %q", line)
		}
		ready <- err
		_, _ = io.Copy(io.Discard, out)
	}()
	if modes != "" {
		// Its pipe is there, and its end is what it waits for, however late.
		return k, nil
	}
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case err = <-ready:
	case <-late.C:
		err = proc.ErrTimeout
	}
	if err != nil {
		k.Release()
		return nil, fmt.Errorf("keep the terminal %s: %w", path, err)
	}
	return k, nil
}

// Release ends the watch: the terminal has been given back. It may be called
// more than once, and on a nil Keeper.
func (k *Keeper) Release() {
	if k == nil {
		return
	}
	_, _ = io.WriteString(k.process.Stdin(), "bye\n")
	_ = k.process.Stdin().Close()
	// The word was read, or the process is stuck and has to be ended.
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = k.process.Wait()
	}()
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		k.end()
		<-done
	}
	k.end()
}
