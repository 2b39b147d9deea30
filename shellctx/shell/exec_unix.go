//go:build unix

package shell

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/expand"
)

// ownSession detaches a program from the terminal: it can neither read keys
// that are meant for cellmux nor be stopped by job control.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// interruptGroup does what ctrl-c does; a stopped process is woken to notice.
func interruptGroup(pid int) {
	_ = unix.Kill(-pid, unix.SIGINT)
	_ = unix.Kill(-pid, unix.SIGCONT)
}

func signalOf(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return int(ws.Signal())
	}
	return 0
}

func isNoExec(err error) bool   { return errors.Is(err, syscall.ENOEXEC) }
func isTextBusy(err error) bool { return errors.Is(err, syscall.ETXTBSY) }

// find looks a program up as bash does: a name with a slash is a path; else the
// first executable on PATH, and one that is not executable only when there is
// no other. A code other than 0 is the exit code, with its reason.
func find(dir string, env expand.Environ, name string) (path string, code uint8, reason string) {
	if strings.Contains(name, "/") {
		path = name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		code, reason = runnable(path)
		return path, code, reason
	}
	refused := ""
	if name != "" {
		for _, elem := range filepath.SplitList(env.Get("PATH").String()) {
			if !filepath.IsAbs(elem) {
				elem = filepath.Join(dir, elem) // "" is the working directory
			}
			path = filepath.Join(elem, name)
			if code, _ = runnable(path); code == 0 {
				return path, 0, ""
			}
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				refused = path
			}
		}
	}
	if refused != "" {
		return "", codeNotExec, refused + ": permission denied"
	}
	return "", codeNotFound, "command not found"
}

func runnable(path string) (uint8, string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrPermission):
		return codeNotExec, "permission denied"
	case errors.Is(err, syscall.ENOTDIR):
		return codeNotExec, "not a directory"
	case err != nil:
		return codeNotFound, "no such file or directory"
	case info.IsDir():
		return codeNotExec, "is a directory"
	case unix.Access(path, unix.X_OK) != nil:
		return codeNotExec, "permission denied"
	}
	return 0, ""
}

// signalGroup sends a signal to the session that a program leads.
func signalGroup(pid, signal int) { _ = unix.Kill(-pid, syscall.Signal(signal)) }

// groupLives tells whether a process group has members.
func groupLives(pid int) bool { return !errors.Is(unix.Kill(-pid, 0), unix.ESRCH) }

// noReader tells whether a file is a pipe that nobody reads any more.
func noReader(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	_ = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, err := unix.Poll(fds, 0); err == nil && n > 0 {
			gone = fds[0].Revents&unix.POLLERR != 0
		}
	})
	return gone
}

// duplicate returns a second handle of an open file.
func duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	if cerr := raw.Control(func(old uintptr) {
		fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3)
	}); cerr != nil {
		return nil, cerr
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// releaseFIFO lets go whoever waits for the other end of a named pipe.
func releaseFIFO(path string) {
	for _, flag := range []int{unix.O_RDONLY, unix.O_RDWR} {
		if fd, err := unix.Open(path, flag|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
			_ = unix.Close(fd)
		}
	}
}

const (
	sigTerm = int(unix.SIGTERM)
	sigKill = int(unix.SIGKILL)
	sigCont = int(unix.SIGCONT)
	sigStop = int(unix.SIGSTOP)
)

// signalNumber takes a name without SIG, in upper case; 0 is unknown.
func signalNumber(name string) int { return int(unix.SignalNum("SIG" + name)) }

// signalName is without SIG; "" is unknown.
func signalName(n int) string {
	return strings.TrimPrefix(unix.SignalName(syscall.Signal(n)), "SIG")
}

func killPID(pid, signal int) error { return unix.Kill(pid, syscall.Signal(signal)) }
