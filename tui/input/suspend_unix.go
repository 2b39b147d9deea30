//go:build unix

package input

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// ErrOrphaned says why stopping is refused: no shell is there to continue us.
var ErrOrphaned = errors.New("no shell waits for this program (it is its terminal's own command), so nothing could wake it again")

// Suspension stops the process until the shell continues it. It has the shape
// of tea.ExecCommand, so that Bubble Tea gives the terminal back around it.
type Suspension struct{}

// CanSuspend tells whether stopping this process group would ever end. A group
// without a parent in the same session, outside the group, is orphaned: the
// kernel drops SIGTSTP for it, and nobody would send SIGCONT (POSIX, 3.264).
func CanSuspend() error {
	group, session, err := groupOf(os.Getpid())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOrphaned, err)
	}
	parent := os.Getppid()
	for range 64 { // a group is a short chain: make, sh, cellmux
		if parent <= 1 {
			return ErrOrphaned
		}
		parentGroup, parentSession, err := groupOf(parent)
		if err != nil || parentSession != session {
			return ErrOrphaned
		}
		if parentGroup != group {
			return nil
		}
		if parent, err = parentOf(parent); err != nil {
			return ErrOrphaned
		}
	}
	return ErrOrphaned
}

func groupOf(pid int) (group, session int, err error) {
	if group, err = unix.Getpgid(pid); err != nil {
		return 0, 0, err
	}
	session, err = unix.Getsid(pid)
	return group, session, err
}

// Run stops the process group and returns when it has been continued.
func (Suspension) Run() error {
	if err := CanSuspend(); err != nil {
		return err
	}
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	if err := unix.Kill(0, unix.SIGTSTP); err != nil {
		return fmt.Errorf("stop the process group: %w", err)
	}
	<-continued
	return nil
}

// SetStdin, SetStdout and SetStderr are there for the shape alone.
func (Suspension) SetStdin(io.Reader)  {}
func (Suspension) SetStdout(io.Writer) {}
func (Suspension) SetStderr(io.Writer) {}
